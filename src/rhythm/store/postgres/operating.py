"""A PostgreSQL database, for operators: selections, the doctor, its health."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from rhythm.store.doctor import Finding, Judge, OnProgress, examine
from rhythm.store.interfaces.operating import (
    FAILURE_CHARACTERS,
    MOST_QUEUES,
    Counted,
    FailedRoot,
    Health,
    OperatingStore,
    Selection,
    Silent,
    Standing,
)
from rhythm.store.postgres.auditing import PostgresAuditor
from rhythm.store.postgres.connection import SQL, Connection
from rhythm.store.postgres.doctor import ask, doctor_sql
from rhythm.store.postgres.role import PostgresRole
from rhythm.store.postgres.rows import PostgresRows
from rhythm.store.postgres.session import autocommit, transaction
from rhythm.store.postgres.workers import PostgresWorkers
from rhythm.store.rows import records

CONDITIONS = {
    "statuses": b"status = ANY(%(statuses)s::text[])", "workflow": b"name = %(workflow)s",
    "queue": b"queue = %(queue)s",
    "type": b"type = %(type)s", "created_after": b"created_at >= %(created_after)s",
    "created_before": b"created_at < %(created_before)s",
    "paused": b"paused_at IS NOT NULL", "unpaused": b"paused_at IS NULL",
    "unasked": b"cancel_requested_at IS NULL",
    "names": b"name = ANY(%(names)s::text[])",
    "unretried": b"NOT EXISTS (SELECT 1 FROM executions n WHERE n.retry_of = x.id)",
    "attributes": b"""NOT EXISTS (SELECT 1 FROM jsonb_each(%(attributes)s::jsonb) w
        WHERE (x.attributes::jsonb -> w.key) IS DISTINCT FROM w.value)""",
}  # fmt: skip


class PostgresOperating(PostgresRole, OperatingStore):
    def __init__(
        self, db: Connection, rows: PostgresRows, auditor: PostgresAuditor, workers: PostgresWorkers
    ) -> None:
        super().__init__(db, rows, auditor)
        self.workers = workers

    @autocommit
    def count(self, selection: Selection) -> tuple[int, int]:
        text = b"SELECT count(*), now_us() FROM " + _meant(selection)
        count, now = self.db.query(text, _values(selection)).fetchall()[0]
        return count, now

    @autocommit
    def select(
        self, selection: Selection, after: tuple[int, str], limit: int
    ) -> list[tuple[int, str]]:
        order = b" AND (created_at, id) > (%(at)s, %(id)s) ORDER BY created_at, id LIMIT %(limit)s"
        values = {**_values(selection), "at": after[0], "id": after[1], "limit": limit}
        return self.db.query(
            b"SELECT created_at, id FROM " + _meant(selection) + order, values
        ).fetchall()

    def standing(self, ids: Sequence[str]) -> dict[str, Standing]:
        found = records(Standing, self.db.ask("standing", ids=list(ids)))
        return {standing.id: standing for standing in found}

    def overview(self, window_us: int, most: int) -> list[Counted]:
        asked = self.db.ask("overview", window_us=window_us, most=most, queues=MOST_QUEUES)
        return records(Counted, asked)

    def failures(self, limit: int, among: int) -> list[FailedRoot]:
        asked = self.db.ask(
            "newest_failures", characters=FAILURE_CHARACTERS, among=among, limit=limit
        )
        return records(FailedRoot, asked)

    @transaction
    def check(
        self,
        grace_s: float,
        judge: Judge | None = None,
        on_progress: OnProgress = lambda done, of: None,
    ) -> list[Finding]:
        self.db.freeze()
        asked = partial(ask, self.db)
        return examine(asked, doctor_sql(), self.db.now(), grace_s, judge, on_progress)

    @transaction
    def health(self) -> Health:
        self.db.freeze()
        now = self.db.now()
        silent = tuple(records(Silent, ask(self.db, "silent", now=now)))
        dead = tuple((table, live, dead) for table, live, dead in ask(self.db, "dead_rows"))
        count, transaction_s, notifications = (
            ask(self.db, name)[0][0]
            for name in ("count_executions", "oldest_transaction", "notification_queue")
        )
        return Health(
            now,
            count,
            tuple(self.workers.queues_at(now)),
            transaction_s,
            dead,
            notifications,
            server=True,
            silent=silent,
        )


def _meant(selection: Selection) -> bytes:
    asked = [CONDITIONS[name] for name in selection.asked]
    return b"(" + SQL["execution"] + b") x WHERE " + b" AND ".join([b"parent_id IS NULL", *asked])


def _values(selection: Selection) -> dict[str, Any]:
    values = {name: getattr(selection, name) for name in CONDITIONS}
    return {**values, "statuses": list(selection.statuses), "names": list(selection.names or ())}
