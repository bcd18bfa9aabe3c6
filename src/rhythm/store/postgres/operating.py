"""A PostgreSQL database, for operators: selections, the doctor, its health."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

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
from rhythm.store.postgres.connection import Connection
from rhythm.store.postgres.doctor import ask, doctor_sql
from rhythm.store.postgres.role import PostgresRole
from rhythm.store.postgres.rows import PostgresRows
from rhythm.store.postgres.searching import asker
from rhythm.store.postgres.session import autocommit, transaction
from rhythm.store.postgres.workers import PostgresWorkers
from rhythm.store.rows import records
from rhythm.store.search import POSTGRES, Search, counted, ids_of_page


class PostgresOperating(PostgresRole, OperatingStore):
    def __init__(
        self, db: Connection, rows: PostgresRows, auditor: PostgresAuditor, workers: PostgresWorkers
    ) -> None:
        super().__init__(db, rows, auditor)
        self.workers = workers

    @autocommit
    def count(self, selection: Selection) -> tuple[int, int]:
        asked = Search(selection, POSTGRES, 0, "created")
        return counted(asker(self.db), asked), self.db.now()

    @autocommit
    def select(
        self, selection: Selection, after: tuple[int, str], limit: int
    ) -> list[tuple[int, str]]:
        asked = Search(selection, POSTGRES, 0, "created")
        return ids_of_page(asker(self.db), asked, after, limit, descending=False)

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
