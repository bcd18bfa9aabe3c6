"""A session on the connection of a caller, who commits or rolls back: what is started there is
committed with the caller's own data."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rhythm.store.sqlite.session import Clock, SqliteSession, some


class JoinedSession(SqliteSession):
    """A session on a caller's connection, inside its transaction.

    It commits nothing, and rolls back only its own work.
    """

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
        """Does nothing: the connection belongs to the caller."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Runs the block in a savepoint of the caller's transaction."""
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
        """Runs a statement.

        SQLite's errors are passed on unchanged, because the transaction is the caller's.
        """
        cursor = self._cursor().execute(text, args)
        return cursor.fetchall(), cursor

    def read_some(
        self, text: str, args: Any, most_bytes: int | None = None
    ) -> tuple[list[Any], bool]:
        return some(self.run(text, args)[0], most_bytes)

    def _cursor(self) -> sqlite3.Cursor:
        """Returns a cursor that gives plain rows, whatever row factory the caller's connection
        has."""
        cursor = self.connection.cursor()
        cursor.row_factory = None
        return cursor
