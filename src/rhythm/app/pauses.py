"""Pauses of an application: operators hold executions and let them go on, and see where they
stand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from rhythm.app.actors import By, acting
from rhythm.app.checks import (
    LARGEST_PAGE,
    at_least,
    number_of,
    page_of,
    unknown_execution,
    valid_metadata,
    valid_text,
)
from rhythm.app.views import (
    PageOf,
    as_json,
    metadata_of,
    moment,
    moment_of,
    paused_at,
    paused_reason,
)
from rhythm.durations import duration_s
from rhythm.engine.payload import dump, load
from rhythm.ir.awaiting import rows_of
from rhythm.ir.step_ids import steps_at
from rhythm.record import Record
from rhythm.store.approvals import CANCEL, RESUME, ResumeRequest
from rhythm.store.interfaces.executions import Execution
from rhythm.store.lifecycle import WORKFLOW

if TYPE_CHECKING:
    from rhythm.app.context import AppContext
    from rhythm.app.handle import Id
    from rhythm.app.workflows import Workflows

Then = Literal["resume", "cancel"]


class StatusView(Record):
    """The status of an execution; if it is paused, also why, and what happens next."""

    id: str
    workflow: str
    status: str
    paused_at: datetime | None
    paused_reason: str
    paused_by: str
    paused_until: datetime | None
    paused_step_id: str | None  # of JSON steps their id, else the call and its line: `charge:12`
    next_step_id: str | None
    resume_data: Any
    resume_attempted_at: datetime | None
    resume_error_message: str | None
    paused_metadata: Any = None  # what was given with the pause

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values; times as ISO 8601."""
        return as_json(self)


