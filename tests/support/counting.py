"""What a call asks of its database: how many statements, and how many rows they give."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from rhythm.store.callers import FetchedRows
from rhythm.store.interfaces.store import Store
from rhythm.store.postgres.connection import NO_VALUES, Connection, Later
from rhythm.store.postgres.store import PostgresStore


class Asked:
    """The statements, and what came back."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        # rows in all, and the characters of the largest statement's answer
        self.rows = self.largest = 0

    def add(self, text: str, found: list[Any]) -> None:
        self.statements.append(text)
        self.rows += len(found)
        self.largest = max(
            self.largest,
            sum(len(value) for row in found for value in row if isinstance(value, str)),
        )


@contextmanager
def counting(store: Store) -> Iterator[Asked]:
    """Counts what is asked of the store within this, from any thread."""
    asked = Asked()
    with (
        patch.multiple(Connection, **_postgres(asked))
        if isinstance(store, PostgresStore)
        else patch("sqlite3.connect", _sqlite(asked))
    ):
        if not isinstance(store, PostgresStore):
            _reopen(store)
        yield asked
    if not isinstance(store, PostgresStore):
        _reopen(store)


def _postgres(asked: Asked) -> dict[str, Any]:
    query, send = Connection.query, Connection.send

    def counted(self: Connection, text: bytes, values: Any = NO_VALUES) -> FetchedRows:
        answer = query(self, text, values)
        asked.add(str(text), answer.rows)
        return answer

    def counted_send(self: Connection, text: bytes, values: Any) -> Later:
        asked.add(str(text), [])
        return send(self, text, values)

    return {"query": counted, "send": counted_send}


def _sqlite(asked: Asked) -> Any:
    class Cursor(sqlite3.Cursor):
        text, found = "", 0

        def execute(self, text: str, *args: Any) -> Any:
            asked.add(text, [])
            return super().execute(text, *args)

        def fetchall(self) -> list[Any]:
            return list(iter(self.fetchone, None))

        def fetchone(self) -> Any:
            row = super().fetchone()
            if row is not None:
                asked.rows += 1
            return row

        def __next__(self) -> Any:
            row = super().__next__()
            asked.rows += 1
            return row

    class Database(sqlite3.Connection):
        def execute(self, text: str, *args: Any) -> Any:
            return self.cursor(Cursor).execute(text, *args)

    connect = sqlite3.connect
    return lambda *args, **kwargs: connect(*args, **kwargs, factory=Database)


def _reopen(store: Any) -> None:
    """The next look opens its connection anew."""
    while store.db.readers._idle:
        store.db.readers._idle.pop().close()
