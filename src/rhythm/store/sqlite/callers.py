"""Connections of callers to SQLite: statements, on each driver."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rhythm.store.callers import (
    CallerConnection,
    Driver,
    FetchedRows,
    commits_by_itself,
    refuse_other,
)
from rhythm.store.loop_calls import Calls, Kind


class SqliteCaller(Protocol):
    """A caller's connection."""

    def fetch(self, text: str, args: Any = (), kind: Kind = "statement") -> FetchedRows:
        """Runs a statement. Returns its rows."""

    def begin(self) -> None:
        """Begins a transaction, unless the caller has."""

    def create_function(self, name: str, function: Callable[[], Any]) -> None:
        """Makes a function without arguments that statements can call."""


class Sqlite3Caller:
    """A connection of the standard library."""

    def __init__(self, connection: sqlite3.Connection, calls: Calls) -> None:
        self._connection, self._calls = connection, calls

    def fetch(self, text: str, args: Any = (), kind: Kind = "statement") -> FetchedRows:
        answer: FetchedRows = self._calls(lambda: self._fetched(text, args), kind)
        return answer

    def _fetched(self, text: str, args: Any) -> FetchedRows:
        cursor = self._connection.cursor()
        cursor.row_factory = None  # plain rows, whatever the caller's connection gives
        cursor.execute(text, args)
        return FetchedRows(cursor.fetchall(), cursor.description, cursor.rowcount)

    def begin(self) -> None:
        if not self._connection.in_transaction:
            # where the connection was made: from Python 3.12 on no other thread may ask
            self._calls(lambda: _refuse_autocommit(self._connection))
            self.fetch("BEGIN IMMEDIATE")

    def create_function(self, name: str, function: Callable[[], Any]) -> None:
        self._calls(lambda: self._connection.create_function(name, 0, function))


class AiosqliteCaller:
    """A connection of aiosqlite, which runs everything in a thread of its own."""

    def __init__(self, connection: Any, calls: Calls) -> None:
        self._connection, self._calls = connection, calls

    def fetch(self, text: str, args: Any = (), kind: Kind = "statement") -> FetchedRows:
        answer: FetchedRows = self._calls(lambda: self._fetched(text, args), kind)
        return answer

    async def _fetched(self, text: str, args: Any) -> FetchedRows:
        cursor = await self._connection.cursor()
        cursor.row_factory = None
        try:
            await cursor.execute(text, args)
            rows = list(await cursor.fetchall())
        except BaseException:
            await cursor.close()  # SQLite refuses much while a cancelled statement is open
            raise
        return FetchedRows(rows, cursor.description, cursor.rowcount)

    def begin(self) -> None:
        if not self._connection.in_transaction:
            _refuse_autocommit(self._connection)
            self.fetch("BEGIN IMMEDIATE")

    def create_function(self, name: str, function: Callable[[], Any]) -> None:
        self._calls(lambda: self._connection.create_function(name, 0, function))


def _refuse_autocommit(connection: Any) -> None:
    """Raises `ValueError` for a connection whose `commit` does not end what we would begin."""
    # `autocommit` exists from Python 3.12 on; True there means what None means here
    if connection.isolation_level is None or getattr(connection, "autocommit", None) is True:
        raise commits_by_itself("BEGIN IMMEDIATE")


CALLERS: Mapping[Driver, Callable[[Any, Calls], SqliteCaller]] = {
    "sqlite3": Sqlite3Caller,
    "aiosqlite": AiosqliteCaller,
}


def caller_of(reached: CallerConnection, path: str) -> SqliteCaller:
    """Returns the caller's connection. Raises `TypeError` for one that is not of SQLite."""
    refuse_other(reached, CALLERS, f"the SQLite file {path}")
    return CALLERS[reached.driver](reached.connection, reached.calls)
