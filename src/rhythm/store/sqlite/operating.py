"""What operators do to many executions, on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rhythm.store.operating import OperatingStore, Selection, Standing
from rhythm.store.rows import records
from rhythm.store.sqlite.session import SQL, Session

CONDITIONS = {
    "statuses": "status IN (SELECT value FROM json_each(:statuses))", "workflow": "name = :workflow", "queue": "queue = :queue",
    "type": "type = :type", "created_after": "created_at >= :created_after", "created_before": "created_at < :created_before",
    "held": "paused_at IS NOT NULL", "unheld": "paused_at IS NULL", "unasked": "cancel_requested_at IS NULL",
    "names": "name IN (SELECT value FROM json_each(:names))",
    "unretried": "NOT EXISTS (SELECT 1 FROM executions n WHERE n.retry_of = x.id)",
    "attributes": """NOT EXISTS (SELECT 1 FROM json_each(:attributes) w WHERE NOT EXISTS (
        SELECT 1 FROM json_each(x.attributes) a WHERE a.key = w.key AND a.value IS w.value
        AND replace(a.type, 'real', 'integer') = replace(w.type, 'real', 'integer')))""",
}  # fmt: skip


class SqliteOperating(Session, OperatingStore):
    def count(self, selection: Selection) -> tuple[int, int]:
        found = self._read(f"SELECT count(*) FROM {_meant(selection)}", _values(selection))
        return found[0][0], self.clock()

    def select(self, selection: Selection, after: tuple[int, str], limit: int) -> list[tuple[int, str]]:
        text = f"SELECT created_at, id FROM {_meant(selection)} AND (created_at, id) > (:at, :id) ORDER BY created_at, id LIMIT :limit"
        return self._read(text, {**_values(selection), "at": after[0], "id": after[1], "limit": limit})

    def standing(self, ids: Sequence[str]) -> dict[str, Standing]:
        found = records(Standing, self._read(SQL["standing"], (json.dumps(list(ids)),)))
        return {standing.id: standing for standing in found}


def _meant(selection: Selection) -> str:
    asked = [CONDITIONS[name] for name in selection.asked]
    return f"({SQL['execution']}) x WHERE {' AND '.join(['parent_id IS NULL', *asked])}"


def _values(selection: Selection) -> dict[str, Any]:
    values = {name: getattr(selection, name) for name in CONDITIONS}
    return {**values, "statuses": json.dumps(selection.statuses), "names": json.dumps(selection.names)}
