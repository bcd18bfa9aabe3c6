"""Executions on SQLite, read for display."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rhythm.store.interfaces.executions import Execution
from rhythm.store.interfaces.operating import Selection
from rhythm.store.interfaces.reading import BRIEF_COLUMNS, ReadingStore, Transition, with_names
from rhythm.store.reading import (
    EVERYTHING,
    MAX_TRACED_EXECUTIONS,
    MAX_TRACED_TURNS,
    VOTES,
    Alike,
    Found,
    Moment,
    Place,
)
from rhythm.store.rows import records
from rhythm.store.search import SQLITE, Search, ids_of_page
from rhythm.store.sqlite.role import SqliteRole
from rhythm.store.sqlite.session import SQL


class SqliteReading(SqliteRole, ReadingStore):
    def get(self, ids: Sequence[str]) -> dict[str, Execution]:
        text = f"{SQL['execution']} WHERE e.id IN (SELECT value FROM json_each(?))"
        return {
            found.id: found
            for found in records(Execution, self.db.read(text, (json.dumps(list(ids)),)))
        }

    def result(self, id: str) -> str | None:
        rows = self.db.read(SQL["result"], (id,))
        return str(rows[0][0]) if rows else None

    def search(
        self,
        selection: Selection,
        before: tuple[int, str] | None,
        limit: int,
        brief: bool = False,
        most_bytes: int | None = None,
    ) -> Found[Execution]:
        asked = Search(selection, SQLITE, self.db.clock(), selection.order)
        ids = [id for _, id in ids_of_page(self.db.read_once, asked, before, limit)]
        columns = BRIEF_COLUMNS if brief else "*"
        text = (
            f"SELECT {columns} FROM ({SQL['execution']}) WHERE id IN (SELECT value FROM "
            f"json_each(?)) ORDER BY {selection.order}_at DESC, id DESC"
        )
        found = self._executions(text, (json.dumps(ids),), most_bytes)
        return found.after_pruning(len(ids) == limit)

    def names(self, prefixes: Sequence[str]) -> list[str]:
        return [name for (name,) in self.db.read(SQL["names"], (json.dumps(prefixes),))]

    def root_names(self, ids: Sequence[str]) -> dict[str, str]:
        return dict(self.db.read(SQL["root_names"], (json.dumps(ids),)))

    def children(
        self,
        id: str,
        after: int = 0,
        limit: int | None = None,
        brief: bool = False,
        most_bytes: int | None = None,
    ) -> Found[Execution]:
        where = (
            "WHERE e.parent_id = ? AND e.id >= ? AND e.id < ? AND e.child_no > ? ORDER BY "
            "e.child_no LIMIT ?"
        )
        text = f"{SQL['execution']} {where}"
        args = (id, f"{id}.", f"{id}/", after, -1 if limit is None else limit)
        return self._executions(
            f"SELECT {BRIEF_COLUMNS} FROM ({text})" if brief else text, args, most_bytes
        )

    def _executions(self, text: str, args: Any, most_bytes: int | None) -> Found[Execution]:
        rows, cut = self.db.read_some(text, args, most_bytes)
        return Found.of(records(Execution, rows), cut)

    def stamps(self, ids: Sequence[str]) -> dict[str, str]:
        return dict(self.db.read(SQL["stamps"], (json.dumps(list(ids)),)))

    def due(self, id: str) -> dict[int, int]:
        return dict(self.db.read(SQL["due"], {"id": id}))

    def history(self, id: str) -> list[Transition]:
        return with_names(records(Transition, self.db.read(SQL["history"], (id,))))

    def trace(
        self,
        id: str,
        after: Place | None,
        limit: int,
        most_bytes: int | None = None,
        alike: int = EVERYTHING,
    ) -> Found[Moment]:
        bounds = {
            "id": id,
            "first": f"{id}.",
            "last": f"{id}/",
            "most": MAX_TRACED_EXECUTIONS,
            "turns": MAX_TRACED_TURNS,
            "limit": limit,
            "alike": alike,
            "votes": VOTES,
        }
        begin = after or Place(-1, 0, 0, 0, "", 0, 0)
        after_it = {f"p_{name}": getattr(begin, name) for name in begin._fields}
        places = records(Place, self.db.read(SQL["trace"], {**bounds, **after_it}))
        wanted = json.dumps([_wanted(place) for place in places])
        rows, cut = self.db.read_some(SQL["moments"], (wanted,), most_bytes)
        # `place` is a position in `places` here.
        read: list[Any] = records(Moment, rows)
        return Found.of((moment.replace(place=places[moment.place]) for moment in read), cut)

    def alike(self, id: str, most: int) -> list[Alike]:
        asked = {
            "first": f"{id}.",
            "last": f"{id}/",
            "depth": id.count("."),
            "most_executions": MAX_TRACED_EXECUTIONS,
            "most": most,
        }
        return records(Alike, self.db.read(SQL["alike"], asked))


def _wanted(place: Place) -> list[str | int]:
    """Returns what a moment is looked up by; of a vote also its approval, and its number there."""
    approval, vote = divmod(place.n, VOTES)
    return [place.id, place.kind, place.n, f"{place.id}.{approval}", vote]
