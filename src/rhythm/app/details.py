"""Details of one execution, which the command line and the server show besides its view.

Programs ask for views; these methods have no flat names.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from rhythm.app.checks import parse_execution_id
from rhythm.app.log_lines import LogLineView, line_view
from rhythm.app.views import AlikeView, ExecutionView, alike_view, brief_view, line_of, moment, view
from rhythm.engine.payload import load
from rhythm.ids import child_id
from rhythm.ir.awaiting import branches
from rhythm.ir.step_ids import steps_at
from rhythm.record import Record
from rhythm.store.interfaces.executions import Execution
from rhythm.store.lifecycle import TASK, WORKFLOW

if TYPE_CHECKING:
    from rhythm.app.context import AppContext
    from rhythm.app.handle import Id
    from rhythm.app.workflows import Workflows


MAX_BRANCHES = 100  # that are looked at to say where an execution is
BEGINNING = -1


class Position(Record):
    """Where in its source a workflow is: the line, and the id of the step."""

    line: int | None = None
    step: str | None = None
    named: bool = False  # its author gave the step its id


class Places(Record):
    """The statements at which a workflow and its branches wait, and at which they have waited.

    `BEGINNING` is where one is that has not taken a turn.
    """

    here: frozenset[int]
    passed: frozenset[int]


class DueTime(Record):
    """When a timer or a delayed child of an execution is due; number 0 is its own start."""

    n: int
    at: datetime


class ExecutionDetails(Record):
    """What is shown of an execution besides its view.

    `line` and `step` say where in its source a workflow is. `retries` are the ids of its retries,
    oldest first; `retry_refusal` says why a retry of a failed execution would be refused.
    """

    due: tuple[DueTime, ...]
    line: int | None
    step: str | None
    retries: tuple[str, ...]
    retry_refusal: str | None
    named: bool  # its author gave the step its id
    progress: LogLineView | None  # the last one that it, or anything below it, has reported


class Details:
    """Details of one execution. Calling it returns all that are shown."""

    def __init__(self, context: AppContext, workflows: Workflows) -> None:
        self._context, self._store, self._workflows = context, context.store, workflows

    def __call__(self, id: Id) -> ExecutionDetails:
        """Returns what is shown of an execution. Raises `UnknownExecution` if there is none."""
        row = self._context.execution(id)
        failed = row.status in ("failed", "cancelled")
        at = self.position(row.id)
        return ExecutionDetails(
            tuple(DueTime(n, when) for n, when in self.due(row.id).items()),
            at.line,
            at.step,
            tuple(self.retries(row.id)),
            self.retry_refusal(row.id) if failed else None,
            at.named,
            self.progress(row.id),
        )

    def root_name(self, id: Id) -> str | None:
        """Returns the name at the root of an execution, on which permissions depend.

        Returns None if there is no such execution.
        """
        id = parse_execution_id(id)
        return self._store.reading.root_names([id]).get(id)

    def children(self, id: Id, limit: int | None = None) -> list[ExecutionView]:
        """Returns what an execution has started, in that order, without large fields.

        `limit`: only the first ones.
        """
        rows = self._store.reading.children(parse_execution_id(id), limit=limit, brief=True)
        return [brief_view(row) for row in rows]

    def failed_tasks(self, id: Id) -> Iterator[ExecutionView]:
        """Returns the tasks of an execution that ended with an error, the last one first."""
        rows = reversed(self._store.reading.children(parse_execution_id(id)))
        return (view(row) for row in rows if row.error and row.type == TASK)

    def due(self, id: Id) -> dict[int, datetime]:
        """Returns when the timers and delayed children of an execution are due, by number.

        Number 0 is its own start.
        """
        return {n: moment(at) for n, at in self._store.reading.due(parse_execution_id(id)).items()}

    def progress(self, id: Id) -> LogLineView | None:
        """Returns the last progress that an execution, or anything below it, has reported."""
        line = self._store.logs.last_progress(parse_execution_id(id))
        return line_view(line) if line is not None else None

    def alike(self, id: Id, most: int) -> list[AlikeView]:
        """Returns what there is more than `most` times below an execution, and how it has ended."""
        return [*map(alike_view, self._store.reading.alike(parse_execution_id(id), most))]

    def position(self, id: Id) -> Position:
        """Returns where in its source a workflow is.

        It is empty if that is not known, or if the execution is gone.
        """
        id = parse_execution_id(id)
        row = self._store.reading.get([id]).get(id)
        program = self._workflows.program(row.name, row.version) if row is not None else None
        if row is None or program is None:
            return Position()
        step, _ = steps_at(program, row.statement)
        return Position(line_of(program, row.statement), step, bool(program.steps))

    def places(self, id: Id) -> Places:
        """Returns where a workflow is, with the branches that it awaits, and where it has waited.

        One that has ended is nowhere any more. Of the branches of a large group only the first
        `MAX_BRANCHES` are looked at; those of a group that is over are not.
        """
        here, passed = set[int](), set[int]()
        ahead, seen = [self._context.execution(id)], 1
        while ahead:
            row = ahead.pop()
            behind = self._store.turns.statements(row.id)
            begins = BEGINNING if row.id == id else row.statement  # a branch begins inside
            passed.update(behind)
            if row.finished_at is None:
                here.add(behind[-1] if behind else begins)
            below = _branches_of(row)[: MAX_BRANCHES - seen]
            seen += len(below)
            found = self._store.reading.get(below) if below else {}
            ahead += found.values()
        return Places(frozenset(here), frozenset(passed - here))

    def retries(self, id: Id) -> list[str]:
        """Returns the ids of the retries of an execution, oldest first."""
        return [retry.id for retry in self._store.executions.retries(parse_execution_id(id))]

    def retry_refusal(self, id: Id) -> str | None:
        """Returns why a retry would be refused; None if it would not be.

        None is also returned if finding out would take too long, and an empty text if the snapshot
        cannot be read.
        """
        from rhythm.app.explain import retry_refusal

        return retry_refusal(self._store, parse_execution_id(id))

    def snapshot(self, id: Id) -> bytes | None:
        """Returns the stored snapshot of a workflow; None for tasks, and before its first turn."""
        row = self._context.execution(id)
        loaded = self._store.turns.load([row.id]) if row.type == WORKFLOW else []
        return loaded[0].snapshot if loaded else None


def _branches_of(row: Execution) -> list[str]:
    """Returns the ids of the branches that a workflow awaits."""
    if row.finished_at is not None:
        return []
    return [child_id(row.id, n) for n in branches(load(row.awaiting))]
