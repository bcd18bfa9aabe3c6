"""Workflows of a server: reading them and their texts, and registering the text of a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rhythm.app.checks import LARGEST_PAGE, at_least, can_be
from rhythm.app.views import SourceView, WorkflowView
from rhythm.errors import FlowError, UnknownWorkflow
from rhythm.remote.executions import fits_path

if TYPE_CHECKING:
    from rhythm.app.actors import By
    from rhythm.remote.client import Client


class RemoteWorkflows:
    """The workflows that are registered. Calling it lists them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(self, limit: int | None = None, after: str = "") -> list[WorkflowView]:
        """Returns the current versions of all workflows by name. See `Rhythm.workflows`."""
        if limit is None:
            found = [*self._client.all("workflows", after=after or None)]
        else:
            most = min(at_least(limit, 1, "limit"), LARGEST_PAGE)
            found, _ = self._client.page(["workflows"], most, after or None)
        return [self._client.read(WorkflowView, item) for item in found]

    def get(self, name: str) -> WorkflowView:
        """Returns the current version of a workflow. Raises `UnknownWorkflow`."""
        return self._client.view(WorkflowView, "workflows", _known(name))

    def get_many(self, names: Sequence[str]) -> dict[str, WorkflowView]:
        """Returns the current versions of these workflows. Those that do not exist are left out."""
        found = dict[str, WorkflowView]()
        for name in names:
            with suppress(UnknownWorkflow):
                found[name] = self.get(name)
        return found

    def source(self, name: str, version: str) -> SourceView | None:
        """Returns the text of a version of a workflow; None if there is none."""
        try:
            value = self._client.get("workflows", _known(name), "source", version=version)
        except UnknownWorkflow:
            return None
        return self._client.read(SourceView, value)

    def register(self, *sources: str | os.PathLike[str], by: By = None) -> tuple[str, ...]:
        """Registers the workflows of one file, and returns their names.

        Raises `FlowError` if one does not compile: then none is registered. The server is sent the
        text of the file, not its name.
        """
        if len(sources) != 1 or os.path.isdir(sources[0]):
            raise ValueError("a server takes one file of workflows at a time")
        try:
            with open(sources[0], encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as problem:
            raise FlowError([], f"cannot read {os.fspath(sources[0])}: {problem}") from problem
        # the same text twice is one version
        check = "`rhythm workflows` tells"
        done = self._client.post("workflows", body={"source": text}, again=True, check=check)
        found = self._client.part(done, "workflows", list[Any])
        return tuple(self._client.read(WorkflowView, item).name for item in found)


def _known(name: str) -> str:
    """Returns the name of a workflow, which may stand in a path. Raises `UnknownWorkflow`."""
    if can_be(name) and fits_path(name):
        return name
    raise UnknownWorkflow(f"there is no workflow `{name:.200}`", name)
