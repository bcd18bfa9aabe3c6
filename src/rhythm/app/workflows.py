"""Workflows of an application: registering them, and their programs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from rhythm.app.actors import By, acting
from rhythm.app.checks import LARGEST_PAGE, at_least, can_be, name_of
from rhythm.app.views import SourceView, WorkflowView, workflow_view
from rhythm.errors import Denied, UnknownWorkflow
from rhythm.ir.program import Program
from rhythm.permissions import Scope, within

if TYPE_CHECKING:
    from rhythm.app.context import AppContext
    from rhythm.store.interfaces.definitions import Definition, Listed
    from rhythm.store.interfaces.store import Store


class Workflows:
    """The workflows that are registered. Calling it lists them."""

    def __init__(self, context: AppContext) -> None:
        self._context, self._store = context, context.store

    def __call__(self, limit: int | None = None, after: str = "") -> list[WorkflowView]:
        """Returns the current versions of all workflows by name.

        With a `limit`, only that many of the workflows whose names come after `after`.
        """
        if limit is None:
            return [workflow_view(listed) for listed in self._listed(name_of(after))]
        found = self._store.definitions.after(
            name_of(after), min(at_least(limit, 1, "limit"), LARGEST_PAGE + 1)
        )
        return [workflow_view(listed) for listed in found]

    def get(self, name: str) -> WorkflowView:
        """Returns the current version of a workflow. Raises `UnknownWorkflow` if there is none."""
        found = self._store.definitions.current([name]) if can_be(name) else {}
        return workflow_view(found[name]) if name in found else _unknown(name, self._store)

    def get_many(self, names: Sequence[str]) -> dict[str, WorkflowView]:
        """Returns the current versions of these workflows. Those that do not exist are left out."""
        return {
            name: workflow_view(listed)
            for name, listed in self._store.definitions.current(names).items()
        }

    def source(self, name: str, version: str, *, scope: Scope = None) -> SourceView | None:
        """Returns the text of a version of a workflow, as it was registered; None if there is none.

        With a `scope`, only its own part of the text is returned, unless all workflows in the text
        match.
        """
        found = self._store.definitions.get(name, version)
        return None if found is None else SourceView(found.name, found.file, _text(found, scope))

    def register(
        self,
        *sources: str | os.PathLike[str],
        by: By = None,
        scope: Scope = None,
        known: Scope = None,
    ) -> tuple[str, ...]:
        """Registers the workflows of files, folders or texts, and returns their names.

        All are registered, or none if one does not compile: `FlowError` shows every problem of
        every file. New executions start on the version that was registered last.

        - `by`: who registers them; it is recorded in the audit only if this is given.
        - `scope`: raises `Denied` if the name of a workflow matches none of these patterns.
        - `known`: of the other workflows that these may call, only those in this scope count as
          existing.
        """
        from rhythm.app.loading import compile_flows, read_flows
        from rhythm.app.schedules import annotated_schedules

        actor, texts = acting(by) if by else None, read_flows(sources)
        stored = (listed.name for listed in self._listed())
        others = (name for name in (*self._context.python.names, *stored) if within(known, name))
        definitions = compile_flows(texts, others, self._context.tasks) if texts else []
        _refuse_others([definition.name for definition in definitions], scope)
        if definitions:
            self._store.definitions.register(
                definitions, annotated_schedules(definitions, actor), actor
            )
        return tuple(definition.name for definition in definitions)

    def program(self, name: str, version: str | None = None) -> Program | None:
        """Returns a program by its version, or the current one; None if there is none.

        A program that was loaded is cached.
        """
        if not can_be(name) or not (version is None or can_be(version)):
            return None
        return self._context.programs.get(self._store, name, version)

    def current(self, name: str, store: Store | None = None) -> Program:
        """Returns the program on which new executions start.

        Raises `UnknownWorkflow` if there is none. With `store`, it is read in the transaction of
        the caller.
        """
        store = self._store if store is None else store
        return (self._context.programs.get(store, name) if can_be(name) else None) or _unknown(
            name, store
        )

    def _listed(self, after: str = "") -> Iterator[Listed]:
        while page := self._store.definitions.after(after, LARGEST_PAGE):
            yield from page
            after = page[-1].name


def _text(definition: Definition, scope: Scope) -> str:
    if scope is None:  # the compiler need not be imported
        return definition.source
    from rhythm.app.loading import source_within

    return source_within(definition, scope)


def _unknown(name: str, store: Store) -> NoReturn:
    from rhythm.app.loading import no_workflow

    raise UnknownWorkflow(
        no_workflow(name, [known.name for known in store.definitions.after("", LARGEST_PAGE)]), name
    )


def _refuse_others(names: Sequence[str], scope: Scope) -> None:
    """Raises `Denied` if one of the names is not in the scope."""
    if others := sorted(name for name in names if not within(scope, name)):
        allowed = ", ".join(scope or ())
        raise Denied(
            f"whoever registers this may not register `{others[0]}`, only what is called {allowed}",
            "permission_missing",
        )
