"""What executions have said, on SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rhythm.ids import root_of
from rhythm.store.interfaces.logs import LogLine, LogStore, LogTotals, RootLines
from rhythm.store.log_lines import Identity, admit, pruned_at_once
from rhythm.store.reading import Found
from rhythm.store.rows import fields, records
from rhythm.store.sqlite.role import SqliteRole
from rhythm.store.sqlite.session import SQL, us


class SqliteLogs(SqliteRole, LogStore):
    def write(self, roots: Sequence[RootLines], again: bool = False) -> None:
        now = self.db.clock()  # the lines have their age now, and not once it is our turn to write
        with self._unsynced(), self.db.transaction():
            for each in roots:
                known = self._known(each) if again else frozenset()
                self._write(each, now, known)

    @contextmanager
    def _unsynced(self) -> Iterator[None]:
        """Commits without waiting for the disk: the next commit that waits takes the lines along.

        Other threads that use this connection wait until that is over.
        """
        with self.db.lock:
            self.db.fetch("PRAGMA synchronous = NORMAL")
            try:
                yield
            finally:
                self.db.fetch("PRAGMA synchronous = FULL")

    def _known(self, given: RootLines) -> frozenset[Identity]:
        ids = json.dumps(sorted({line.execution_id for line in given.lines}))
        found = self.db.all("known_lines", {"root": given.root_id, "ids": ids})
        return frozenset((id, turn, n) for id, turn, n in found)

    def _write(self, given: RootLines, now: int, known: frozenset[Identity]) -> None:
        before = self.db.first(LogTotals, "log_totals", given.root_id)
        admitted = admit(given, before or LogTotals(given.root_id), now, known)
        names = LogLine._fields
        rows = [tuple(getattr(line, name) for name in names) for line in admitted.lines]
        self.db.many("insert_lines", names, rows)
        self.db.all("set_log_totals", {**fields(admitted.totals), "now": now})

    def read(
        self,
        id: str,
        after: int,
        limit: int,
        level: int = 0,
        most_bytes: int | None = None,
    ) -> Found[LogLine]:
        asked = {**_below(id), "after": after, "limit": limit, "level": level}
        rows, cut = self.db.read_some(SQL["read_lines"], asked, most_bytes)
        return Found.of(records(LogLine, rows), cut)

    def last_progress(self, id: str) -> LogLine | None:
        found = records(LogLine, self.db.read(SQL["last_progress"], _below(id)))
        return found[0] if found else None

    def totals(self, root_id: str) -> LogTotals:
        found = records(LogTotals, self.db.read(SQL["log_totals"], (root_id,)))
        return found[0] if found else LogTotals(root_id)

    def prune_lines(self, older_than_s: float, limit: int) -> int:
        before = self.db.clock() - us(older_than_s)
        if not self.db.all("old_logs", before, limit):
            return 0
        with self.db.transaction():
            old = self.db.all("old_logs", before, limit)
            old = old[: pruned_at_once(lines for _, lines in old)]
            for root, _ in old:
                self._prune(root, before)
            return len(old)

    def _prune(self, root: str, before: int) -> None:
        lines, size = self.db.one("old_lines", root, before)
        self.db.all("delete_old_lines", root, before)
        self.db.all("settle_log_totals", {"id": root, "lines": lines, "bytes": size})
        self.db.all("delete_empty_logs", root)


def _below(id: str) -> dict[str, Any]:
    return {"root": root_of(id), "id": id, "first": f"{id}.", "last": f"{id}/"}
