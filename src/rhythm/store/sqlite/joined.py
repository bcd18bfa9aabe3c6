"""A session on the connection of a caller, who commits or rolls back: what is started there is
committed with the caller's own data."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from rhythm.store.rows import Row
from rhythm.store.sqlite.callers import SqliteCaller
from rhythm.store.sqlite.session import SQL, Clock, SqliteSession, for_rows, some


class JoinedSession(SqliteSession):
    """A session on a caller's connection, inside its transaction.

    It commits nothing, and rolls back only its own work.
    """

    def __init__(
        self,
        path: str,
        clock: Clock,
        caller: SqliteCaller,
        in_turn: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """`in_turn`: keeps others away from the connection, who use it at the same time."""
        self.path, self._in_turn = path, in_turn
        self.clock = clock
        self.lock = threading.RLock()
        self._caller = caller
        with in_turn():
            self._join(clock)

    def _join(self, clock: Clock) -> None:
        """Prepares the connection. Raises `ValueError` if it leads to another file."""
        ((_, _, file), *_) = self._caller.fetch("PRAGMA database_list").rows
        if self.path == ":memory:" or not file or not os.path.samefile(file, self.path):
            raise ValueError(
                f"`connection` leads to {file or 'a database in memory'}, the executions "
                f"are in {self.path}: use the same file"
            )
        try:
            self._caller.fetch("SELECT now_us()")
        except sqlite3.OperationalError:
            # Once for a connection: SQLite makes no function while a statement is open.
            self._caller.create_function("now_us", clock)

    def close(self) -> None:
        """Does nothing: the connection belongs to the caller."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Runs the block in a savepoint of the caller's transaction."""
        with self._in_turn(), self._in_savepoint():
            yield

    @contextmanager
    def _in_savepoint(self) -> Iterator[None]:
        self._caller.begin()
        self._caller.fetch("SAVEPOINT rhythm", kind="step")
        try:
            yield
            self._caller.fetch("RELEASE rhythm", kind="step")
        except BaseException:
            with suppress(sqlite3.Error):  # some errors have ended the whole transaction
                self._caller.fetch("ROLLBACK TO rhythm", kind="undo")
                self._caller.fetch("RELEASE rhythm", kind="undo")
            raise

    def fetch(self, text: str, args: Any = ()) -> tuple[list[Any], Any]:
        """Runs a statement.

        SQLite's errors are passed on unchanged, because the transaction is the caller's.
        """
        answer = self._caller.fetch(text, args)
        return answer.rows, answer

    def many(self, name: str, columns: tuple[str, ...], rows: Sequence[Row]) -> int:
        return sum(self.each(name, columns, rows))

    def each(self, name: str, columns: tuple[str, ...], rows: Sequence[Row]) -> list[bool]:
        """Runs the statements one by one: a caller's connection may be of any driver."""
        text, in_order = for_rows(SQL[name], columns, 1)
        values = map(in_order, rows) if in_order else rows
        return [self._caller.fetch(text, row).rowcount > 0 for row in values]

    def read_some(
        self, text: str, args: Any, most_bytes: int | None = None
    ) -> tuple[list[Any], bool]:
        return some(self.run(text, args)[0], most_bytes)
