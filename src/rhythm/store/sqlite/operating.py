"""Selections, the doctor and health on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence

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
from rhythm.store.rows import records
from rhythm.store.search import SQLITE, Search, counted, ids_of_page
from rhythm.store.sqlite.doctor import doctor_sql, queue_rows, snapshot
from rhythm.store.sqlite.role import SqliteRole
from rhythm.store.sqlite.session import SQL


class SqliteOperating(SqliteRole, OperatingStore):
    def count(self, selection: Selection) -> tuple[int, int]:
        now = self.db.clock()
        return counted(self.db.read_once, Search(selection, SQLITE, now, "created")), now

    def select(
        self, selection: Selection, after: tuple[int, str], limit: int
    ) -> list[tuple[int, str]]:
        asked = Search(selection, SQLITE, self.db.clock(), "created")
        return ids_of_page(self.db.read_once, asked, after, limit, descending=False)

    def standing(self, ids: Sequence[str]) -> dict[str, Standing]:
        found = records(Standing, self.db.read(SQL["standing"], (json.dumps(list(ids)),)))
        return {standing.id: standing for standing in found}

    def overview(self, window_us: int, most: int) -> list[Counted]:
        now = self.db.clock()
        values = {"since": now - window_us, "most": most, "queues": MOST_QUEUES}
        found = records(Counted, self.db.read(SQL["overview"], values))
        return [Counted("now", "", 0, now), *(one.replace(name=str(one.name)) for one in found)]

    def failures(self, limit: int, among: int) -> list[FailedRoot]:
        values = {"limit": limit, "among": among, "characters": FAILURE_CHARACTERS}
        return records(FailedRoot, self.db.read(SQL["newest_failures"], values))

    def check(
        self,
        grace_s: float,
        judge: Judge | None = None,
        on_progress: OnProgress = lambda done, of: None,
    ) -> list[Finding]:
        with snapshot(self.db) as ask:
            return examine(ask, doctor_sql(), self.db.clock(), grace_s, judge, on_progress)

    def health(self) -> Health:
        with snapshot(self.db) as ask:
            now = self.db.clock()
            silent = tuple(records(Silent, ask("silent", now=now)))
            return Health(
                now, ask("count_executions")[0][0], tuple(queue_rows(ask, now)), silent=silent
            )
