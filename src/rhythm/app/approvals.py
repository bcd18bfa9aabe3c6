"""Approvals of an application: what people are asked to decide, and their decisions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from rhythm.app.actors import acting
from rhythm.app.checks import (
    LARGEST_PAGE,
    at_least,
    can_be,
    page_of,
    parse_execution_id,
    place_after,
    place_of,
    valid_name,
    valid_text,
)
from rhythm.app.views import PageOf, as_json, moment, moment_of
from rhythm.engine.payload import load
from rhythm.errors import Denied, RhythmError, Undecidable, UnknownApproval
from rhythm.limits import TEXTS
from rhythm.permissions import Scope
from rhythm.record import Record
from rhythm.store.access import Actor
from rhythm.store.approvals import (
    APPROVE,
    ESCALATE,
    REJECT,
    Choice,
    Decision,
    RefusalCode,
    StoredApproval,
    StoredDecision,
    Verdict,
    family_of,
)
from rhythm.store.provenance import MAX_CONTRIBUTORS

if TYPE_CHECKING:
    from rhythm.app.context import AppContext
    from rhythm.app.handle import Id

STATUSES = ("open", "approved", "rejected", "expired", "cancelled")
REFUSALS: dict[RefusalCode, str] = {
    "wrong_role": "{actor} does not hold the role `{role}`, which it takes to decide {id}",
    "role_revoked": "{actor} holds the role `{role}` no longer, which it takes to decide {id}",
    "self_approval": "{actor} started {execution} or gave it data, and cannot decide about it: "
    "it takes four eyes; somebody else with the role `{role}` must",
    "too_many_contributors": "more people than are kept ({most:,}) took part in {execution}, so "
    "nobody can be shown to be uninvolved: let the workflow ask with `four_eyes: false`",
    "already_decided": "{id} is {status} already, by {by}: nothing was changed",
    "decision_repeated": "{actor} has decided about {id} already: nothing was changed",
    "approval_changed": "{id} has changed since it was read: look at it again, and decide with its "
    "new content hash",
    "approval_expired": "the time to decide about {id} is over: nothing was changed",
    "approval_cancelled": "{id} was cancelled: its execution waits for it no longer",
    "no_escalation": "{id} cannot be escalated{to}: its workflow names {stages}",
}
DENIALS = ("wrong_role", "role_revoked", "self_approval", "too_many_contributors")


class DecisionView(Record):
    """A decision of one person: approve, reject or escalate."""

    actor: str
    role: str
    decision: str
    comment: str
    at: datetime

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values; times as ISO 8601."""
        return as_json(self)


