"""Approvals as they are stored, and who may decide them: both stores ask `judge`, and only supply
the rows.

An approval is a row beside the execution that waits for it. A decision, its deadline or a cancel
ends it, whichever is first, and wakes the execution in the same transaction. `judge` is called
under the lock of the row, with the roles that the actor has at that moment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

from rhythm.errors import Undecidable
from rhythm.record import Record
from rhythm.store.access import Actor
from rhythm.store.lifecycle import CANCELLED as CANCELLED_STATUS
from rhythm.store.lifecycle import COMPLETED, StatusNumber
from rhythm.store.provenance import (
    EVERYBODY,
    commenter,
    is_contributor,
    person,
    provenance_of,
)

Choice = Literal["approve", "reject", "escalate"]  # what somebody decides
ApprovalOutcome = Literal["approved", "rejected", "expired"]
# what becomes of an approval whose deadline has passed
AfterDeadline = Literal["expire", "escalate"]
AfterPause = Literal["resume", "cancel"]  # what becomes of an execution whose pause is over
APPROVE: Final = "approve"
REJECT: Final = "reject"
ESCALATE: Final = "escalate"
APPROVED: Final = "approved"
REJECTED: Final = "rejected"
EXPIRED: Final = "expired"
RESUME: Final = "resume"
CANCEL: Final = "cancel"
IS_CANCELLED = f"a.status = {CANCELLED_STATUS}"  # of a row of `approvals` called a
SERVICE = Actor("rhythm", source="service")  # the actor when a deadline passes or a pause is over


class NewApproval(Record):
    """An approval that a turn asks for."""

    n: int
    role: str
    reason: str
    data: str  # JSON
    quorum: int = 1
    four_eyes: bool = True
    timeout_s: float | None = None
    on_deadline: AfterDeadline = "expire"  # "escalate": to the first of the stages
    # JSON: [role, timeout in seconds, what follows its deadline], in order.
    stages: str = "[]"
    notify: str = "null"  # JSON: {task, queue, attempts}
    held: bool = False


class StoredApproval(Record):
    """A row of `approvals`, and the name of the workflow that asks."""

    id: str
    execution_id: str
    n: int
    role: str
    reason: str
    data: str
    quorum: int
    four_eyes: bool
    requested_by: str | None
    stages: str
    notify: str
    timeout_us: int | None
    on_deadline: AfterDeadline
    deadline_at: int | None
    held: bool
    created_at: int
    escalated: int
    status: StatusNumber | None
    decision: ApprovalOutcome | None
    decided_by: str | None  # JSON: names
    comment: str | None
    ended_at: int | None
    workflow: str

    @property
    def content_hash(self) -> str:
        """The hash of what people see when they decide: the role, the reason, the data, and the
        quorum."""
        text = json.dumps(
            [self.id, self.role, self.reason, self.quorum, self.data], ensure_ascii=True
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def is_due(self, now: int) -> bool:
        """Whether its deadline has passed."""
        return self.deadline_at is not None and self.deadline_at <= now

    @property
    def escalates(self) -> bool:
        """Whether it goes to the next role when its deadline passes; otherwise it expires."""
        return self.on_deadline == ESCALATE


def pause_cancels(then: AfterPause) -> bool:
    """Returns whether an execution is cancelled when its pause is over; otherwise it goes on."""
    return then == CANCEL


class StoredDecision(Record):
    """A row of `approval_decisions`."""

    approval_id: str
    n: int
    actor: str
    role: str
    decision: Choice
    comment: str
    shown: str  # the content hash at that moment; the column and the audit have this older name
    key: str | None
    token: str | None
    at: int
    stage: int = 0  # how often the approval had been escalated


class Decision(Record):
    """A decision that somebody wants to make.

    `content_hash`: that of what they saw. `then_pause`: the execution is paused after the decision,
    until somebody resumes it.
    """

    actor: Actor
    decision: Choice
    comment: str = ""
    content_hash: str | None = None
    key: str | None = None
    to: str | None = None  # escalate: to this role of its stages; None: to the next
    then_pause: bool = False


RefusalCode = Literal[
    "", "wrong_role", "role_revoked", "self_approval", "too_many_contributors", "already_decided",
    "decision_repeated",
    "approval_changed", "approval_expired", "approval_cancelled", "no_escalation",
]  # fmt: skip


class Verdict(Record):
    """The result of judging a decision. Without a `refusal` it counts.

    `ended`: the approval is over, with this outcome. `approval`: the row that was judged, as it was
    under the lock. Messages to people are about this row, not about a later one. `after`: the row
    as the decision leaves it, with all `decisions` about it, so that nobody needs to read them.
    """

    refusal: RefusalCode = ""
    repeated: bool = False  # the same call was counted before
    ended: ApprovalOutcome | None = None
    by: tuple[str, ...] = ()
    stage: int | None = None  # the approval is escalated to this one of the stages
    approval: StoredApproval | None = None
    after: StoredApproval | None = None
    decisions: tuple[StoredDecision, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether the decision is to be written: it is not refused, and was not counted before."""
        return not self.refusal and not self.repeated


