"""One connection to PostgreSQL, used by one thread at a time: transactions, retries, and opening it again after it broke."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import errors, sql

from rhythm.errors import StoreError
from rhythm.store.sqlfile import statements

SQL = {name: text.encode() for name, text in statements("rhythm.store.postgres", "queries.sql").items()}
TRIES = 20  # of a transaction that met another one

Clock = Callable[[], int]
Row = Any  # a tuple, as wide as its statement says
T = TypeVar("T")


class UndoneError(Exception):
    """The answer is known, and nothing of the transaction is to stay."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer


class AgainError(Exception):
    """Something has changed while the transaction waited: it must look anew."""


class Connection:
    """Runs named statements in the tables of one schema. `clock`: the time of tests; else it is the database's."""

    def __init__(self, url: str, schema: str, clock: Clock | None) -> None:
        self.url, self.schema, self.clock = url, schema, clock
        self._lock = threading.RLock()
        self._open: psycopg.Connection[Row] | None = None

    def close(self) -> None:
        with self._lock:
            if self._open is not None:
                self._open.close()
                self._open = None

    def transaction(self, work: Callable[[], T]) -> T:
        """Everything that `work` does is committed together, or nothing is. It may run more than once."""
        return self._run(lambda connection: self._in_transaction(connection, work))

    def alone(self, work: Callable[[], T]) -> T:
        """Each statement of `work` is committed by itself."""
        return self._run(lambda connection: work())

    def all(self, name: str, /, **values: Any) -> list[Row]:
        return self.query(SQL[name], values).fetchall()

    def do(self, name: str, /, **values: Any) -> None:
        self.query(SQL[name], values)

    def batch(self, name: str, rows: Sequence[Mapping[str, Any]], /, **values: Any) -> list[Row]:
        """A statement over rows that it gets as one array for each column; no rows, no statement."""
        if not rows:
            return []
        answer = self.query(SQL[name], {**{key: [row[key] for row in rows] for key in rows[0]}, **values})
        return answer.fetchall() if answer.description else []

    def query(self, text: bytes | sql.Composed, values: Mapping[str, Any] | None = None) -> psycopg.Cursor[Row]:
        assert self._open is not None
        return self._open.execute(text, values, binary=True)

    def script(self, text: str) -> None:
        """Several statements without values."""
        assert self._open is not None
        self._open.execute(text.encode())

    @contextmanager
    def exclusively(self, key: str) -> Iterator[None]:
        """One session at a time for each key; the lock goes with the connection if that breaks."""
        self.query(b"SELECT pg_advisory_lock(hashtextextended(%(key)s, 0))", {"key": key})
        try:
            yield
        finally:
            if self._open is not None:
                self.query(b"SELECT pg_advisory_unlock(hashtextextended(%(key)s, 0))", {"key": key})

    def now(self) -> int:
        return self.clock() if self.clock else int(self.all("now")[0][0])

    # the connection itself

    def _run(self, work: Callable[[psycopg.Connection[Row]], T]) -> T:
        with self._lock:
            for _ in range(TRIES):
                try:
                    return self._once(work)
                except (AgainError, errors.DeadlockDetected, errors.SerializationFailure):
                    continue
                except (psycopg.OperationalError, psycopg.InterfaceError) as problem:
                    self._forget()
                    raise StoreError(f"the PostgreSQL database did not answer: {problem}") from problem
                except errors.InsufficientPrivilege as problem:
                    raise StoreError(f"the user of the PostgreSQL database lacks a right: {problem}") from problem
            raise StoreError(f"{TRIES} times in a row a transaction had to give way to others")

    def _once(self, work: Callable[[psycopg.Connection[Row]], T]) -> T:
        connection = self._connected()
        if self.clock:
            connection.execute("SELECT set_config('rhythm.now_us', %s, false)", [str(self.clock())])
        return work(connection)

    def _in_transaction(self, connection: psycopg.Connection[Row], work: Callable[[], T]) -> T:
        try:
            with connection.transaction():
                return work()
        except UndoneError as undone:
            answer: T = undone.answer
            return answer

    def _connected(self) -> psycopg.Connection[Row]:
        if self._open is None or self._open.closed:
            self._open = self._connect()
            path = sql.Identifier(self.schema).as_string(self._open)
            self._open.execute("SELECT set_config('search_path', %s, false)", [path])
        return self._open

    def _connect(self) -> psycopg.Connection[Row]:
        try:
            return psycopg.connect(self.url, autocommit=True)
        except psycopg.ProgrammingError as problem:
            raise StoreError(f"the PostgreSQL URL cannot be used: {problem}") from problem

    def _forget(self) -> None:
        """Whatever the server still does with it, nothing is sent on this connection again."""
        if self._open is not None:
            self._open.close()
            self._open = None
