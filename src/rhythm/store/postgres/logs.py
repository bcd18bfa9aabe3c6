"""What executions have said, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rhythm.ids import root_of
from rhythm.store.interfaces.logs import LogLine, LogStore, LogTotals, RootLines
from rhythm.store.log_lines import Admitted, Identity, admit, pruned_at_once
from rhythm.store.postgres.connection import SQL
from rhythm.store.postgres.role import PostgresRole
from rhythm.store.postgres.rows import US
from rhythm.store.postgres.session import autocommit, service, transaction
from rhythm.store.reading import Found
from rhythm.store.rows import columns, records, records_with


class PostgresLogs(PostgresRole, LogStore):
    @transaction
    def write(self, roots: Sequence[RootLines], again: bool = False) -> None:
        # Lines are not worth waiting for the disk; what is committed after them takes them along.
        self.db.set("synchronous_commit", "off", local=True)
        by_root = {each.root_id: each for each in roots}
        locked = records_with(LogTotals, self.db.all("lock_log_totals", ids=sorted(by_root)), "now")
        known = self._known(roots) if again else frozenset()
        admitted = [
            admit(by_root[totals.root_id], totals, now, known=known) for totals, now in locked
        ]
        self._insert(admitted)

    def _known(self, roots: Sequence[RootLines]) -> frozenset[Identity]:
        ids = sorted({line.execution_id for each in roots for line in each.lines})
        found = self.db.all("known_lines", roots=[each.root_id for each in roots], ids=ids)
        return frozenset((id, turn, n) for id, turn, n in found)

    def _insert(self, admitted: Sequence[Admitted]) -> None:
        lines = [line for each in admitted for line in each.lines]
        if lines:
            self.db.do("insert_lines", **columns(lines, *LogLine._fields))
        totals = [each.totals for each in admitted]
        self.db.do("set_log_totals", **columns(totals, *LogTotals._fields))

    @autocommit
    def read(
        self,
        id: str,
        after: int,
        limit: int,
        level: int = 0,
        most_bytes: int | None = None,
    ) -> Found[LogLine]:
        asked = {**_below(id), "after": after, "limit": limit, "level": level}
        rows, cut = self.db.some(SQL["read_lines"], asked, ("message", "fields"), most_bytes)
        return Found.of(records(LogLine, rows), cut)

    def last_progress(self, id: str) -> LogLine | None:
        found = records(LogLine, self.db.ask("last_progress", **_below(id)))
        return found[0] if found else None

    def totals(self, root_id: str) -> LogTotals:
        found = records(LogTotals, self.db.ask("log_totals", id=root_id))
        return found[0] if found else LogTotals(root_id)

    def prune_lines(self, older_than_s: float, limit: int) -> int:
        old = self.db.ask("old_logs", age_us=int(older_than_s * US), limit=limit)
        old = old[: pruned_at_once(lines for _, lines, _ in old)]
        if old:
            self._prune(sorted(root for root, _, _ in old), old[0][2])
        return len(old)

    @service
    def _prune(self, roots: Sequence[str], before: int) -> None:
        self.db.do("hold_log_totals", ids=roots)
        deleted = self.db.all("delete_old_lines", ids=roots, before=before)
        gone = {root: (lines, size) for root, lines, size in deleted}
        lines, sizes = zip(*(gone.get(root, (0, 0)) for root in roots), strict=True)
        self.db.do("settle_log_totals", id=roots, lines=[*lines], bytes=[*sizes])
        self.db.do("delete_empty_logs", ids=roots)


def _below(id: str) -> dict[str, Any]:
    return {"root": root_of(id), "id": id, "first": f"{id}.", "last": f"{id}/"}