class NotTogether(Exception):
    """Decisions cannot be made together soon, as another transaction holds what one of them needs.
    Nothing was done: make each alone."""


def judge(
    approval: StoredApproval,
    made: Sequence[StoredDecision],
    wanted: Decision,
    roles: Collection[str] | None,
    revoked: Collection[str] = (),
    contributors: Collection[str] = (),
    now: int = 0,
    void: Collection[str] = (),
) -> Verdict:
    """Returns whether the decision counts, and what follows from it.

    `roles`: those of the actor now, None for all. `revoked`: roles that were taken away from the
    actor. `contributors`: everyone who took part in what is decided about. `void`: tokens that were
    revoked since they were used. A decision after the deadline comes too late, also if the service
    has not yet ended the approval.
    """
    verdict = _judged(approval, made, wanted, roles, revoked, contributors, now, void)
    return verdict.replace(approval=approval, after=approval, decisions=tuple(made))


def _judged(
    approval: StoredApproval,
    made: Sequence[StoredDecision],
    wanted: Decision,
    roles: Collection[str] | None,
    revoked: Collection[str],
    contributors: Collection[str],
    now: int,
    void: Collection[str],
) -> Verdict:
    name, who = wanted.actor.name, person(wanted.actor.name)
    valid = [each for each in made if each.token is None or each.token not in void]
    if approval.four_eyes:  # whoever gave data after voting takes part in it: no vote
        valid = [each for each in valid if not is_contributor(each.actor, contributors)]
    votes = [
        each for each in valid if each.stage == approval.escalated and each.decision != ESCALATE
    ]
    own = [each for each in valid if person(each.actor) == who]
    if any(
        each.key is not None and each.key == wanted.key and each.decision == wanted.decision
        for each in own
    ):
        return Verdict(repeated=True)
    if approval.ended_at is not None and approval.decision is None:
        return Verdict("approval_cancelled")
    if wanted.decision != ESCALATE and any(each in votes for each in own):
        return Verdict("decision_repeated")
    if approval.ended_at is not None:
        return Verdict("approval_expired" if approval.decision == EXPIRED else "already_decided")
    if approval.is_due(now):
        return Verdict("approval_expired")
    if wanted.content_hash not in (None, approval.content_hash):
        return Verdict("approval_changed")
    if roles is not None and approval.role not in roles:
        return Verdict("role_revoked" if approval.role in revoked else "wrong_role")
    if approval.four_eyes and EVERYBODY in contributors:
        return Verdict("too_many_contributors")
    if approval.four_eyes and is_contributor(name, contributors):
        return Verdict("self_approval")
    if wanted.decision == ESCALATE:
        return _escalated(approval, wanted)
    if wanted.decision == REJECT:
        return Verdict(ended=REJECTED, by=(name,))
    by = (*(each.actor for each in votes if each.decision == APPROVE), name)
    return Verdict(ended=APPROVED, by=by) if len(by) >= approval.quorum else Verdict()


