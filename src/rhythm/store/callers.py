"""Connections that callers give (`connection=…`): which objects are known, and how the driver's
connection behind each is reached.

Known are the drivers, and what SQLAlchemy and Django give out. They are recognised by the names of
their classes, so none of these libraries is imported here. What a store does with the driver's
connection is in `postgres/callers` and `sqlite/callers`.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from rhythm.record import Record
from rhythm.store.loop_calls import Calls, LoopCalls, call_here, is_in_loop

Driver = Literal["sqlite3", "aiosqlite", "psycopg", "async psycopg", "psycopg2", "asyncpg"]
ClassName = tuple[str, str]  # the package of a class, and its name

DRIVERS: Mapping[ClassName, Driver] = {
    ("sqlite3", "Connection"): "sqlite3",
    ("aiosqlite", "Connection"): "aiosqlite",
    ("psycopg", "Connection"): "psycopg",
    ("psycopg", "AsyncConnection"): "async psycopg",
    ("psycopg2", "connection"): "psycopg2",
    ("asyncpg", "Connection"): "asyncpg",
    ("asyncpg", "PoolConnectionProxy"): "asyncpg",
}
ASYNC_DRIVERS: frozenset[Driver] = frozenset({"aiosqlite", "async psycopg", "asyncpg"})
# Drivers whose connections may be used only by the thread that has opened them.
BOUND_TO_THREADS: frozenset[Driver] = frozenset({"sqlite3"})

# The lock of each connection that is used just now, by its `id`, and how many calls have it or wait
# for it. Not every driver's connection can be a key by itself.
_LOCKS: dict[int, tuple[threading.RLock, int]] = {}
_USES = threading.Lock()


class CallerConnection(Record):
    """The driver's connection behind what a caller gave."""

    driver: Driver
    connection: Any
    calls: Calls  # runs what must run in the caller's thread, or on the caller's event loop


class FetchedRows(Record):
    """The rows of a statement, and what a cursor says about them."""

    rows: list[Any]
    description: Any = None
    rowcount: int = -1

    def fetchall(self) -> list[Any]:
        """Returns the rows."""
        return self.rows


def reach(given: Any) -> CallerConnection:
    """Returns the driver's connection behind an object that a caller gave to a plain call.

    Raises `TypeError` for an object that is not known, and for an asynchronous one.
    """
    if isinstance(given, CallerConnection):
        return given
    if _entry(ASYNC_LIBRARIES, given):
        raise _asynchronous(given)
    library = _entry(LIBRARIES, given)
    connection = library(given) if library else given
    driver = _driver(connection, given)
    if driver in ASYNC_DRIVERS:
        raise _asynchronous(given)
    return CallerConnection(driver, connection, call_here)


async def reach_from_loop(given: Any, calls: LoopCalls) -> CallerConnection:
    """Returns the driver's connection behind an object that a caller gave to a coroutine."""
    library = _entry(ASYNC_LIBRARIES, given)
    if library is None:
        behind = _entry(LIBRARIES, given)
        connection = behind(given) if behind else given
    else:
        connection = await library(given)
    driver = _driver(connection, given)
    on_loop = driver in ASYNC_DRIVERS or driver in BOUND_TO_THREADS
    return CallerConnection(driver, connection, calls if on_loop else call_here)


@contextmanager
def in_turn(reached: CallerConnection) -> Iterator[None]:
    """Waits until no other call is inside such a block on the same connection.

    Savepoints of two calls must not mix: one that is undone would undo the other, too. Raises
    `ValueError` in an event loop, which the other call may need.
    """
    key = id(reached.connection)
    with _USES:
        lock, users = _LOCKS.get(key, (threading.RLock(), 0))
        _LOCKS[key] = lock, users + 1
    try:
        if not lock.acquire(blocking=not is_in_loop()):
            raise ValueError(
                "`connection` is used by another call that has not returned: await that one first"
            )
        try:
            yield
        finally:
            lock.release()
    finally:
        with _USES:
            lock, users = _LOCKS.pop(key)
            if users > 1:
                _LOCKS[key] = lock, users - 1


