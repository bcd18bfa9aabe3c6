"""A session on the connection of a caller who commits or rolls back: what is started there comes
with the caller's own data."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rhythm.store.sqlite.session import Clock, SqliteSession, some


class JoinedSession(SqliteSession):
    """A session on somebody else's connection, inside its transaction: it commits nothing, and
    undoes only what it did itself."""

    def __init__(self, path: str, clock: Clock, connection: Any) -> None:
        if not isinstance(connection, sqlite3.Connection):
            raise TypeError(
                f"`connection` must be a sqlite3 connection to {path}, not "
                f"{type(connection).__name__}"
            )
        self.path = path
        self.clock = clock
        self.connection = connection
        self.lock = threading.RLock()
        file = self._cursor().execute("PRAGMA database_list").fetchone()[2]
        if path == ":memory:" or not file or not os.path.samefile(file, path):
            raise ValueError(
                f"`connection` leads to {file or 'a database in memory'}, the executions "
                f"are in {path}: use the same file"
            )

    def close(self) -> None:
        """It is not ours to close."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if not self.connection.in_transaction:
            if self.connection.isolation_level is None:
                raise ValueError(
                    "`connection` commits every statement by itself: begin a transaction first"
                )
            self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute("SAVEPOINT rhythm")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK TO rhythm")
            raise
        finally:
            self.connection.execute("RELEASE rhythm")

    def fetch(self, text: str, args: Any = ()) -> tuple[list[Any], sqlite3.Cursor]:
        """Its owner's problems are its owner's: what SQLite says is passed on as it is."""
        cursor = self._cursor().execute(text, args)
        return cursor.fetchall(), cursor

    def read_some(
        self, text: str, args: Any, most_bytes: int | None = None
    ) -> tuple[list[Any], bool]:
        return some(self.run(text, args)[0], most_bytes)

    def _cursor(self) -> sqlite3.Cursor:
        """One that gives plain rows, whatever rows the owner of the connection likes."""
        cursor = self.connection.cursor()
        cursor.row_factory = None
        return cursor
