"""Empty stores of every kind, on the clock of the test."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rhythm.store.interfaces.store import Store
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.sqlite.store import SqliteStore
from tests.support.postgres import Schemas

KINDS = ["sqlite", "postgres"]
Clock = Callable[[], int]
MakeStore = Callable[[Clock], Store]
LONG_US = 10**16  # a worker that lives has beaten since


class SqliteFiles:
    """Stores in one file: any number of connections to the same tables."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        self.opened: list[SqliteStore] = []

    def empty_store(self, clock: Clock) -> SqliteStore:
        self.number += 1
        migrated_file(self.folder / f"{self.number}.db")
        return self.store(clock)

    def store(self, clock: Clock) -> SqliteStore:
        store = SqliteStore(str(self.folder / f"{self.number}.db"), clock)
        self.opened.append(store)
        return store

    def close(self) -> None:
        for store in self.opened:
            store.close()


Stores = SqliteFiles | Schemas


in_memory: list[SqliteStore] = []


def sqlite_in_memory(clock: Clock) -> SqliteStore:
    """An empty store; only the last one made is in use."""
    close_in_memory()
    store = SqliteStore(":memory:", clock)
    template().db.connection.backup(store.db.connection)
    in_memory.append(store)
    return store


def close_in_memory() -> None:
    while in_memory:
        in_memory.pop().close()


def migrated_file(path: Path) -> None:
    """Makes a file with the tables of Rhythm, and nothing in them."""
    path.write_bytes(template().db.connection.serialize())


@cache
def template() -> SqliteStore:
    """Tables without rows, to be copied: to migrate a database for each test takes long."""
    store = SqliteStore(":memory:")
    store.schema.migrate()
    atexit.register(store.close)
    return store


def rob(store: Store, *workers: str, crash_limit: int = 5) -> list[str]:
    """Takes back what these workers have claimed, as if their last beat were long ago; then all is
    as it was for those who live."""
    which = f"worker_id IN ({', '.join('?' * len(workers))})"
    before = rows(store, "SELECT worker_id, beat_at, dead_after_us FROM worker_heartbeats")
    said = ", ".join("(?, '', 0, '', '[]', 0, 0, (1 = 0), '', 0, 0, 0)" for _ in workers)
    rows(store, f"UPDATE worker_heartbeats SET dead_after_us = {LONG_US}")
    rows(
        store,
        (
            f"INSERT INTO worker_heartbeats VALUES {said} ON CONFLICT (worker_id) DO UPDATE "
            f"SET beat_at = 0, dead_after_us = 0"
        ),
        workers,
    )
    taken = store.maintenance.rescue(100, crash_limit, dead=True)
    rows(store, f"DELETE FROM worker_heartbeats WHERE {which} AND started_at = 0", workers)
    for worker, beat_at, dead_after_us in before:
        rows(
            store,
            "UPDATE worker_heartbeats SET beat_at = ?, dead_after_us = ? WHERE worker_id = ?",
            [beat_at, dead_after_us, worker],
        )
    return taken


def ready_rows(store: Store) -> list[tuple[str, int, int]]:
    """What somebody must look at or is looking at: id, state, wakes."""
    return rows(store, "SELECT id, state, wakes FROM ready ORDER BY id")


def rows(store: Store, text: str, values: Sequence[Any] = ()) -> list[Any]:
    """Runs a statement of our own, with `?` for values; its rows, if it has any."""
    if isinstance(store, PostgresStore):
        numbered = {f"v{i}": value for i, value in enumerate(values)}
        for name in numbered:
            text = text.replace("?", f"%({name})s", 1)
        cursor = store.db.autocommit(lambda: store.db.query(text.encode(), numbered))
        return cursor.fetchall() if cursor.description else []
    assert isinstance(store, SqliteStore)
    # a statement that another thread has open would keep its next transaction from beginning
    with store.db.lock:
        return store.db.connection.execute(text, values).fetchall()