def refuse_other(reached: CallerConnection, drivers: Mapping[Any, Any], database: str) -> None:
    """Raises `TypeError` unless the connection is one of these drivers."""
    if reached.driver not in drivers:
        raise TypeError(
            f"`connection` must be a connection to {database} ({', '.join(drivers)}), and is one "
            f"of {reached.driver}"
        )


def commits_by_itself(how: str) -> ValueError:
    """Returns the error for a connection that is in no transaction, and would begin none."""
    return ValueError(
        f"`connection` commits every statement by itself: begin a transaction first ({how})"
    )


def _entry(table: Mapping[ClassName, Any], given: Any) -> Any:
    """Returns the entry of a table for the class of an object, or for a class that it extends."""
    named = ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(given).__mro__)
    return next((table[name] for name in named if name in table), None)


def _driver(connection: Any, given: Any) -> Driver:
    driver: Driver | None = _entry(DRIVERS, connection)
    if driver is not None:
        return driver
    behind = "" if connection is given else f" on {_shown(connection)}"
    raise TypeError(
        f"`connection` must be a connection of sqlite3, aiosqlite, psycopg, psycopg2 or asyncpg, a "
        f"connection or session of SQLAlchemy on one of them, or a connection of Django, not "
        f"{_shown(given)}{behind}"
    )


def _asynchronous(given: Any) -> TypeError:
    return TypeError(
        f"`connection` is asynchronous ({_shown(given)}), and this call is not: use the coroutine "
        f"of the same name (await app.aio.start_workflow(…, connection=…))"
    )


def _shown(given: Any) -> str:
    kind = type(given)
    package = kind.__module__.partition(".")[0]
    return kind.__name__ if package == "builtins" else f"{package}.{kind.__name__}"


# SQLAlchemy must know that a transaction has begun: else its `commit` would do nothing.


def _of_sqlalchemy(connection: Any) -> Any:
    if not connection.in_transaction():
        connection.begin()
    return connection.connection.driver_connection


def _of_sqlalchemy_session(session: Any) -> Any:
    return _of_sqlalchemy(session.connection())


async def _of_async_sqlalchemy(connection: Any) -> Any:
    if not connection.in_transaction():
        await connection.begin()
    driver = (await connection.get_raw_connection()).driver_connection
    if _entry(DRIVERS, driver) == "asyncpg" and not driver.is_in_transaction():
        # SQLAlchemy begins the transaction of asyncpg with its own first statement.
        await connection.exec_driver_sql("SELECT 1")
    return driver


async def _of_async_sqlalchemy_session(session: Any) -> Any:
    return await _of_async_sqlalchemy(await session.connection())


def _of_django(connection: Any) -> Any:
    connection.ensure_connection()
    if connection.get_autocommit():
        raise commits_by_itself("with transaction.atomic(): …")
    return connection.connection


LIBRARIES: Mapping[ClassName, Callable[[Any], Any]] = {
    ("sqlalchemy", "Connection"): _of_sqlalchemy,
    ("sqlalchemy", "Session"): _of_sqlalchemy_session,
    ("sqlalchemy", "scoped_session"): _of_sqlalchemy_session,
    ("django", "BaseDatabaseWrapper"): _of_django,
    ("django", "ConnectionProxy"): _of_django,
}
ASYNC_LIBRARIES: Mapping[ClassName, Callable[[Any], Awaitable[Any]]] = {
    ("sqlalchemy", "AsyncConnection"): _of_async_sqlalchemy,
    ("sqlalchemy", "AsyncSession"): _of_async_sqlalchemy_session,
    ("sqlalchemy", "async_scoped_session"): _of_async_sqlalchemy_session,
}
