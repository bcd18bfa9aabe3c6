"""Approvals, pauses and resumes of an application: what people decide, and what operators hold and let go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from rhythm.app.actors import By, acting
from rhythm.app.checks import (
    LARGEST_PAGE,
    at_least,
    can_be,
    number_of,
    page_of,
    place_after,
    place_of,
    possible_id,
    unknown_execution,
    valid_name,
    valid_text,
)
from rhythm.app.part import Part
from rhythm.app.views import as_json, moment, moment_of, operations, paused_at, paused_reason
from rhythm.durations import duration_s
from rhythm.engine.payload import dump, load
from rhythm.errors import Denied, Undecidable, UnknownApproval
from rhythm.ir.program import position_of
from rhythm.limits import TEXTS
from rhythm.record import Record
from rhythm.rights import Scope
from rhythm.store.access import Actor
from rhythm.store.approvals import APPROVE, CANCEL, ESCALATE, REJECT, RESUME, Decision, ResumeRequest, StoredApproval, StoredDecision
from rhythm.store.base import WORKFLOW, Execution
from rhythm.store.provenance import MAX_CONTRIBUTORS

if TYPE_CHECKING:
    from rhythm.app.handle import Id

Then = Literal["resume", "cancel"]
STATUSES = ("open", "approved", "rejected", "expired", "cancelled")
REFUSALS: dict[str, str] = {
    "wrong_role": "{actor} does not hold the role `{role}`, which it takes to decide {id}",
    "role_revoked": "{actor} holds the role `{role}` no longer, which it takes to decide {id}",
    "self_approval": "{actor} started {execution} or gave it data, and cannot decide about it: it takes four eyes; somebody else with the "
    "role `{role}` must",
    "too_many_contributors": "more people than are kept ({most:,}) had a hand in {execution}, so nobody can be shown to be uninvolved: "
    "let the workflow ask with `four_eyes: false`",
    "already_decided": "{id} is {status} already, by {by}: nothing was changed",
    "decision_repeated": "{actor} has decided about {id} already: nothing was changed",
    "approval_changed": "{id} is not what was shown: look at it again, and decide with its new hash",
    "approval_expired": "the time to decide about {id} is over: nothing was changed",
    "approval_cancelled": "{id} was cancelled: its execution waits for it no longer",
    "no_escalation": "{id} cannot be escalated{to}: its workflow names {stages}",
}
DENIALS = ("wrong_role", "role_revoked", "self_approval", "too_many_contributors")


class DecisionView(Record):
    """What somebody has decided: approve, reject or escalate."""

    actor: str
    role: str
    decision: str
    comment: str
    at: datetime

    def as_json(self) -> dict[str, Any]:
        return as_json(self)


class ApprovalView(Record):
    """An approval: what is asked of whom, until when, and what came of it."""

    id: str
    execution_id: str
    workflow: str
    role: str
    reason: str
    data: Any
    quorum: int
    four_eyes: bool
    requested_by: str | None
    created_at: datetime
    deadline_at: datetime | None
    on_deadline: str  # what follows then: expire, or escalate to the first of `escalations`
    status: str  # open, approved, rejected, expired, cancelled
    decisions: tuple[DecisionView, ...]
    shown: str  # the hash of what is to be decided: a decision that names it is refused when that has changed
    escalations: tuple[str, ...]  # roles to which it can still go
    comment: str
    ended_at: datetime | None

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values; times as ISO 8601."""
        return as_json(self)


class ApprovalPage(Record):
    """Some approvals, newest first; `cursor` asks for those after them, None: there are no more."""

    items: tuple[ApprovalView, ...]
    cursor: str | None = None

    def __iter__(self) -> Iterator[ApprovalView]:
        return iter(self.items)


