"""Approvals, pauses and resumes on PostgreSQL.

A decision wakes the execution first: its ready row puts decisions that are made at once in an
order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg.errors import LockNotAvailable

from rhythm.errors import StoreError
from rhythm.record import Record
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
    NotTogether,
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
from rhythm.store.postgres.connection import SQL, UndoneError
from rhythm.store.postgres.role import PostgresRole
from rhythm.store.postgres.session import autocommit, transaction
from rhythm.store.postgres.wire import Row
from rhythm.store.reading import Found
from rhythm.store.rows import fields, records

OF_ROOTS = b"""EXISTS (SELECT 1 FROM executions i JOIN executions r ON r.id = i.root_id
  WHERE i.id = a.execution_id AND r.name = ANY(%(names)s::text[]))"""

# How long decisions that are made together wait for what others hold, before each waits alone:
# nobody is to wait for long for what somebody else needs.
IMPATIENT = "250ms"


class DecisionContext(Record):
    """What a decision is judged by, beside its approval."""

    now: int
    contributors: list[str]
    decisions: tuple[StoredDecision, ...]
    void: list[str]  # tokens of decisions that were revoked since


class PostgresPeople(PostgresRole, PeopleStore):
    def decide_all(
        self, wanted: Sequence[tuple[str, Decision]], *, patient: bool = False
    ) -> list[Verdict | None]:
        must_be_apart([id for id, _ in wanted])
        verdicts = dict[str, Verdict | None]()
        while left := [each for each in wanted if each[0] not in verdicts]:
            judged = self._decide(left) if patient else self._decide_soon(left)
            refused = {id: each for id, each in judged.items() if each is None or not each.counts}
            # Without refused ones all were written, and with any nobody was.
            verdicts |= refused or judged
        return [verdicts[id] for id, _ in wanted]

    def _decide_soon(self, wanted: Sequence[tuple[str, Decision]]) -> dict[str, Verdict | None]:
        """Does what `_decide` does, or raises `NotTogether` if it would have to wait for long."""
        try:
            return self._decide(wanted, IMPATIENT)
        except StoreError as problem:
            if isinstance(problem.__cause__, LockNotAvailable):
                raise NotTogether from problem
            raise

    @transaction
    def _decide(
        self, wanted: Sequence[tuple[str, Decision]], lock_timeout: str = ""
    ) -> dict[str, Verdict | None]:
        """Writes these decisions, and returns the verdicts by approval; if any is refused, it only
        judges them."""
        if lock_timeout:
            self.db.set("lock_timeout", lock_timeout, local=True)
        executions = {id: id.rpartition(".")[0] for id, _ in wanted}
        self.rows.wake_live([*executions.values()])
        found = {each.id: each for each in self.rows.approvals([*executions], lock=True)}
        asked = [(id, decision) for id, decision in wanted if id in found and not found[id].held]
        context = self._context([(id, executions[id]) for id, _ in asked])
        now = next(iter(context.values())).now if context else 0
        roles = self.auditor.business_roles(
            [(decision.actor, executions[id]) for id, decision in asked], now
        )
        judged: dict[str, Verdict | None] = dict.fromkeys(executions)
        for (id, decision), (held, taken) in zip(asked, roles, strict=True):
            at = context[id]
            judged[id] = judge(
                found[id], at.decisions, decision, held, taken, at.contributors, now, at.void
            )
        if any(each is None or not each.counts for each in judged.values()):
            raise UndoneError(judged)
        return self._count_decisions(asked, judged, now)

    def _context(self, asked: Sequence[tuple[str, str]]) -> dict[str, DecisionContext]:
        """Returns what decisions about these approvals, given with their executions, are judged
        by."""
        rows = [dict(id=id, execution_id=execution_id) for id, execution_id in asked]
        return {
            id: DecisionContext(
                now, contributors, tuple(StoredDecision(**row) for row in made), void
            )
            for id, now, contributors, made, void in self.db.batch("decision_context", rows)
        }

    def _count_decisions(
        self,
        wanted: Sequence[tuple[str, Decision]],
        judged: Mapping[str, Verdict | None],
        now: int,
    ) -> dict[str, Verdict | None]:
        verdicts = [
            (each.approval, made, each)
            for id, made in wanted
            if (each := judged[id]) and each.approval
        ]
        written = [
            (made.actor, decision_row(approval, len(each.decisions), made, now), each)
            for approval, made, each in verdicts
        ]
        self.db.write("insert_decisions", [fields(row) for _, row, _ in written])
        self.rows.contribute(
            [(approval.execution_id, contributors_of(made)) for approval, made, _ in verdicts], now
        )
        self._escalate(
            [(approval, each.stage) for approval, _, each in verdicts if each.stage is not None],
            now,
        )
        self._end_approvals(
            [
                (approval, end_by(each.ended, each.by, made.comment))
                for approval, made, each in verdicts
                if each.ended
            ],
            now,
        )
        for approval, made, each in verdicts:
            if each.ended and made.then_pause:
                by = made.actor.name
                self.db.do("pause_after_decision", id=approval.execution_id, by=by, now=now)
        self.auditor.add_all([(by, decision_act(row, each)) for by, row, each in written], now)
        return {row.approval_id: counted(each, row, now) for _, row, each in written}

    def _end_approvals(self, ended: Sequence[tuple[StoredApproval, ApprovalEnd]], now: int) -> None:
        self.db.write(
            "end_approvals", [{**fields(end), "id": each.id} for each, end in ended], now=now
        )

    def _escalate(self, escalated: Sequence[tuple[StoredApproval, int]], now: int) -> None:
        self.db.write(
            "escalate_approvals",
            [{**next_stage(each, stage), "id": each.id} for each, stage in escalated],
            now=now,
        )
        self.rows.notify([each.id for each, _ in escalated], "escalated", now)

    @autocommit
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
        at, id = before or (None, None)
        where = [b"NOT a.held"]
        values = dict[str, Any](
            limit=limit, role=role, execution=execution_id, at=at, id=id, status=status
        )
        values["names"] = None if names is None else list(names)
        later = b"(a.created_at, a.id) < (%(at)s, %(id)s)"
        family = (
            b"(a.execution_id = %(execution)s OR (a.execution_id >= %(execution)s || '.' AND "
            b"a.execution_id < %(execution)s || '/'))"
        )
        conditions = [
            (b"a.role = %(role)s", role),
            (family, execution_id),
            (later, at),
            (OF_ROOTS, names),
        ]
        by_status = {"open": b"a.ended_at IS NULL", "cancelled": IS_CANCELLED.encode()}.get(
            status or "", b"a.decision = %(status)s"
        )
        for condition, value in (*conditions, (by_status, status)):
            if value is not None:
                where.append(condition)
        order = b" ORDER BY a.created_at DESC, a.id DESC LIMIT %(limit)s"
        text = SQL["approval"] + b" WHERE " + b" AND ".join(where) + order
        rows, cut = self.db.some(text, values, ("data", "reason", "comment", "stages"), most_bytes)
        return Found.of(records(StoredApproval, rows), cut)

    @autocommit
    def approval(self, id: str) -> StoredApproval | None:
        found = self.rows.approvals([id])
        return found[0] if found and not found[0].held else None

    def decisions(self, ids: Sequence[str]) -> list[StoredDecision]:
        return records(StoredDecision, self.db.ask("decisions", ids=list(ids)))

    @transaction
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
        timeout_us, then_what = deadline_of_pause(timeout_s, then)
        known = self._known(ids)
        self.rows.wake_live(list(ids))
        now, by = self.db.now(), actor.name if actor else ""
        values = dict(
            reason=reason,
            by=by,
            timeout_us=timeout_us,
            then=then_what,
            metadata=metadata,
            now=now,
        )
        paused = {id for (id,) in self.db.all("pause", ids=sorted(known), **values)}
        changed = [id for id in known if id in paused]
        acts = pause_acts(changed, reason, timeout_s, then_what, metadata)
        self.auditor.record(actor, acts, now)
        return {id: id in paused for id in known}

    def _known(self, ids: Sequence[str]) -> list[str]:
        found = {known.id for known in self.rows.known(ids)}
        return [id for id in dict.fromkeys(ids) if id in found]

    @transaction
    def resume(
        self,
        ids: Sequence[str],
        *,
        reason: str = "",
        data: str = "null",
        actor: Actor | None = None,
        metadata: str | None = None,
    ) -> dict[str, bool]:
        known = self._known(ids)
        self.rows.wake_live(list(ids))
        for id, open_ in self.db.all("asked_for", ids=known) if gives_data(data) else ():
            refuse_data(id, data, [open_])
        now, by = self.db.now(), actor.name if actor else ""
        resumed = {id for (id,) in self.db.all("unpause", ids=sorted(known))}
        freed = [id for id in known if id in resumed]
        given = dict(by="manual", by_id=by, data=data, reason=reason, metadata=metadata or "null")
        self.rows.resumed([{"id": id, **given} for id in freed], now)
        if people := contributors_of_resume(actor, data):
            self.rows.contribute([(id, people) for id in freed], now)
        self.auditor.record(actor, resume_acts(freed, reason, data, metadata), now)
        return {id: id in resumed for id in known}

    @autocommit
    def resumes(
        self, id: str, after: int = 0, limit: int | None = None, most_bytes: int | None = None
    ) -> Found[ResumeRequest]:
        values = {"id": id, "after": after, "limit": limit}
        rows, cut = self.db.some(
            SQL["resumes"], values, ("trigger_data", "reason", "error_message"), most_bytes
        )
        return Found.of(records(ResumeRequest, rows), cut)

    def last_resumes(self, id: str) -> list[ResumeRequest]:
        return records(ResumeRequest, self.db.ask("last_resumes", id=id))

    def fire(self, approvals: Sequence[str], pauses: Sequence[Row], now: int) -> int:
        """Ends approvals and pauses whose time is over. Returns how many.

        Their executions are locked and woken before, except those that are held back. The audit is
        the last lock of all.
        """
        acts = [*self._fire_approvals(approvals, now), *self._fire_pauses(pauses, now)]
        self.auditor.add(SERVICE, acts, now)
        return len(acts)

    def _fire_approvals(self, due: Sequence[str], now: int) -> list[Act]:
        """Escalates these approvals, or lets them expire. Returns the acts for the audit."""
        over = [
            each
            for each in self.rows.approvals(due, lock=True)
            if each.ended_at is None and each.is_due(now)
        ]
        self._end_approvals([(each, end_by(EXPIRED)) for each in over if not each.escalates], now)
        self._escalate([(each, 0) for each in over if each.escalates], now)
        return [deadline_act(each) for each in over]

    def _fire_pauses(self, due: Sequence[Row], now: int) -> list[Act]:
        self.rows.keep_back([id for id, held in due if held])
        over = self.db.all("end_pauses", ids=[id for id, _ in due], now=now) if due else []
        ended = [id for id, then in over if pause_cancels(then)]
        self.rows.cancel(ended)
        resumed = [id for id, then in over if not pause_cancels(then)]
        self.rows.resumed(
            [dict(id=id, by="timeout", by_id="", data="null", reason="") for id in resumed], now
        )
        return [
            pause_over_act(id, then)
            for id, then in sorted(over, key=lambda row: not pause_cancels(row[1]))
        ]
