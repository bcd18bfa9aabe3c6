"""Approvals, pauses and resumes on SQLite."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from rhythm.store.access import Act, Actor
from rhythm.store.acts import deadline_act, decision_act, pause_acts, pause_over_act, resume_acts
from rhythm.store.approvals import (
    EXPIRED,
    IS_CANCELLED,
    RESUME,
    SERVICE,
    AfterPause,
    ApprovalEnd,
    Decision,
    ResumeRequest,
    StoredApproval,
    StoredDecision,
    Verdict,
    contributors_of,
    contributors_of_resume,
    counted,
    deadline_of_pause,
    decision_row,
    end_by,
    gives_data,
    judge,
    must_be_apart,
    next_stage,
    pause_cancels,
    refuse_data,
)
from rhythm.store.interfaces.people import PeopleStore
from rhythm.store.reading import Found
from rhythm.store.rows import fields, records
from rhythm.store.sqlite.role import SqliteRole
from rhythm.store.sqlite.rows import SqliteFound
from rhythm.store.sqlite.session import SQL

OF_ROOTS = """EXISTS (SELECT 1 FROM executions i CROSS JOIN executions r ON r.id = i.root_id
  WHERE i.id = a.execution_id AND r.name IN (SELECT value FROM json_each(?)))"""


class SqlitePeople(SqliteRole, PeopleStore):
    def decide_all(
        self, wanted: Sequence[tuple[str, Decision]], *, patient: bool = False
    ) -> list[Verdict | None]:
        must_be_apart([id for id, _ in wanted])
        with self.db.transaction():
            now, found = self.db.clock(), self._asked([id for id, _ in wanted])
            asked = [(id, decision) for id, decision in wanted if id in found]
            verdicts = dict(zip(found, self._judged(asked, found, now), strict=True))
            done = list[tuple[Actor, Act]]()
            for id, decision in asked:
                if verdicts[id].counts:
                    row = decision_row(found[id], len(verdicts[id].decisions), decision, now)
                    done.append((decision.actor, decision_act(row, verdicts[id])))
                    self._write(decision, row, verdicts[id], now)
                    verdicts[id] = counted(verdicts[id], row, now)
            self.auditor.add_all(done, now)
            return [verdicts.get(id) for id, _ in wanted]

    def _asked(self, ids: Sequence[str]) -> dict[str, StoredApproval]:
        """Returns those of these approvals that people are asked for, by id and in this order."""
        text = f"{SQL['approval']} WHERE a.id IN (SELECT value FROM json_each(?)) AND NOT a.held"
        found = records(StoredApproval, self.db.run(text, (json.dumps(list(ids)),))[0])
        approvals = {each.id: each for each in found}
        return {id: approvals[id] for id in ids if id in approvals}

    def _judged(
        self, asked: Sequence[tuple[str, Decision]], found: dict[str, StoredApproval], now: int
    ) -> list[Verdict]:
        """Returns the verdicts on decisions about these approvals, in order."""
        ids = json.dumps([id for id, _ in asked])
        people, made, void = (defaultdict[str, list[Any]](list) for _ in range(3))
        executions = json.dumps([each.execution_id for each in found.values()])
        for execution_id, person in self.db.all("contributors", executions):
            people[execution_id].append(person)
        for each in records(StoredDecision, self.db.all("decisions", ids)):
            made[each.approval_id].append(each)
        for id, token in self.db.all("void_tokens", ids) if made else ():
            void[id].append(token)
        roles = self.auditor.business_roles(
            [(decision.actor, found[id].execution_id) for id, decision in asked], now
        )
        return [
            judge(found[id], made[id], wanted, *held, people[found[id].execution_id], now, void[id])
            for (id, wanted), held in zip(asked, roles, strict=True)
        ]

    def _write(self, made: Decision, row: StoredDecision, verdict: Verdict, now: int) -> None:
        """Writes a decision that counts, and what follows from it."""
        approval = verdict.approval
        assert approval is not None
        self.db.all("insert_decision", fields(row))
        self.rows.contribute(approval.execution_id, contributors_of(made), now)
        if verdict.stage is not None:
            self._escalate(approval, verdict.stage, now)
        if verdict.ended:
            self._end_approval(approval, end_by(verdict.ended, verdict.by, made.comment), now)
        if verdict.ended and made.then_pause:
            values = {"id": approval.execution_id, "by": made.actor.name, "now": now}
            self.db.all("pause_after_decision", values)

    def _end_approval(self, approval: StoredApproval, end: ApprovalEnd, now: int) -> None:
        self.db.all("end_approval", {**fields(end), "id": approval.id, "now": now})
        self.rows.resumed(approval.execution_id, "approval", approval.id, end.data, now)
        self.rows.wake(approval.execution_id, now)

    def _escalate(self, approval: StoredApproval, stage: int, now: int) -> None:
        self.db.all(
            "escalate_approval", {**next_stage(approval, stage), "id": approval.id, "now": now}
        )
        self.rows.notify(approval.id, "escalated", now)

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
            ("a.role = ?", role),
            (family, execution_id, f"{execution_id}.", f"{execution_id}/"),
            ("(a.created_at, a.id) < (?, ?)", *(before or [None])),
            (OF_ROOTS, None if names is None else json.dumps(names)),
        )
        for condition, *values in conditions:
            if values[0] is not None:
                where.append(condition)
                args += values
        if status == "open":
            where.append("a.ended_at IS NULL")
        elif status == "cancelled":
            where.append(IS_CANCELLED)
        elif status is not None:
            where.append("a.decision = ?")
            args.append(status)
        text = (
            f"{SQL['approval']} WHERE {' AND '.join(where)} ORDER BY a.created_at DESC, a.id "
            f"DESC LIMIT ?"
        )
        rows, cut = self.db.read_some(text, (*args, limit), most_bytes)
        return Found.of(records(StoredApproval, rows), cut)

    def approval(self, id: str) -> StoredApproval | None:
        found = records(
            StoredApproval, self.db.read(f"{SQL['approval']} WHERE a.id = ? AND NOT a.held", (id,))
        )
        return found[0] if found else None

    def decisions(self, ids: Sequence[str]) -> list[StoredDecision]:
        return records(StoredDecision, self.db.read(SQL["decisions"], (json.dumps(list(ids)),)))

    def pause(
        self,
        ids: Sequence[str],
        *,
        reason: str = "",
        actor: Actor | None = None,
        timeout_s: float | None = None,
        then: AfterPause = RESUME,
        metadata: str | None = None,
    ) -> dict[str, bool]:
        with self.db.transaction():
            now, known = self.db.clock(), self.rows.known(ids)
            timeout_us, then_what = deadline_of_pause(timeout_s, then)
            by = actor.name if actor else ""
            values = {
                "reason": reason,
                "by": by,
                "timeout_us": timeout_us,
                "then": then_what,
                "metadata": metadata,
                "now": now,
            }
            paused = {id: bool(self.db.count("pause", {**values, "id": id})) for id in known}
            self._wake_changed(known, paused, now)
            changed = [id for id, was_changed in paused.items() if was_changed]
            acts = pause_acts(changed, reason, timeout_s, then_what, metadata)
            self.auditor.record(actor, acts, now)
            return paused

    def resume(
        self,
        ids: Sequence[str],
        *,
        reason: str = "",
        data: str = "null",
        actor: Actor | None = None,
        metadata: str | None = None,
    ) -> dict[str, bool]:
        with self.db.transaction():
            now, known = self.db.clock(), self.rows.known(ids)
            for id in known if gives_data(data) else ():
                refuse_data(id, data, [open_ for (open_,) in self.db.all("asked_for", {"id": id})])
            resumed = {id: bool(self.db.all("unpause", id)) for id in known}
            freed = [id for id, changed in resumed.items() if changed]
            by = actor.name if actor else ""
            for id in freed:
                self.rows.resumed(id, "manual", by, data, now, reason, metadata or "null")
                self.rows.contribute(id, contributors_of_resume(actor, data), now)
            self._wake_changed(known, resumed, now)
            self.rows.queue_again(freed)
            self.auditor.record(actor, resume_acts(freed, reason, data, metadata), now)
            return resumed

    def _wake_changed(
        self, known: dict[str, SqliteFound], changed: dict[str, bool], now: int
    ) -> None:
        """Wakes the executions that were changed, so that their owners look again.

        An execution that is held back is not woken: it looks when it begins.
        """
        for id, found in known.items():
            if changed[id] and not found.held:
                self.rows.wake(id, now)

    def resumes(
        self, id: str, after: int = 0, limit: int | None = None, most_bytes: int | None = None
    ) -> Found[ResumeRequest]:
        rows, cut = self.db.read_some(
            SQL["resumes"], (id, after, -1 if limit is None else limit), most_bytes
        )
        return Found.of(records(ResumeRequest, rows), cut)

    def last_resumes(self, id: str) -> list[ResumeRequest]:
        return records(ResumeRequest, self.db.read(SQL["last_resumes"], {"id": id}))

    def fire_approvals(self, limit: int, now: int) -> int:
        """Ends or escalates the approvals whose deadline has passed. Returns how many."""
        due = [
            approval
            for (id,) in self.db.all("due_approvals", now, limit)
            if (approval := self.rows.approval(id))
        ]
        for approval in due:
            if approval.escalates:
                self._escalate(approval, 0, now)
            else:
                self._end_approval(approval, end_by(EXPIRED), now)
        self.auditor.add(SERVICE, [deadline_act(approval) for approval in due], now)
        return len(due)

    def fire_pauses(self, limit: int, now: int) -> int:
        """Ends the pauses whose time is over. Returns how many."""
        due = self.db.all("due_pauses", now, limit)
        for id, then in due:
            self.db.all("unpause", id)
            if pause_cancels(then):
                self.rows.cancel(id, self.rows.find(id), now)
            else:
                self.rows.resumed(id, "timeout", "", "null", now)
                self._wake_changed(self.rows.known([id]), {id: True}, now)
                self.rows.queue_again([id])
        self.auditor.add(SERVICE, [pause_over_act(id, then) for id, then in due], now)
        return len(due)