class ResumeRequestView(Record):
    """What let a paused execution go on: an approval, an event, somebody (`manual`), or the end of its pause (`timeout`)."""

    id: int
    execution_id: str
    triggered_by: str
    triggered_by_id: str
    trigger_data: Any
    reason: str
    requested_at: datetime
    executed_at: datetime | None  # when its next turn was committed
    error_message: str | None

    def as_json(self) -> dict[str, Any]:
        return as_json(self)


class StatusView(Record):
    """Where an execution is; of a paused one, why and what comes next."""

    id: str
    workflow: str
    status: str
    paused_at: datetime | None
    paused_reason: str
    paused_by: str
    paused_until: datetime | None
    paused_step_id: str | None  # of a workflow in JSON steps
    next_step_id: str | None
    resume_data: Any
    resume_attempted_at: datetime | None
    resume_error_message: str | None

    def as_json(self) -> dict[str, Any]:
        return as_json(self)


class ResumePage(Record):
    """Some of what let an execution go on, oldest first; `cursor` asks for those after them, None: there are no more."""

    items: tuple[ResumeRequestView, ...]
    cursor: str | None = None

    def __iter__(self) -> Iterator[ResumeRequestView]:
        return iter(self.items)


ResumeRequests = list[ResumeRequestView]


class Approvals(Part):
    """What people do to executions that wait for them."""

    def approvals(
        self,
        *,
        role: str | None = None,
        status: str | None = "open",
        execution: Id | None = None,
        limit: int = 50,
        cursor: str | None = None,
        scope: Scope = None,
        most_bytes: int | None = None,
    ) -> ApprovalPage:
        """What people are asked to decide, newest first; with another `status` what they were, with None all of it.

        With a `scope`, only those of executions at whose root is something that has a name as one of its patterns says.
        """
        if status is not None and status not in STATUSES:
            raise ValueError(f"status is one of {', '.join(STATUSES)}, not {status!r:.80}")
        limit = min(at_least(limit, 1, "limit"), LARGEST_PAGE)
        asked = None if role is None else valid_name(role, "a role")
        of = None if execution is None else possible_id(execution)
        found = self.store.approvals(asked, status, of, place_of(cursor), limit + 1, self._names(scope), most_bytes)
        rows, more = page_of(found, limit)
        views = tuple(self._views(rows))
        return ApprovalPage(views, place_after(views[-1]) if more else None)

    def approval(self, id: str) -> ApprovalView:
        """One approval; `UnknownApproval` if there is none of this id."""
        return self._views([self._approval(id)])[0]

    def _approval(self, id: str) -> StoredApproval:
        found = self.store.approval(_possible(id))
        return found if found is not None else no_approval(id)

    def _views(self, rows: list[StoredApproval]) -> list[ApprovalView]:
        made: dict[str, list[StoredDecision]] = {}
        for each in self.store.decisions([row.id for row in rows]) if rows else ():
            made.setdefault(each.approval_id, []).append(each)
        return [_view(row, made.get(row.id, [])) for row in rows]

    def approve(self, id: str, *, by: Actor | str, comment: str = "", shown: str | None = None, key: str | None = None) -> ApprovalView:
        """Approves; with the last approval of its quorum the execution goes on.

        `shown` is the hash of what was seen: `Undecidable` if it has changed since. The same `key` again changes nothing.
        `Denied` if whoever decides does not hold the role, or started the execution. `by` is a name if you answer for its roles yourself.
        """
        return self._decide(id, APPROVE, by, comment, shown, key)

    def reject(self, id: str, *, by: Actor | str, comment: str = "", shown: str | None = None, key: str | None = None) -> ApprovalView:
        """Rejects: one rejection ends the approval, whatever its quorum. See `approve`."""
        return self._decide(id, REJECT, by, comment, shown, key)

    def escalate(
        self, id: str, *, by: Actor | str, to: str | None = None, comment: str = "", shown: str | None = None, key: str | None = None
    ) -> ApprovalView:
        """Hands an approval to the next of the roles that its workflow names, or to that one of them; its time begins anew."""
        return self._decide(id, ESCALATE, by, comment, shown, key, None if to is None else valid_name(to, "a role"))

    def _decide(
        self, id: str, what: str, by: Actor | str, comment: str, shown: str | None, key: str | None, to: str | None = None
    ) -> ApprovalView:
        valid_text(comment, "a comment", TEXTS.comment)
        if shown is not None:
            valid_name(shown, "the hash of what was shown")
        known = None if key is None else valid_name(key, "a key")
        if not by:
            raise ValueError("say who decides: by=rhythm.Actor(name, roles), or by=name if you answer for the roles")
        actor, hold = acting(by), not self.settings.auto_resume_after_approval
        verdict = self.store.decide(_possible(id), Decision(actor, what, comment, shown, known, to, hold))
        if verdict is None:
            no_approval(id)
        after = self._approval(id)
        if verdict.refusal:
            _refuse(verdict.refusal, after, actor.name, to)
        self._wake()
        return self._views([after])[0]

    # pauses

    def pause(
        self, id: Id, reason: str = "", by: By = None, *, timeout: float | str | None = None, then: Then = "resume"
    ) -> bool:  # fmt: skip
        """Holds a workflow where it is: tasks that are running end, signals and results are kept, timers go on, and no turn is taken.

        With a `timeout` it goes on by itself after that time, or (`then="cancel"`) is cancelled. False: it has ended already.
        """
        if then not in (RESUME, CANCEL):
            raise ValueError(f"then is resume or cancel, not {then!r:.80}")
        row = self._workflow_row_of(id, "paused")
        timeout_s = None if timeout is None else duration_s(timeout)
        done = self.store.pause([row.id], reason=valid_text(reason, "reason"), actor=acting(by), timeout_s=timeout_s, then=then)
        return self._done(id, done)

    def resume(self, id: Id, reason: str = "", by: By = None, *, data: Any = None) -> bool:
        """Lets a workflow go on that somebody paused. It sees `data`, an object, as `ctx.resume_data`; JSON steps merge it into their
        context. False: it is not paused, or waits for a decision or an event (see `resume_options`).

        `Undecidable` if there is data while somebody is asked to decide: they would decide about something else than they were shown.
        """
        if data is not None and not isinstance(data, dict):
            raise ValueError(f"the data of a resume is an object, not {data!r:.80}")
        row = self._workflow_row_of(id, "resumed")
        self._leave_results_alone(row, data or {})
        return self._done(id, self.store.resume([row.id], reason=valid_text(reason, "reason"), data=dump(data, "data"), actor=acting(by)))

    def _leave_results_alone(self, row: Execution, data: dict[str, Any]) -> None:
        """`ValueError` for data that would stand in the place of what a step of a workflow in JSON has given, a decision above all."""
        program = self.program(row.name, row.version)
        results = {"approval", *(step for _, step, _ in program.steps)} if program is not None and program.steps else set()
        if taken := sorted(results & data.keys()):
            raise ValueError(f"the data of a resume cannot replace `{taken[0]}`, which is the result of a step")

    def _done(self, id: Id, done: Any) -> bool:
        if str(id) not in done:
            unknown_execution(id)
        self._wake()
        return bool(done[str(id)])

    def _workflow_row_of(self, id: Id, what: str) -> Execution:
        row = self._execution(id)
        if row.type != WORKFLOW:
            raise ValueError(f"{id} is a task: only workflows are {what}")
        return row

    def status(self, id: Id) -> StatusView:
        """Where an execution is, and of a paused one why, where, and what comes next."""
        row, requests = self._execution(id), self.store.last_resumes(str(id))
        program = self.program(row.name, row.version) if row.type == WORKFLOW else None
        step, after = position_of(program, row.statement) if program is not None and row.finished_at is None else (None, None)
        data = [request.trigger_data for request in requests if request.triggered_by != "event" and request.trigger_data != "null"]
        return StatusView(
            row.id, row.name, row.status, paused_at(row), paused_reason(row), (row.paused_at and row.paused_by) or "",
            moment_of(row.paused_until), step, after, load(data[-1]) if data else None,
            moment(requests[-1].requested_at) if requests else None, requests[-1].error_message if requests else None,
        )  # fmt: skip

    def resume_options(self, id: Id) -> tuple[str, ...]:
        """What would let an execution go on: `approve`, `reject`, `escalate`, `publish`, `resume`; nothing if it needs nobody."""
        row = self._execution(id)
        if row.finished_at is not None or row.status != "paused":
            return ()
        if row.paused_at is not None:
            return ("resume",)
        waits = operations(load(row.awaiting))
        open_ = self.store.approvals(None, "open", row.id, None, LARGEST_PAGE) if "approval" in waits else []
        escalates = any(json.loads(each.stages) for each in open_)
        return (
            *(("approve", "reject") if open_ else ()), *(("escalate",) if escalates else ()), *(("publish",) if "event" in waits else ()),
        )  # fmt: skip

    def resume_requests(self, id: Id) -> ResumeRequests:
        """Whatever let an execution go on, oldest first."""
        self._execution(id)
        return [_request(row) for row in self.store.resumes(str(id))]

    def resume_page(self, id: Id, limit: int = 50, cursor: str | None = None, *, most_bytes: int | None = None) -> ResumePage:
        """Some of what let an execution go on, oldest first. Give the `cursor` of a page to get the next one."""
        limit, after = min(at_least(limit, 1, "limit"), LARGEST_PAGE), number_of(cursor)
        rows, more = page_of(self.store.resumes(self._execution(id).id, after, limit + 1, most_bytes), limit)
        return ResumePage(tuple(_request(row) for row in rows), str(rows[-1].id) if more else None)


