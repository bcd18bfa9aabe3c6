"""What only several connections to one SQLite file can show."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from rhythm.store.base import WORKFLOW, NewExecution
from rhythm.store.sqlite.store import SqliteStore


def test_a_transaction_on_sqlite_is_the_only_writer_before_it_reads(tmp_path: Path) -> None:
    """Else two that have read the same may both write: the second fails, or writes what is no longer true."""
    path, seen = str(tmp_path / "rhythm.db"), list[str]()

    def clock() -> int:  # asked inside every transaction, before it writes
        with sqlite3.connect(path, timeout=0) as other:
            try:
                other.execute("CREATE TABLE other (x)")
                seen.append("let in")
            except sqlite3.OperationalError as problem:
                seen.append(str(problem))
        other.close()
        return 1

    store = SqliteStore(path)
    store.migrate()
    store.clock = clock
    store.start([NewExecution("w", WORKFLOW, "main", "default")])
    store.cancel(["w"])
    store.close()
    assert set(seen) == {"database is locked"}