class DecisionMade(Record):
    """A decision under four eyes, for the doctor."""

    approval_id: str
    n: int
    actor: str
    at: int
    decided_by: str | None  # JSON: whose votes ended the approval
    ended_at: int | None
    # JSON: the people of the family, and since when they took part in it.
    contributors: str


def decided_with_a_hand(decisions: Iterable[DecisionMade]) -> Iterator[tuple[str, str]]:
    """Yields decisions by people who took part in what they decided about.

    That counts at the time of the decision, and when their vote was counted.
    """
    for made in decisions:
        counted = made.actor in json.loads(made.decided_by or "[]")
        until = made.ended_at if counted and made.ended_at is not None else made.at
        if is_contributor(
            made.actor, [name for name, since in json.loads(made.contributors) if since < until]
        ):
            yield made.approval_id, f"{made.actor} took part in it, and decided"


def _escalated(approval: StoredApproval, wanted: Decision) -> Verdict:
    roles = [role for role, *_ in json.loads(approval.stages)]
    if not roles or (wanted.to is not None and wanted.to not in roles):
        return Verdict("no_escalation")
    return Verdict(stage=roles.index(wanted.to) if wanted.to is not None else 0)


def next_stage(approval: StoredApproval, stage: int = 0) -> dict[str, Any]:
    """Returns the new columns of an approval that is escalated to this one of its stages."""
    stages = json.loads(approval.stages)
    role, timeout_s, on_deadline = stages[stage]
    return {
        "role": role,
        "timeout_us": None if timeout_s is None else int(timeout_s * 1e6),
        "on_deadline": on_deadline,
        "stages": json.dumps(stages[stage + 1 :]),
    }


def notice(approval: StoredApproval, what: str) -> dict[str, Any] | None:
    """Returns the task that notifies people about an approval: id, name, queue, attempts and
    inputs. None if its workflow names no task.

    The id contains spaces, and ids that people choose cannot. So nobody can take the id first, and
    prevent the notification.
    """
    task = json.loads(approval.notify)
    if task is None:
        return None
    message = {
        "event": what,
        "approval_id": approval.id,
        "execution_id": approval.execution_id,
        "workflow": approval.workflow,
        "role": approval.role,
        "reason": approval.reason,
        "data": json.loads(approval.data),
        "deadline": _moment(approval.deadline_at),
    }
    id = f"{approval.id.replace('.', ' ')} {what} {approval.escalated}"
    return {
        "id": id,
        "name": task["task"],
        "queue": task["queue"],
        "max_attempts": task["attempts"],
        "inputs": json.dumps(message),
    }


def decision_row(approval: StoredApproval, n: int, made: Decision, now: int) -> StoredDecision:
    """Returns the row of a decision that counts, the `n`th about this approval."""
    return StoredDecision(
        approval_id=approval.id,
        n=n,
        actor=made.actor.name,
        role=approval.role,
        decision=made.decision,
        comment=made.comment,
        shown=approval.content_hash,
        key=made.key,
        token=made.actor.token,
        at=now,
        stage=approval.escalated,
    )


def counted(verdict: Verdict, row: StoredDecision, now: int) -> Verdict:
    """Returns the verdict on a decision that is written with this row: the approval is as it is
    then, and the row is the last of the decisions."""
    approval = verdict.approval
    assert approval is not None
    changes: dict[str, Any] = {}
    if verdict.stage is not None:
        stage = next_stage(approval, verdict.stage)
        lasts_us = stage["timeout_us"]
        deadline_at = None if lasts_us is None else now + lasts_us
        changes = {**stage, "deadline_at": deadline_at, "escalated": approval.escalated + 1}
    if verdict.ended:
        end = end_by(verdict.ended, verdict.by, row.comment)
        changes = {
            "status": COMPLETED,
            "decision": end.decision,
            "decided_by": end.by,
            "comment": end.comment,
            "ended_at": now,
        }
    return verdict.replace(after=approval.replace(**changes), decisions=(*verdict.decisions, row))


