"""The doctor on SQLite: its statements, and the read transaction in which all of them run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from typing import Any

from rhythm.errors import StoreError
from rhythm.store.doctor import RULES, Ask, bounded_text
from rhythm.store.interfaces.workers import Queue
from rhythm.store.rows import records
from rhythm.store.sqlfile import statements
from rhythm.store.sqlite.session import NAMED, PACKAGE, SqliteSession, connect


@cache
def doctor_sql() -> dict[str, str]:
    """Returns the doctor's statements by name. Those of rules return a bounded number of rows."""
    return {
        name: bounded_text(text, ":limit") if name in RULES else text
        for name, text in statements(PACKAGE, "doctor.sql").items()
    }


@contextmanager
def snapshot(db: SqliteSession) -> Iterator[Ask]:
    """Opens a read transaction, and yields the function that runs the doctor's statements in it.

    For a file it uses a connection of its own, so that other users of the store do not wait for it.
    """
    try:
        if db.path == ":memory:":
            with db.lock:
                yield from _reading(db.connection)
        else:
            with closing(connect(db.path, "ro")) as own:
                yield from _reading(own)
    except sqlite3.Error as problem:
        raise StoreError(f"cannot read the SQLite database {db.path}: {problem}") from problem


def _reading(db: sqlite3.Connection) -> Iterator[Ask]:
    def ask(
        name: str, /, rows: Sequence[tuple[str, int]] | None = None, **values: Any
    ) -> list[Any]:
        lists = {
            key: json.dumps(value)
            for key, value in {**values, "rows": rows}.items()
            if isinstance(value, list)
        }
        cursor = db.execute(doctor_sql()[name], {**values, **lists})
        found = cursor.fetchall()
        return NAMED.result(doctor_sql()[name], found, cursor) if found else found

    db.execute("BEGIN DEFERRED")
    try:
        yield ask
    finally:
        db.execute("ROLLBACK")


def queue_rows(ask: Ask, now: int) -> list[Queue]:
    """Returns all queues with the number of their rows."""
    return records(Queue, ask("queues", now=now))
