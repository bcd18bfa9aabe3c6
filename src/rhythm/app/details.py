"""One execution, looked at closely: what the command line and the server show besides its view.

Programs ask for views; these questions have no flat names.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from rhythm.app.checks import parse_execution_id
from rhythm.app.views import ExecutionView, brief_view, line_of, moment, view
from rhythm.ir.program import position_of
from rhythm.record import Record
from rhythm.store.lifecycle import TASK, WORKFLOW

if TYPE_CHECKING:
    from rhythm.app.context import AppContext
    from rhythm.app.handle import Id
    from rhythm.app.workflows import Workflows


class Position(Record):
    """Where in its source a workflow is: the line, and of JSON steps the step."""

    line: int | None = None
    step: str | None = None


class Details:
    """One execution, looked at closely."""

    def __init__(self, context: AppContext, workflows: Workflows) -> None:
        self._context, self._store, self._workflows = context, context.store, workflows

    def root_name(self, id: Id) -> str | None:
        """The name of what is at the root of an execution, by which rights go.

        None if there is no such execution.
        """
        id = parse_execution_id(id)
        return self._store.reading.root_names([id]).get(id)

    def children(self, id: Id) -> list[ExecutionView]:
        """All that an execution has started, in that order, without what may be large."""
        return [
            brief_view(row)
            for row in self._store.reading.children(parse_execution_id(id), brief=True)
        ]

    def failed_tasks(self, id: Id) -> Iterator[ExecutionView]:
        """The tasks of an execution that have ended with an error, the last one first."""
        rows = reversed(self._store.reading.children(parse_execution_id(id)))
        return (view(row) for row in rows if row.error and row.type == TASK)

    def due(self, id: Id) -> dict[int, datetime]:
        """When its timers and delayed children are due, by number; 0 is its own start."""
        return {n: moment(at) for n, at in self._store.reading.due(parse_execution_id(id)).items()}

    def position(self, id: Id) -> Position:
        """Where in its source a workflow is; empty if that is not known, or it is gone."""
        id = parse_execution_id(id)
        row = self._store.reading.get([id]).get(id)
        program = self._workflows.program(row.name, row.version) if row is not None else None
        if row is None or program is None:
            return Position()
        return Position(line_of(program, row.statement), position_of(program, row.statement)[0])

    def retries(self, id: Id) -> list[str]:
        """The ids of the retries of an execution, oldest first."""
        return [retry.id for retry in self._store.executions.retries(parse_execution_id(id))]

    def retry_refusal(self, id: Id) -> str | None:
        """Why a retry would be refused.

        None if it would not, or if that cannot be told at a glance. Empty: its snapshot cannot be
        read.
        """
        from rhythm.app.explain import retry_refusal

        return retry_refusal(self._store, parse_execution_id(id))

    def snapshot(self, id: Id) -> bytes | None:
        """Where a workflow is, as it is stored; None as long as it has not begun, and for tasks."""
        row = self._context.execution(id)
        loaded = self._store.turns.load([row.id]) if row.type == WORKFLOW else []
        return loaded[0].snapshot if loaded else None
