"""The work of the services on PostgreSQL: timers, rescue, repair of lost wakes, pruning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rhythm.record import Record
from rhythm.store.interfaces.claims import SYSTEM_QUEUE
from rhythm.store.interfaces.maintenance import FORGOTTEN_S, MaintenanceDue, MaintenanceStore
from rhythm.store.lifecycle import EVENT_MISSED, TASK, WORKFLOW
from rhythm.store.postgres.auditing import PostgresAuditor
from rhythm.store.postgres.connection import Connection
from rhythm.store.postgres.people import PostgresPeople
from rhythm.store.postgres.role import PostgresRole
from rhythm.store.postgres.rows import US, LockedRow, PostgresRows, end_of
from rhythm.store.postgres.session import autocommit, service, transaction
from rhythm.store.postgres.wire import Row
from rhythm.store.rows import records
from rhythm.store.verdicts import (
    BY_REQUEST,
    BY_TIMEOUT,
    Ending,
    crash_loop_row,
    crashed_attempt_row,
    end_of_timed_out,
    is_given_up,
    rescued_task,
    rescued_workflow,
)

PRUNED = (
    "ready", "contexts", "executions", "history", "timers", "signals", "blobs", "waits",
    "approvals", "decisions", "resumes",
    "contributors", "families", "terminations", "log_lines", "log_totals",
)  # fmt: skip


class _Expired(Record):
    """A claim that nobody has extended. `ended`: its execution has ended, or no longer exists."""

    id: str
    fence: int
    crashes: int
    parent_id: str | None
    ended: bool
    now: int


class PostgresMaintenance(PostgresRole, MaintenanceStore):
    """The work of the services.

    It is found without a lock, and done in a transaction that does not wait long for others.
    """

    def __init__(
        self, db: Connection, rows: PostgresRows, auditor: PostgresAuditor, people: PostgresPeople
    ) -> None:
        super().__init__(db, rows, auditor)
        self.people = people

    def fire_timers(
        self, limit: int, late: Callable[[float], None] | None = None
    ) -> tuple[int, int | None]:
        due, now = self.db.ask("next_due")[0]
        if due is None or due > now:
            return 0, due
        count, fired, due = self._fire_due(limit, now)
        if late is not None:
            for fire_at in fired:
                late((now - fire_at) / US)
        return count, due

    @service
    def _fire_due(self, limit: int, now: int) -> tuple[int, list[int], int | None]:
        """Fires what is due. Returns how many, when the timers among them were due, and when the
        next is due."""
        timers = self.db.all("due_timers", now=now, limit=limit)
        waits = self.db.all("due_waits", now=now, limit=limit)
        delayed = [id for (id,) in self.db.all("due_ready", now=now, limit=limit)]
        late = self.db.all("due_timeouts", now=now, limit=limit)
        approvals = self.db.all("due_approvals", now=now, limit=limit)
        pauses = self.db.all("due_pauses", now=now, limit=limit)
        asked = [
            *(execution_id for _, execution_id in approvals),
            *(id for id, held in pauses if not held),
        ]
        due = any((timers, waits, delayed, late, asked))
        count, fired = self._fire(timers, waits, delayed, late, asked, now) if due else (0, [])
        if approvals or pauses:
            count += self.people.fire([id for id, _ in approvals], pauses, now)
        return count, fired, self.db.all("next_due")[0][0]

    def _fire(
        self,
        timers: Sequence[Row],
        waits: Sequence[Row],
        delayed: Sequence[str],
        late: Sequence[Row],
        asked: Sequence[str],
        now: int,
    ) -> tuple[int, list[int]]:
        """Fires what is due. Returns how many, and when the timers among them were due.

        `asked`: executions whose approval or pause is over, to be woken too.
        """
        waiting = [*(id for id, _ in (*timers, *waits)), *asked]
        self.rows.lock(
            [*waiting, *delayed, *(id for id, _, _ in late), *(parent for _, _, parent in late)]
        )
        self.rows.wake(
            [*waiting, *(id for id, type, _ in late if end_of_timed_out(type) is None)], now
        )
        freed = [queue for (queue,) in self.db.all("free_due", ids=delayed, now=now)]
        self.db.free(freed)
        self.rows.end_unclaimed(
            [id for id, type, _ in late if end_of_timed_out(type)], BY_TIMEOUT, now
        )
        if late:
            self.db.do("time_out", ids=[id for id, _, _ in late], now=now)
        fired = self.db.batch("fire_timers", [dict(id=id, n=n) for id, n in timers], now=now)
        given_up = [dict(id=id, n=n, event_id=None) for id, n in waits]
        ended = self.db.batch("end_waits", given_up, status=EVENT_MISSED, now=now)
        return len(fired) + len(ended) + len(freed) + len(late), [fire_at for (fire_at,) in fired]

    def due(self, dead: bool = False) -> MaintenanceDue:
        (due,) = records(
            MaintenanceDue, self.db.ask("maintenance_due", dead=dead, forgotten_us=_us(FORGOTTEN_S))
        )
        return due

    def rescue(self, limit: int, crash_limit: int, dead: bool = False) -> list[str]:
        expired = self.db.ask("expired", dead=dead, limit=limit)
        return self._rescue(records(_Expired, expired), crash_limit, dead) if expired else []

    @service
    def _rescue(self, expired: Sequence[_Expired], crash_limit: int, dead: bool) -> list[str]:
        """Takes back these claims, if they are still lost. Returns their ids.

        The whole condition is tested once more under the locks, including the beats, in a later
        statement than the one that took the locks. What a frozen or slow process has locked is left
        for the next time. It waits only for the locks of parents whose children may fail. It takes
        these first, so it holds nothing that others could be waiting for.
        """
        now, found = expired[0].now, {row.id: row for row in expired}
        if parents := [
            row.parent_id for row in expired if is_given_up(row.crashes + 1, crash_limit)
        ]:
            self.rows.lock(parents)
        claimed = [
            row for id, row in self.rows.lock_free(found).items() if row.fence == found[id].fence
        ]
        silent = self._dead(claimed, now) if dead else set()
        lost = [row for row in claimed if _expired(row, now) or row.claimed_by in silent]
        # Rows of wakes that came after the end, which their owner did not delete.
        self.db.do("delete_ready", ids=[row.id for row in lost if found[row.id].ended])
        live = [row for row in lost if not found[row.id].ended]
        self._rescue_tasks([row for row in live if row.kind == TASK], crash_limit, now)
        self._rescue_workflows(
            {row.id: row for row in live if row.kind == WORKFLOW}, crash_limit, now
        )
        return [row.id for row in lost]

    def _dead(self, claimed: Sequence[LockedRow], now: int) -> set[str]:
        """Returns the owners of these claims that are dead: they have sent no beat for too long.

        Owners of expired claims are not looked up: those claims are lost anyway.
        """
        owners = {row.claimed_by for row in claimed if row.claimed_by and not _expired(row, now)}
        if not owners:
            return set()
        return {id for (id,) in self.db.all("dead_workers", ids=sorted(owners), now=now)}

    def _rescue_tasks(self, lost: Sequence[LockedRow], crash_limit: int, now: int) -> None:
        """Frees these tasks again.

        A task fails if as many workers died with it as the limit says, however many attempts it has
        left.
        """
        verdicts = {row.id: rescued_task(row.crashes + 1, crash_limit) for row in lost}
        ends = [
            end_of(row.id, ended, row.fence, row.claimed_by, row.attempt)
            for row in lost
            if (ended := verdicts[row.id])
        ]
        free = [row for row in lost if verdicts[row.id] is None]
        rescued = self.db.all("rescue_tasks", ids=[row.id for row in free])
        self.db.free(queue for (queue,) in rescued)
        self.rows.write_history(
            (
                crashed_attempt_row(row.id, row.attempt, row.fence, row.claimed_by)
                for row in free
                if row.fence is not None  # as every claimed row has one
            ),
            now,
        )
        self.db.do("delete_ready", ids=[end.id for end in ends])
        self.rows.finish(ends, now)

    def _rescue_workflows(self, lost: Mapping[str, LockedRow], crash_limit: int, now: int) -> None:
        """Frees these workflows again, under a newer fence that refuses turns of their old owners.

        A workflow that crashes in the same turn too often fails.
        """
        raised = {
            id: (seq, fence)
            for id, seq, fence in self.db.all("raise_context_fences", ids=sorted(lost))
        }
        rescued = self.db.batch(
            "rescue_workflows", [dict(id=id, seq=seq) for id, (seq, _) in raised.items()]
        )
        self.db.free(queue for _, _, queue in rescued)
        verdicts = {id: rescued_workflow(times, crash_limit) for id, times, _ in rescued}
        looping = {id: ended for id, ended in verdicts.items() if ended}
        self.db.do("delete_ready", ids=list(looping))
        if looping:
            self._stop_loops(looping, raised, lost, now)

    def _stop_loops(
        self,
        looping: Mapping[str, Ending],
        raised: Mapping[str, tuple[int, int]],
        lost: Mapping[str, LockedRow],
        now: int,
    ) -> None:
        self.db.do("skip_turn", ids=list(looping))
        status = {each.id: each.status for each in self.rows.known(looping)}
        ended_rows = [
            crash_loop_row(id, *raised[id], lost[id].claimed_by, status[id], ended)
            for id, ended in looping.items()
        ]
        self.rows.write_history(ended_rows, now)
        ends = [
            end_of(id, ended, raised[id][1], lost[id].claimed_by) for id, ended in looping.items()
        ]
        self.rows.end_workflows(ends, now)

    def end_cancelled_tasks(self, limit: int) -> list[str]:
        found = self.db.ask("cancelled_tasks", limit=limit)
        return self._end_cancelled(found) if found else []

    @service
    def _end_cancelled(self, found: Sequence[Row]) -> list[str]:
        self.rows.lock(locked for id, parent_id, _ in found for locked in (id, parent_id))
        now = next(now for _, _, now in found)
        return sorted(self.rows.end_unclaimed([id for id, _, _ in found], BY_REQUEST, now))

    @autocommit
    def forget_workers(self, limit: int) -> None:
        self.db.do("forget_workers", forgotten_us=_us(FORGOTTEN_S), limit=limit)

    @autocommit
    def parked(self, after: str, limit: int) -> list[str]:
        return [id for (id,) in self.db.all("parked", after=after, limit=limit)]

    @autocommit
    def without_rows(self, children: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        return self.db.batch("without_rows", [dict(id=id, n=n) for id, n in children])

    @transaction
    def mend(self, stuck: Mapping[str, int], timers: Sequence[tuple[str, int]]) -> list[str]:
        """Wakes parked workflows as the interface says.

        A workflow that moved on before it was woken here was not stuck; the wake does no harm.
        """
        made = [id for (id,) in self.db.all("wake_parked", ids=list(stuck))]
        self.db.free([SYSTEM_QUEUE] if made else ())
        seqs = dict(self.db.all("seqs_of", ids=made)) if made else {}
        woken = [id for id in made if seqs.get(id) == stuck[id]]
        self.db.batch("insert_fired", [dict(id=id, n=n) for id, n in timers if id in woken])
        return woken

    def prune(self, older_than_s: float, limit: int) -> int:
        age_us = int(older_than_s * US)
        roots = [id for (id,) in self.db.ask("old_roots", age_us=age_us, limit=limit)]
        if roots:
            self._prune(roots)
        return len(roots)

    @transaction
    def _prune(self, roots: Sequence[str]) -> None:
        for table in PRUNED:
            self.db.do(f"prune_{table}", ids=roots)

    def prune_events(self, older_than_s: float, limit: int) -> int:
        old = self.db.ask("old_events", age_us=_us(older_than_s), limit=limit)
        return (
            self._prune_events([id for id, _ in old], sorted({type for _, type in old}))
            if old
            else 0
        )

    @service
    def _prune_events(self, ids: Sequence[str], types: Sequence[str]) -> int:
        """Deletes events while their types are locked: a wait that found one of them meanwhile has
        taken it by then."""
        self.db.do("hold_types", types=types)
        return len(self.db.all("delete_events", ids=ids))


def _expired(row: LockedRow, now: int) -> bool:
    """Returns whether the claim has expired.

    Tested again under the lock: it may have been extended meanwhile.
    """
    return row.claim_expires_at is not None and row.claim_expires_at < now


def _us(seconds: float) -> int:
    return int(seconds * US)