class ApprovalView(Record):
    """An approval: what is asked, who may decide, until when, and the decisions so far."""

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
    on_deadline: str  # what happens then: expire, or escalate to the first of `escalations`
    status: str  # open, approved, rejected, expired, cancelled
    decisions: tuple[DecisionView, ...]
    # the hash of what is to be decided; a decision that gives this hash is refused if it changed
    content_hash: str
    escalations: tuple[str, ...]  # roles to which it can still be escalated
    comment: str
    ended_at: datetime | None
    shown: str  # the older name of `content_hash`, for programs that read it

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values; times as ISO 8601."""
        return as_json(self)


class ApprovalPage(PageOf[ApprovalView]):
    """One page of approvals, newest first: a sequence of them (`app.approvals()[0]`).

    `cursor` asks for the next page; None means that there are no more.
    """


class WantedDecision(Record):
    """A decision that somebody wants to make: the arguments of `approve`, `reject` or
    `escalate`."""

    id: str | ApprovalView
    what: Choice
    by: Actor | str
    comment: str = ""
    content_hash: str | None = None
    key: str | None = None
    to: str | None = None  # escalate: to this role

    @property
    def family(self) -> str:
        """A word that decisions about approvals of one family have in common: they cannot be made
        together."""
        return family_of(self.id.id if isinstance(self.id, ApprovalView) else self.id)


class Approvals:
    """What people decide. Calling it returns a page of approvals."""

    def __init__(self, context: AppContext) -> None:
        self._context, self._store = context, context.store

    def __call__(
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
        """Returns a page of approvals, newest first: the open ones, or those with another `status`.

        - `status`: None lists all.
        - `role`, `execution`: only those that this role decides, or of this execution.
        - `cursor`: of the page before, to get the next one.
        - `scope`: only approvals of executions with a name at their root that matches a pattern.
        - `most_bytes`: the page ends early when it has this size.
        """
        if status is not None and status not in STATUSES:
            raise ValueError(f"status is one of {', '.join(STATUSES)}, not {status!r:.80}")
        limit = min(at_least(limit, 1, "limit"), LARGEST_PAGE)
        asked = None if role is None else valid_name(role, "a role")
        of = None if execution is None else parse_execution_id(execution)
        found = self._store.people.approvals(
            asked,
            status,
            of,
            place_of(cursor),
            limit + 1,
            self._context.names_in(scope),
            most_bytes,
        )
        rows, more = page_of(found, limit)
        views = tuple(self._views(rows))
        return ApprovalPage(views, place_after(views[-1]) if more else None)

    def get(self, id: str | ApprovalView) -> ApprovalView:
        """Returns one approval. Raises `UnknownApproval` if there is none with this id."""
        return self._views([self._stored(id)])[0]

    def _stored(self, id: str | ApprovalView) -> StoredApproval:
        known = _possible(id)
        found = self._store.people.approval(known)
        return found if found is not None else no_approval(known)

    def _views(self, rows: list[StoredApproval]) -> list[ApprovalView]:
        made: dict[str, list[StoredDecision]] = {}
        for each in self._store.people.decisions([row.id for row in rows]) if rows else ():
            made.setdefault(each.approval_id, []).append(each)
        return [_view(row, made.get(row.id, [])) for row in rows]

    def approve(
        self,
        id: str | ApprovalView,
        *,
        by: Actor | str,
        comment: str = "",
        content_hash: str | None = None,
        key: str | None = None,
        shown: str | None = None,
    ) -> ApprovalView:
        """Approves, and returns the approval.

        The last approval of its quorum lets the execution go on.

        - `by`: an actor with its roles, or only a name: then no role is checked, so your program
          must have done that.
        - `content_hash`: that of the approval that the decider saw; `Undecidable` is raised if the
          approval has changed since.
        - `key`: to repeat a call with the same key changes nothing.
        - `shown`: the older name of `content_hash`.

        Raises `Denied` if the actor does not hold the role or, by the rule of four eyes, took part
        in the work: started the execution, or gave it data.
        """
        seen = one_hash(content_hash, shown)
        return self.decide(WantedDecision(id, APPROVE, by, comment, seen, key))

    def reject(
        self,
        id: str | ApprovalView,
        *,
        by: Actor | str,
        comment: str = "",
        content_hash: str | None = None,
        key: str | None = None,
        shown: str | None = None,
    ) -> ApprovalView:
        """Rejects: one rejection ends the approval, whatever its quorum. See `approve`."""
        seen = one_hash(content_hash, shown)
        return self.decide(WantedDecision(id, REJECT, by, comment, seen, key))

    def escalate(
        self,
        id: str | ApprovalView,
        *,
        by: Actor | str,
        to: str | None = None,
        comment: str = "",
        content_hash: str | None = None,
        key: str | None = None,
        shown: str | None = None,
    ) -> ApprovalView:
        """Hands an approval to the next role that its workflow names, or to the role `to` of these.

        The time to decide begins anew. See `approve`.
        """
        seen = one_hash(content_hash, shown)
        return self.decide(WantedDecision(id, ESCALATE, by, comment, seen, key, to))

    def decide_all(self, wanted: Sequence[WantedDecision]) -> list[ApprovalView | Exception]:
        """Makes decisions of several people in one transaction, and returns the approvals, in
        order; for a decision that is refused, the error that it would raise alone.

        No two may be about approvals of one family. Raises `NotTogether` if another transaction
        holds what one of them needs, for long: nothing was done. `decide` waits.
        """
        return self._answers(wanted, patient=False)

    def decide(self, wanted: WantedDecision) -> ApprovalView:
        """Makes a decision, and returns the approval: see `approve`."""
        (answer,) = self._answers([wanted], patient=True)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _answers(
        self, wanted: Sequence[WantedDecision], patient: bool
    ) -> list[ApprovalView | Exception]:
        answers = dict[int, ApprovalView | Exception]()
        possible = dict[int, tuple[str, Decision]]()
        for n, each in enumerate(wanted):
            try:
                possible[n] = _possible(each.id), self._decision(each)
            except (ValueError, RhythmError) as problem:
                answers[n] = problem
        decisions = [*possible.values()]
        verdicts = self._store.people.decide_all(decisions, patient=patient) if possible else []
        for (n, (id, decision)), verdict in zip(possible.items(), verdicts, strict=True):
            try:
                answers[n] = _answer(id, decision, verdict)
            except RhythmError as refusal:
                answers[n] = refusal
        self._context.wake()
        return [answers[n] for n in range(len(wanted))]

    def _decision(self, wanted: WantedDecision) -> Decision:
        """Returns a decision as the store takes it. Raises `ValueError` if it is not possible."""
        valid_text(wanted.comment, "a comment", TEXTS.comment)
        seen, key, to = wanted.content_hash, wanted.key, wanted.to
        if seen is not None:
            valid_name(seen, "a content hash")
        if not wanted.by:
            raise ValueError(
                "say who decides: by=rhythm.Actor(name, roles), or by=name if your "
                "program has checked the roles"
            )
        return Decision(
            acting(wanted.by),
            wanted.what,
            wanted.comment,
            seen,
            None if key is None else valid_name(key, "a key"),
            None if to is None else valid_name(to, "a role"),
            not self._context.settings.auto_resume_after_approval,
        )


def _answer(id: str, made: Decision, verdict: Verdict | None) -> ApprovalView:
    """Returns the approval as a decision left it. Raises an error if the decision was refused."""
    if verdict is None or verdict.approval is None or verdict.after is None:
        no_approval(id)
    if verdict.refusal:
        _refuse(verdict.refusal, verdict.approval, made.actor.name, made.to)
    return _view(verdict.after, verdict.decisions)


def one_hash(content_hash: str | None, shown: str | None) -> str | None:
    """Returns the content hash that the caller gave, under its name or under the older one.

    Raises `ValueError` for two that differ: the decision would be about two things.
    """
    if None not in (content_hash, shown) and content_hash != shown:
        raise ValueError("give content_hash alone: shown is its older name")
    return shown if content_hash is None else content_hash


def _possible(id: Any) -> str:
    """Returns the id of an approval, given as its id or its view.

    Raises `UnknownApproval` if no approval can have it: databases are never asked for an id that
    they could not hold.
    """
    id = id.id if isinstance(id, ApprovalView) else id
    return str(id) if can_be(id) else no_approval(id)


def no_approval(id: Any) -> NoReturn:
    """Raises `UnknownApproval`."""
    raise UnknownApproval(f"there is no approval {id!r:.200}")


def _refuse(code: RefusalCode, approval: StoredApproval, actor: str, to: str | None) -> NoReturn:
    """Raises `Denied` or `Undecidable` for a decision that the store refused, and says why."""
    names = " and ".join(json.loads(approval.decided_by or "[]"))
    stages = (
        ", ".join(f"`{role}`" for role, *_ in json.loads(approval.stages))
        or "no role after this one"
    )
    message = REFUSALS[code].format(
        actor=actor,
        role=approval.role,
        id=approval.id,
        execution=approval.execution_id,
        status=_status(approval),
        by=names or "nobody",
        to=f" to `{to}`" if to else "",
        stages=stages,
        most=MAX_CONTRIBUTORS,
    )
    raise (Denied if code in DENIALS else Undecidable)(message, code)


def _status(row: StoredApproval) -> str:
    if row.ended_at is None:
        return "open"
    return row.decision or "cancelled"


def _view(row: StoredApproval, made: Sequence[StoredDecision]) -> ApprovalView:
    content_hash = row.content_hash
    return ApprovalView(
        row.id,
        row.execution_id,
        row.workflow,
        row.role,
        row.reason,
        load(row.data),
        row.quorum,
        row.four_eyes,
        row.requested_by,
        moment(row.created_at),
        moment_of(row.deadline_at) if row.ended_at is None else None,
        row.on_deadline,
        _status(row),
        tuple(
            DecisionView(each.actor, each.role, each.decision, each.comment, moment(each.at))
            for each in made
        ),
        content_hash,
        tuple(role for role, *_ in json.loads(row.stages)),
        row.comment or "",
        moment_of(row.ended_at),
        shown=content_hash,
    )
