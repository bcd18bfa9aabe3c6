"""Executions on PostgreSQL, read for display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rhythm.store.interfaces.executions import Execution
from rhythm.store.interfaces.operating import Selection
from rhythm.store.interfaces.reading import (
    BRIEF_COLUMNS,
    LARGE_COLUMNS,
    ReadingStore,
    Transition,
    with_names,
)
from rhythm.store.postgres.connection import SQL
from rhythm.store.postgres.role import PostgresRole
from rhythm.store.postgres.searching import asker
from rhythm.store.postgres.session import autocommit
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
from rhythm.store.search import POSTGRES, Search, ids_of_page


class PostgresReading(PostgresRole, ReadingStore):
    @autocommit
    def get(self, ids: Sequence[str]) -> dict[str, Execution]:
        text = SQL["execution"] + b" WHERE e.id = ANY(%(ids)s::text[])"
        return {
            found.id: found for found in records(Execution, self.db.rows(text, {"ids": list(ids)}))
        }

    def result(self, id: str) -> str | None:
        rows = self.db.ask("result", id=id)
        return str(rows[0][0]) if rows else None

    @autocommit
    def search(
        self,
        selection: Selection,
        before: tuple[int, str] | None,
        limit: int,
        brief: bool = False,
        most_bytes: int | None = None,
    ) -> Found[Execution]:
        asked = Search(selection, POSTGRES, 0, selection.order)
        ids = [id for _, id in ids_of_page(asker(self.db), asked, before, limit)]
        columns = BRIEF_COLUMNS.encode() if brief else b"e.*"
        text = b"SELECT " + columns + b" FROM (" + SQL["execution"] + b") e "
        text += b"WHERE id = ANY(%(ids)s::text[]) "
        text += b"ORDER BY " + selection.order.encode() + b"_at DESC, id DESC"
        found = self._executions(text, {"ids": ids}, brief, most_bytes)
        return found.after_pruning(len(ids) == limit)

    def _executions(
        self, text: bytes, values: Mapping[str, Any], brief: bool, most_bytes: int | None
    ) -> Found[Execution]:
        large = ("attributes", "error", "paused_reason", *(() if brief else LARGE_COLUMNS))
        rows, cut = self.db.some(text, values, large, most_bytes)
        return Found.of(records(Execution, rows), cut)

    def names(self, prefixes: Sequence[str]) -> list[str]:
        return [name for (name,) in self.db.ask("names", prefixes=list(prefixes))]

    def root_names(self, ids: Sequence[str]) -> dict[str, str]:
        return dict(self.db.ask("root_names", ids=list(ids)))

    @autocommit
    def children(
        self,
        id: str,
        after: int = 0,
        limit: int | None = None,
        brief: bool = False,
        most_bytes: int | None = None,
    ) -> Found[Execution]:
        where = (
            b" WHERE e.parent_id = %(id)s AND e.id >= %(first)s AND e.id < %(last)s AND "
            b"e.child_no > %(after)s ORDER BY e.child_no"
        )
        text = SQL["execution"] + where + b" LIMIT %(limit)s"
        text = b"SELECT " + BRIEF_COLUMNS.encode() + b" FROM (" + text + b") e" if brief else text
        values = dict[str, Any](id=id, first=f"{id}.", last=f"{id}/", after=after, limit=limit)
        return self._executions(text, values, brief, most_bytes)

    @autocommit
    def stamps(self, ids: Sequence[str]) -> dict[str, str]:
        return dict(self.db.all("stamps", ids=list(ids)))

    @autocommit
    def due(self, id: str) -> dict[int, int]:
        return dict(self.db.all("due", id=id))

    @autocommit
    def history(self, id: str) -> list[Transition]:
        return with_names(records(Transition, self.db.all("history", id=id)))

    @autocommit
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
        rows = self.db.all(
            "trace", **bounds, **{f"p_{name}": getattr(begin, name) for name in begin._fields}
        )
        places = records(Place, rows)
        wanted: dict[str, Any] = {"votes": VOTES}
        wanted |= {name: [getattr(place, name) for place in places] for name in ("id", "kind", "n")}
        found, cut = (
            self.db.some(SQL["moments"], wanted, ("detail", "reason"), most_bytes)
            if places
            else ([], False)
        )
        # `place` is a position in `places` here, from 1 on.
        read: list[Any] = records(Moment, found)
        return Found.of((moment.replace(place=places[moment.place - 1]) for moment in read), cut)

    def alike(self, id: str, most: int) -> list[Alike]:
        asked = {
            "first": f"{id}.",
            "last": f"{id}/",
            "depth": id.count("."),
            "most_executions": MAX_TRACED_EXECUTIONS,
            "most": most,
        }
        return records(Alike, self.db.ask("alike", **asked))