class ResumeRequestView(Record):
    """What let a paused execution go on.

    It is an approval, an event, a person or program (`manual`), or the end of the pause
    (`timeout`).
    """

    id: int
    execution_id: str
    triggered_by: str
    triggered_by_id: str
    trigger_data: Any
    reason: str
    requested_at: datetime
    executed_at: datetime | None  # when its next turn was committed
    error_message: str | None
    metadata: Any = None  # what was given with a resume by hand

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values; times as ISO 8601."""
        return as_json(self)


class ResumePage(PageOf[ResumeRequestView]):
    """One page of what let an execution go on, oldest first: a sequence of them.

    `cursor` asks for the next page; None means that there are no more.
    """


class Pauses:
    """What is paused, and what lets it go on."""

    def __init__(self, context: AppContext, workflows: Workflows) -> None:
        self._context, self._store, self._workflows = context, context.store, workflows

    def pause(
        self,
        id: Id,
        reason: str = "",
        by: By = None,
        *,
        timeout: float | str | None = None,
        then: Then = "resume",
        metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        """Holds a workflow where it is. Returns False if it has ended already.

        Tasks that are running end, signals and results are kept, timers go on, and no turn is
        taken. After the `timeout`, if there is one, it goes on by itself, or is cancelled
        (`then="cancel"`). `metadata` are shown with the pause and kept in the audit; the workflow
        does not see them.
        """
        if then not in (RESUME, CANCEL):
            raise ValueError(f"then is resume or cancel, not {then!r:.80}")
        row = self._workflow(id, "paused")
        timeout_s = None if timeout is None else duration_s(timeout)
        done = self._store.people.pause(
            [row.id],
            reason=valid_text(reason, "reason"),
            actor=acting(by),
            timeout_s=timeout_s,
            then=then,
            metadata=valid_metadata(metadata),
        )
        return self._done(row.id, done)

    def resume(
        self,
        id: Id,
        reason: str = "",
        by: By = None,
        *,
        data: Any = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> bool:
        """Lets a paused workflow go on. Returns False if nobody paused it.

        False means that it is not paused, or that it waits for a decision or an event (see
        `resume_options`). The workflow sees `data`, an object, as `ctx.resume_data`; JSON steps
        merge it into their context. It does not see `metadata`, which is kept with the request and
        in the audit. Raises `Undecidable` if there is data while somebody is asked to decide: they
        would decide about something else than they were shown.
        """
        if data is not None and not isinstance(data, dict):
            raise ValueError(f"the data of a resume is an object, not {data!r:.80}")
        row = self._workflow(id, "resumed")
        self._leave_results_alone(row, data or {})
        return self._done(
            row.id,
            self._store.people.resume(
                [row.id],
                reason=valid_text(reason, "reason"),
                data=dump(data, "data"),
                actor=acting(by),
                metadata=valid_metadata(metadata),
            ),
        )

    def _leave_results_alone(self, row: Execution, data: dict[str, Any]) -> None:
        """Raises `ValueError` for data that would replace the result of a JSON step.

        Above all it must not replace a decision.
        """
        program = self._workflows.program(row.name, row.version)
        results = (
            {"approval", *(step for _, step, _ in program.steps)}
            if program is not None and program.steps
            else set()
        )
        if taken := sorted(results & data.keys()):
            raise ValueError(
                f"the data of a resume cannot replace `{taken[0]}`, which is the result of a step"
            )

    def _done(self, id: str, done: Mapping[str, bool]) -> bool:
        """Returns whether the store changed this execution.

        Raises `UnknownExecution` if it was gone.
        """
        if id not in done:
            unknown_execution(id)
        self._context.wake()
        return bool(done[id])

    def _workflow(self, id: Id, what: str) -> Execution:
        """Returns the row of a workflow. Raises `ValueError` if the execution is a task."""
        row = self._context.execution(id)
        if row.type != WORKFLOW:
            raise ValueError(f"{row.id} is a task: only workflows are {what}")
        return row

    def status(self, id: Id) -> StatusView:
        """Returns where an execution is, and for a paused one why, where, and what comes next."""
        row = self._context.execution(id)
        requests = self._store.people.last_resumes(row.id)
        program = self._workflows.program(row.name, row.version) if row.type == WORKFLOW else None
        step, after = (
            steps_at(program, row.statement)
            if program is not None and row.finished_at is None
            else (None, None)
        )
        data = [
            request.trigger_data
            for request in requests
            if request.triggered_by != "event" and request.trigger_data != "null"
        ]
        return StatusView(
            row.id,
            row.name,
            row.status,
            paused_at(row),
            paused_reason(row),
            (row.paused_at and row.paused_by) or "",
            moment_of(row.paused_until),
            step,
            after,
            load(data[-1]) if data else None,
            moment(requests[-1].requested_at) if requests else None,
            requests[-1].error_message if requests else None,
            metadata_of(row),
        )

    def options(self, id: Id) -> tuple[str, ...]:
        """Returns what would let an execution go on; empty if it needs nobody.

        The actions are `approve`, `reject`, `escalate`, `publish` and `resume`.
        """
        row = self._context.execution(id)
        if row.finished_at is not None or row.status != "paused":
            return ()
        if row.paused_at is not None:
            return ("resume",)
        waits = rows_of(load(row.awaiting))
        open_ = (
            self._store.people.approvals(None, "open", row.id, None, LARGEST_PAGE)
            if "approval" in waits
            else []
        )
        escalates = any(json.loads(each.stages) for each in open_)
        return (
            *(("approve", "reject") if open_ else ()),
            *(("escalate",) if escalates else ()),
            *(("publish",) if "wait" in waits else ()),
        )

    def requests(self, id: Id) -> list[ResumeRequestView]:
        """Returns everything that let an execution go on, oldest first."""
        row = self._context.execution(id)
        return [_request(each) for each in self._store.people.resumes(row.id)]

    def requests_page(
        self, id: Id, limit: int = 50, cursor: str | None = None, *, most_bytes: int | None = None
    ) -> ResumePage:
        """Returns a page of what let an execution go on, oldest first.

        Give the `cursor` of a page to get the next one.
        """
        limit, after = min(at_least(limit, 1, "limit"), LARGEST_PAGE), number_of(cursor)
        rows, more = page_of(
            self._store.people.resumes(
                self._context.execution(id).id, after, limit + 1, most_bytes
            ),
            limit,
        )
        return ResumePage(tuple(_request(row) for row in rows), str(rows[-1].id) if more else None)


def _request(row: ResumeRequest) -> ResumeRequestView:
    return ResumeRequestView(
        row.id,
        row.execution_id,
        row.triggered_by,
        row.triggered_by_id,
        load(row.trigger_data),
        row.reason,
        moment(row.requested_at),
        moment_of(row.executed_at),
        row.error_message,
        load(row.metadata),
    )
