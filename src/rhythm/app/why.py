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
    """Why an execution does not go on: it is called."""

    def __init__(self, context: AppContext, workflows: Workflows) -> None:
        self._context, self._workflows = context, workflows

    def __call__(self, id: Id, *, scope: Scope = None) -> WhyView:
        """Why an execution does not go on: what it waits for, since when, and what would help.

        With a `scope`, who serves its queue, who has paused that, why, and how much is in it is
        told only of a queue that has a name as one of its patterns says.
        """
        from rhythm.app.explain import explain

        row = self._context.execution(id)
        program = self._workflows.program(row.name, row.version) if row.type == WORKFLOW else None
        return explain(self._context.store, row, program, scope)