def family_of(id: str) -> str:
    """Returns what two approvals of one family have in common, of their ids.

    Their executions have the id of their root, and a number after each dot. Approvals of different
    families may have it in common, too, since people may choose ids with dots.
    """
    return id.partition(".")[0]


def must_be_apart(ids: Sequence[str]) -> None:
    """Fails if decisions about these approvals cannot be made together, as two of them are of one
    family: what the first changes, the second must be judged by."""
    assert len({*map(family_of, ids)}) == len(ids), "two decisions are about one family"


def contributors_of(made: Decision) -> tuple[str, ...]:
    """Returns who has given data to the execution by deciding: the actor, if there is a comment."""
    return (commenter(made.actor),) if made.comment else ()


class ApprovalEnd(Record):
    """The columns of an ended approval, and the JSON `data` that its execution goes on with."""

    decision: ApprovalOutcome
    by: str
    comment: str
    data: str


def end_by(decision: ApprovalOutcome, by: Sequence[str] = (), comment: str = "") -> ApprovalEnd:
    """Returns how an approval ends that these people decided.

    Without people, its deadline ended it.
    """
    data = {"decision": decision, "by": list(by), "comment": comment}
    return ApprovalEnd(decision, json.dumps(data["by"]), comment, json.dumps(data))


def detail(made: StoredDecision, verdict: Verdict) -> str:
    """Returns the detail of a decision, for the audit."""
    kept = {"role": made.role, "comment": made.comment, "shown": made.shown}
    return json.dumps({**kept, "ended": verdict.ended or ""})


def gives_data(data: str) -> bool:
    """Returns whether a resume with this JSON gives the execution any data."""
    return data not in ("null", "{}")


def contributors_of_resume(actor: Actor | None, data: str) -> tuple[str, ...]:
    """Returns who has given data to an execution by resuming it with this JSON."""
    return tuple(provenance_of(actor).contributors) if gives_data(data) else ()


def deadline_of_pause(
    timeout_s: float | None, then: AfterPause
) -> tuple[int | None, AfterPause | None]:
    """Returns how long a pause lasts, in microseconds, and what follows it; None: it has no end."""
    return (None, None) if timeout_s is None else (int(timeout_s * 1e6), then)


def refuse_data(execution_id: str, data: str, open_: Sequence[str]) -> None:
    """Raises `Undecidable` if data is given while approvals (`open_`) are open: it would change
    what people are asked to decide about."""
    if gives_data(data) and open_:
        raise Undecidable(
            (
                f"{execution_id} waits for the decision about {open_[0]}, which was shown "
                f"without this data: resume it without, or cancel it"
            ),
            "approval_open",
        )


def message_of(error: str) -> str | None:
    """Returns the message of an error, to record it with the resume that led to it. None if the
    error has none."""
    said = json.loads(error)
    return said.get("message") if isinstance(said, dict) else None


def _moment(us: int | None) -> str | None:
    return (
        None
        if us is None
        else datetime.fromtimestamp(us / 1e6, UTC).isoformat().replace("+00:00", "Z")
    )


class ResumeRequest(Record):
    """A row of `execution_resume_requests`: one thing that let an execution go on."""

    id: int
    execution_id: str
    triggered_by: str  # approval, event, manual or timeout
    triggered_by_id: str
    trigger_data: str  # JSON
    reason: str
    requested_at: int
    executed_at: int | None
    error_message: str | None
    metadata: str = "null"  # JSON
