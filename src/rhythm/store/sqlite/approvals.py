"""Approvals, pauses and resumes on SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from rhythm.ids import child_id
from rhythm.store.access import Actor
from rhythm.store.acts import deadline_act, decision_act, pause_acts, pause_over_act, resume_acts
from rhythm.store.approvals import (
    CANCEL,
    ESCALATE,
    EXPIRED,
    RESUME,
    SERVICE,
    ApprovalStore,
    Decision,
    NewApproval,
    ResumeRequest,
    StoredApproval,
    StoredDecision,
    Verdict,
    judge,
    message_of,
    next_stage,
    notice,
    refuse_data,
)
from rhythm.store.base import TASK, NewExecution
from rhythm.store.provenance import commenter, provenance_of
from rhythm.store.reading import Found
from rhythm.store.rows import fields, records
from rhythm.store.sqlite.access import SqliteAccess
from rhythm.store.sqlite.rows import Known, Rows
from rhythm.store.sqlite.session import SQL, US

OF_ROOTS = """EXISTS (SELECT 1 FROM executions i CROSS JOIN executions r ON r.id = i.root_id
  WHERE i.id = a.execution_id AND r.name IN (SELECT value FROM json_each(?)))"""


class SqliteApprovals(Rows, SqliteAccess, ApprovalStore):
    def decide(self, id: str, decision: Decision) -> Verdict | None:
        with self._transaction():
            approval, now, actor = self._approval(id), self.clock(), decision.actor
            if approval is None or approval.held:
                return None
            held, revoked = self._business_roles(actor, now, approval.execution_id)
            contributors = [name for (name,) in self._all("contributors", approval.execution_id)]
            void = [token for (token,) in self._all("void_tokens", id)]
            verdict = judge(approval, self._decisions([id]), decision, held, revoked, contributors, now, void)
            if not verdict.refusal and not verdict.repeated:
                self._count_decision(approval, decision, verdict, now)
            return verdict

    def _count_decision(self, approval: StoredApproval, made: Decision, verdict: Verdict, now: int) -> None:
        actor, id = made.actor, approval.id
        row = StoredDecision(
            id,
            len(self._decisions([id])),
            actor.name,
            approval.role,
            made.decision,
            made.comment,
            approval.shown,
            made.key,
            actor.token,
            now,
            approval.escalated,
        )
        self._all("insert_decision", fields(row))
        self._contribute(approval.execution_id, [commenter(actor)] if made.comment else (), now)
        if verdict.stage is not None:
            self._escalate(approval, verdict.stage, now)
        if verdict.ended:
            self._end_approval(approval, verdict.ended, verdict.by, made.comment, now)
        if verdict.ended and made.hold:
            self._all("hold", {"id": approval.execution_id, "by": actor.name, "now": now})
        self._audit(actor, [decision_act(row, verdict)], now)

    def _end_approval(self, approval: StoredApproval, decision: str, by: Sequence[str], comment: str, now: int) -> None:
        names, data = json.dumps(list(by)), json.dumps({"decision": decision, "by": list(by), "comment": comment})
        self._all("end_approval", {"id": approval.id, "decision": decision, "by": names, "comment": comment, "now": now})
        self._resumed(approval.execution_id, "approval", approval.id, data, now)
        self._wake(approval.execution_id, now)

    def _escalate(self, approval: StoredApproval, stage: int, now: int) -> None:
        self._all("escalate_approval", {**next_stage(approval, stage), "id": approval.id, "now": now})
        self._notify(approval.id, "escalated", now)

    def _notify(self, id: str, what: str, now: int) -> None:
        approval = self._approval(id)
        task = notice(approval, what) if approval else None
        if task:
            self._start(NewExecution(type=TASK, **task), now)

    # for turns

    def _request(self, execution_id: str, new: NewApproval, now: int) -> None:
        id, timeout_us = child_id(execution_id, new.n), None if new.timeout_s is None else int(new.timeout_s * US)
        place = {"id": id, "execution_id": execution_id, "timeout_us": timeout_us, "now": now}
        self._all("insert_approval", fields(new) | place)
        if not new.held:
            self._notify(id, "requested", now)

    def _release_approvals(self, execution_id: str, first: int, last: int, now: int) -> None:
        for (id,) in self._all("release_approvals", {"id": execution_id, "first": first, "last": last, "now": now}):
            self._notify(id, "requested", now)

    def _executed(self, id: str, upto: int, error: str | None, now: int) -> None:
        """What let an execution go on has led to a turn; one that has failed with it says why."""
        message = message_of(error) if error else None
        self._all("executed_resumes", {"id": id, "upto": upto, "error": message, "now": now})

    def _resumed(self, id: str, by: str, by_id: str, data: str, now: int, reason: str = "") -> None:
        self._all("insert_resume", {"id": id, "by": by, "by_id": by_id, "data": data, "reason": reason, "now": now})

    # pauses

    def pause(
        self, ids: Sequence[str], *, reason: str = "", actor: Actor | None = None, timeout_s: float | None = None, then: str = RESUME
    ) -> dict[str, bool]:
        with self._transaction():
            now, known = self.clock(), self._known(ids)
            timeout_us = None if timeout_s is None else int(timeout_s * US)
            by, then_what = actor.name if actor else "", then if timeout_s is not None else None
            values = {"reason": reason, "by": by, "timeout_us": timeout_us, "then": then_what, "now": now}
            paused = {id: bool(self._count("pause", {**values, "id": id})) for id in known}
            self._look_up(known, paused, now)
            held = [id for id, changed in paused.items() if changed]
            self._record(actor, pause_acts(held, reason, timeout_s, then_what), now)
            return paused

    def resume(self, ids: Sequence[str], *, reason: str = "", data: str = "null", actor: Actor | None = None) -> dict[str, bool]:
        with self._transaction():
            now, known = self.clock(), self._known(ids)
            for id in known if data != "null" else ():
                refuse_data(id, data, [open_ for (open_,) in self._all("asked_for", {"id": id})])
            resumed = {id: bool(self._all("unpause", id)) for id in known}
            freed = [id for id, changed in resumed.items() if changed]
            for id in freed:
                self._resumed(id, "manual", actor.name if actor else "", data, now, reason)
                self._contribute(id, provenance_of(actor).contributors if data != "null" else (), now)
            self._look_up(known, resumed, now)
            self._queue_again(freed)
            self._record(actor, resume_acts(freed, reason, data), now)
            return resumed

    def _known(self, ids: Sequence[str]) -> dict[str, Known]:
        return {id: found for id in ids if (found := self._find(id))}

    def _look_up(self, known: dict[str, Known], changed: dict[str, bool], now: int) -> None:
        """Whoever has them looks again; one that is held back looks when it begins."""
        for id, found in known.items():
            if changed[id] and not found.held:
                self._wake(id, now)

    def _queue_again(self, ids: Iterable[str]) -> None:
        for id in ids:
            self._all("queue_again", id)

    # services

    def _fire_approvals(self, limit: int, now: int) -> int:
        """Those whose time is over go to the next who may decide, or expire."""
        due = [approval for (id,) in self._all("due_approvals", now, limit) if (approval := self._approval(id))]
        for approval in due:
            if approval.on_deadline == ESCALATE:
                self._escalate(approval, 0, now)
            else:
                self._end_approval(approval, EXPIRED, (), "", now)
        self._audit(SERVICE, [deadline_act(approval) for approval in due], now)
        return len(due)

    def _fire_pauses(self, limit: int, now: int) -> int:
        due = self._all("due_pauses", now, limit)
        for id, then in due:
            self._all("unpause", id)
            if then == CANCEL:
                self._cancel(id, self._find(id), now)
            else:
                self._resumed(id, "timeout", "", "null", now)
                self._look_up(self._known([id]), {id: True}, now)
                self._queue_again([id])
        self._audit(SERVICE, [pause_over_act(id, then) for id, then in due], now)
        return len(due)

    def _cancel(self, id: str, known: Known | None, now: int) -> bool:
        raise NotImplementedError

    # reading

    def approvals(
        self,
        role: str | None,
        status: str | None,
        execution_id: str | None,
        before: tuple[int, str] | None,
        limit: int,
        names: Sequence[str] | None = None,
        most_bytes: int | None = None,
    ) -> Found[StoredApproval]:
        where, args = ["NOT a.held"], list[Any]()
        family = "(a.execution_id = ? OR (a.execution_id >= ? AND a.execution_id < ?))"
        conditions = (
            ("a.role = ?", role), (family, execution_id, f"{execution_id}.", f"{execution_id}/"),
            ("(a.created_at, a.id) < (?, ?)", *(before or [None])), (OF_ROOTS, None if names is None else json.dumps(names)),
        )  # fmt: skip
        for condition, *values in conditions:
            if values[0] is not None:
                where.append(condition)
                args += values
        if status == "open":
            where.append("a.ended_at IS NULL")
        elif status == "cancelled":
            where.append("a.status = 7")
        elif status is not None:
            where.append("a.decision = ?")
            args.append(status)
        text = f"{SQL['approval']} WHERE {' AND '.join(where)} ORDER BY a.created_at DESC, a.id DESC LIMIT ?"
        rows, cut = self._read_some(text, (*args, limit), most_bytes)
        return Found.of(records(StoredApproval, rows), cut)

    def approval(self, id: str) -> StoredApproval | None:
        found = records(StoredApproval, self._read(f"{SQL['approval']} WHERE a.id = ? AND NOT a.held", (id,)))
        return found[0] if found else None

    def _approval(self, id: str) -> StoredApproval | None:
        rows, _ = self._run(f"{SQL['approval']} WHERE a.id = ?", (id,))
        found = records(StoredApproval, rows)
        return found[0] if found else None

    def decisions(self, ids: Sequence[str]) -> list[StoredDecision]:
        return records(StoredDecision, self._read(SQL["decisions"], (json.dumps(list(ids)),)))

    def _decisions(self, ids: Sequence[str]) -> list[StoredDecision]:
        return records(StoredDecision, self._all("decisions", json.dumps(list(ids))))

    def resumes(self, id: str, after: int = 0, limit: int | None = None, most_bytes: int | None = None) -> Found[ResumeRequest]:
        rows, cut = self._read_some(SQL["resumes"], (id, after, -1 if limit is None else limit), most_bytes)
        return Found.of(records(ResumeRequest, rows), cut)

    def last_resumes(self, id: str) -> list[ResumeRequest]:
        return records(ResumeRequest, self._read(SQL["last_resumes"], {"id": id}))
