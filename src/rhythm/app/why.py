"""Asking why an execution does not go on.

The answer is put together in `explain`, which is imported when somebody asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rhythm.permissions import Scope
from rhythm.store.lifecycle import WORKFLOW

if TYPE_CHECKING:
    from rhythm.app.context import AppContext
    from rhythm.app.explain import WhyView
    from rhythm.app.handle import Id
    from rhythm.app.workflows import Workflows


class Why:
    """Why an execution does not go on: call it."""

    def __init__(self, context: AppContext, workflows: Workflows) -> None:
        self._context, self._workflows = context, workflows

    def __call__(self, id: Id, *, scope: Scope = None) -> WhyView:
        """Returns why an execution does not go on: what it awaits, since when, and what would help.

        With a `scope`, some things are said only about queues whose names match one of the
        patterns: which workers serve the queue, who paused it and why, and how much is in it.
        """
        from rhythm.app.explain import explain

        row = self._context.execution(id)
        program = self._workflows.program(row.name, row.version) if row.type == WORKFLOW else None
        return explain(self._context.store, row, program, scope)
