"""The work of the services on SQLite."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from rhythm.record import Record
from rhythm.store.interfaces.maintenance import FORGOTTEN_S, MaintenanceDue, MaintenanceStore
from rhythm.store.lifecycle import EVENT_MISSED, TASK, StatusNumber, has_ended
from rhythm.store.rows import records
from rhythm.store.sqlite.auditing import SqliteAuditor
from rhythm.store.sqlite.people import SqlitePeople
from rhythm.store.sqlite.role import SqliteRole
from rhythm.store.sqlite.rows import SqliteRows
from rhythm.store.sqlite.session import US, SqliteSession, us
from rhythm.store.verdicts import (
    BY_REQUEST,
    crash_loop_row,
    crashed_attempt_row,
    end_of_timed_out,
    rescued_task,
    rescued_workflow,
)


class _Expired(Record):
    """A claim that nobody has extended, and the status of its execution; None: the execution no
    longer exists."""

    id: str
    kind: int
    fence: int
    attempt: int
    worker: str
    crashes: int
    status: StatusNumber | None


class SqliteMaintenance(SqliteRole, MaintenanceStore):
    def __init__(
        self, db: SqliteSession, rows: SqliteRows, auditor: SqliteAuditor, people: SqlitePeople
    ) -> None:
        super().__init__(db, rows, auditor)
        self.people = people

    def fire_timers(
        self, limit: int, late: Callable[[float], None] | None = None
    ) -> tuple[int, int | None]:
        due, now = self.db.one("next_due")
        if due is None or due > now:
            return 0, due
        with self.db.transaction():
            now = self.db.clock()
            timers = self.db.all("due_timers", now, limit)
            for id, n, _ in timers:
                self.db.all("fire_timer", now, id, n)
                self.rows.wake(id, now)
            waits = self.db.all("due_waits", now, limit)
            for id, n in waits:
                self.db.count(
                    "end_wait",
                    {"id": id, "n": n, "status": EVENT_MISSED, "event_id": None, "now": now},
                )
                self.rows.wake(id, now)
            delayed = self.db.all("due_ready", now, limit)
            for (id,) in delayed:
                self.db.all("free_delayed", id)
            over = self.db.all("due_timeouts", now, limit)
            for id, type in over:
                self._time_out(id, type, now)
            people = self.people.fire_approvals(limit, now) + self.people.fire_pauses(limit, now)
            next_due = self.db.one("next_due")[0]
        if late is not None:
            for _, _, fire_at in timers:
                late((now - fire_at) / US)
        return len(timers) + len(waits) + len(delayed) + len(over) + people, next_due

    def _time_out(self, id: str, type: int, now: int) -> None:
        """Wakes a workflow whose time is over, or ends a task that nobody runs.

        The next turn of the workflow sees that its time is over.
        """
        ended = end_of_timed_out(type)
        if ended is None:
            self.rows.wake(id, now)
        elif not self.rows.runs(id):
            self.db.all("delete_ready", id)
            self.rows.finish(id, ended, now)
        self.db.all("time_out", now, id)

    def due(self, dead: bool = False) -> MaintenanceDue:
        (due,) = records(
            MaintenanceDue,
            self.db.all("maintenance_due", {"dead": dead, "forgotten_us": us(FORGOTTEN_S)}),
        )
        return due

    def rescue(self, limit: int, crash_limit: int, dead: bool = False) -> list[str]:
        asked = {"dead": dead, "limit": limit}
        if not self.db.all("expired", asked):
            return []
        with self.db.transaction():
            now, expired = self.db.clock(), records(_Expired, self.db.all("expired", asked))
            for row in expired:
                # The owner died before it deleted the row of a wake that came after the end.
                if row.status is None or has_ended(row.status):
                    self.db.all("delete_claimed", row.id, row.fence)
                elif row.kind == TASK:
                    self._rescue_task(
                        row.id,
                        row.fence,
                        row.attempt,
                        row.worker,
                        row.crashes + 1,
                        crash_limit,
                        now,
                    )
                else:
                    self._rescue_workflow(row.id, row.fence, row.worker, crash_limit, now)
            return [row.id for row in expired]

    def _rescue_task(
        self,
        id: str,
        fence: int,
        attempt: int,
        worker: str,
        crashes: int,
        crash_limit: int,
        now: int,
    ) -> None:
        """Frees the task again, or fails it if as many workers died with it as the limit says."""
        if ended := rescued_task(crashes, crash_limit):
            self.db.all("delete_claimed", id, fence)
            self.rows.finish(id, ended, now, fence, worker, attempt)
        else:
            self.db.all("rescue_task", id, fence)
            self.rows.write_history([crashed_attempt_row(id, attempt, fence, worker)], now)

    def _rescue_workflow(
        self, id: str, fence: int, worker: str, crash_limit: int, now: int
    ) -> None:
        raised = self.db.one("next_fence")[0]
        seq = self.db.one("raise_context_fence", raised, id)[0]
        crashes = self.db.one("rescue_workflow", {"id": id, "fence": fence, "seq": seq})[0]
        if ended := rescued_workflow(crashes, crash_limit):
            (found,) = self.rows.known([id]).values()
            self.db.all("delete_ready", id)
            self.db.all("skip_turn", id)
            self.rows.write_history(
                [crash_loop_row(id, seq, raised, worker, found.status, ended)], now
            )
            self.rows.end_workflow(id, ended, now, raised, worker)

    def end_cancelled_tasks(self, limit: int) -> list[str]:
        if not self.db.all("cancelled_tasks", limit):
            return []
        with self.db.transaction():
            found, now = [id for (id,) in self.db.all("cancelled_tasks", limit)], self.db.clock()
            for id in found:
                self.db.all("delete_ready", id)
                self.rows.finish(id, BY_REQUEST, now)
            return found

    def forget_workers(self, limit: int) -> None:
        with self.db.transaction():
            self.db.all("forget_workers", {"forgotten_us": us(FORGOTTEN_S), "limit": limit})

    def parked(self, after: str, limit: int) -> list[str]:
        return [id for (id,) in self.db.all("parked", after, limit)]

    def without_rows(self, children: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        return self.db.all("without_rows", json.dumps(children))

    def mend(self, stuck: Mapping[str, int], timers: Sequence[tuple[str, int]]) -> list[str]:
        with self.db.transaction():
            woken = [id for id, seq in stuck.items() if self.db.one("wake_parked", id, seq)]
            for id, n in timers:
                if id in woken:
                    self.db.all("insert_fired", id, n)
            return woken

    def prune(self, older_than_s: float, limit: int) -> int:
        with self.db.transaction():
            age_us = int(older_than_s * US)
            roots = self.db.all("old_roots", age_us, limit)
            for (root,) in roots:
                for table, column in (
                    ("executions", "id"),
                    ("workflow_execution_context", "execution_id"),
                    ("history", "execution_id"),
                    ("timer_tasks", "execution_id"),
                    ("workflow_signals", "execution_id"),
                    ("blobs", "execution_id"),
                    ("event_waits", "execution_id"),
                    ("approvals", "execution_id"),
                    ("approval_decisions", "approval_id"),
                    ("execution_resume_requests", "execution_id"),
                    ("ready", "id"),
                    ("families", "root_id"),
                    ("terminations", "id"),
                    ("execution_contributors", "root_id"),
                    ("log_lines", "root_id"),
                    ("log_totals", "root_id"),
                    ("execution_attributes", "execution_id"),
                ):
                    self.db.run(
                        (
                            f"DELETE FROM {table} WHERE {column} = ? OR ({column} >= ? AND "
                            f"{column} < ?)"
                        ),
                        (root, f"{root}.", f"{root}/"),
                    )
            return len(roots)

    def prune_events(self, older_than_s: float, limit: int) -> int:
        with self.db.transaction():
            old = json.dumps(
                [
                    id
                    for (id,) in self.db.all(
                        "old_events", self.db.clock() - us(older_than_s), limit
                    )
                ]
            )
            self.db.all("forget_waits", old)
            return self.db.count("forget_events", old)
