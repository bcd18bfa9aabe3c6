"""Selections, the doctor and health on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
from rhythm.store.rows import records
from rhythm.store.sqlite.doctor import doctor_sql, queue_rows, snapshot
from rhythm.store.sqlite.role import SqliteRole
from rhythm.store.sqlite.session import SQL

CONDITIONS = {
    "statuses": "status IN (SELECT value FROM json_each(:statuses))",
    "workflow": "name = :workflow", "queue": "queue = :queue",
    "type": "type = :type", "created_after": "created_at >= :created_after",
    "created_before": "created_at < :created_before",
    "paused": "paused_at IS NOT NULL", "unpaused": "paused_at IS NULL",
    "unasked": "cancel_requested_at IS NULL",
    "names": "name IN (SELECT value FROM json_each(:names))",
    "unretried": "NOT EXISTS (SELECT 1 FROM executions n WHERE n.retry_of = x.id)",
    "attributes": """NOT EXISTS (SELECT 1 FROM json_each(:attributes) w WHERE NOT EXISTS (
        SELECT 1 FROM json_each(x.attributes) a WHERE a.key = w.key AND a.value IS w.value
        AND replace(a.type, 'real', 'integer') = replace(w.type, 'real', 'integer')))""",
}  # fmt: skip


class SqliteOperating(SqliteRole, OperatingStore):
    def count(self, selection: Selection) -> tuple[int, int]:
        found = self.db.read(f"SELECT count(*) FROM {_meant(selection)}", _values(selection))
        return found[0][0], self.db.clock()

    def select(
        self, selection: Selection, after: tuple[int, str], limit: int
    ) -> list[tuple[int, str]]:
        text = (
            f"SELECT created_at, id FROM {_meant(selection)} AND (created_at, id) > (:at, "
            f":id) ORDER BY created_at, id LIMIT :limit"
        )
        return self.db.read(
            text, {**_values(selection), "at": after[0], "id": after[1], "limit": limit}
        )

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


def _meant(selection: Selection) -> str:
    asked = [CONDITIONS[name] for name in selection.asked]
    return f"({SQL['execution']}) x WHERE {' AND '.join(['parent_id IS NULL', *asked])}"


def _values(selection: Selection) -> dict[str, Any]:
    values = {name: getattr(selection, name) for name in CONDITIONS}
    return {
        **values,
        "statuses": json.dumps(selection.statuses),
        "names": json.dumps(selection.names),
    }