def _possible(id: Any) -> str:
    """The id of an approval that there may be: what no database could hold is asked of none."""
    return str(id) if can_be(id) else no_approval(id)


def no_approval(id: Any) -> NoReturn:
    raise UnknownApproval(f"there is no approval {id!r:.200}")


def _refuse(code: str, approval: StoredApproval, actor: str, to: str | None) -> NoReturn:
    names = " and ".join(json.loads(approval.decided_by or "[]"))
    stages = ", ".join(f"`{role}`" for role, *_ in json.loads(approval.stages)) or "no role after this one"
    message = REFUSALS[code].format(
        actor=actor, role=approval.role, id=approval.id, execution=approval.execution_id, status=_status(approval), by=names or "nobody",
        to=f" to `{to}`" if to else "", stages=stages, most=MAX_CONTRIBUTORS,
    )  # fmt: skip
    raise (Denied if code in DENIALS else Undecidable)(message, code)


def _status(row: StoredApproval) -> str:
    if row.ended_at is None:
        return "open"
    return row.decision or "cancelled"


def _view(row: StoredApproval, made: list[StoredDecision]) -> ApprovalView:
    return ApprovalView(
        row.id, row.execution_id, row.workflow, row.role, row.reason, load(row.data), row.quorum, row.four_eyes, row.requested_by,
        moment(row.created_at), moment_of(row.deadline_at) if row.ended_at is None else None, row.on_deadline, _status(row),
        tuple(DecisionView(each.actor, each.role, each.decision, each.comment, moment(each.at)) for each in made), row.shown,
        tuple(role for role, *_ in json.loads(row.stages)), row.comment or "", moment_of(row.ended_at),
    )  # fmt: skip


def _request(row: ResumeRequest) -> ResumeRequestView:
    return ResumeRequestView(
        row.id, row.execution_id, row.triggered_by, row.triggered_by_id, load(row.trigger_data), row.reason, moment(row.requested_at),
        moment_of(row.executed_at), row.error_message,
    )  # fmt: skip
