"""Connections of every library that callers use, behind one face: run, commit, roll back.

A scenario is one coroutine for all of them. That of a plain library never suspends, so `drive` runs
it without an event loop: Django refuses to work inside one.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import psycopg2
import sqlalchemy
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session


class Opened:
    """A connection in a transaction: what is given to Rhythm, and what its user does with it."""

    def __init__(
        self,
        given: Any,
        run: Callable[[str], Any],
        commit: Callable[[], Any],
        rollback: Callable[[], Any],
    ) -> None:
        self.given = given
        self._run, self._commit, self._rollback = run, commit, rollback

    async def run(self, text: str) -> None:
        await _awaited(self._run(text))

    async def commit(self) -> None:
        await _awaited(self._commit())

    async def rollback(self) -> None:
        await _awaited(self._rollback())


async def _awaited(result: Any) -> Any:
    return await result if asyncio.iscoroutine(result) else result


Open = Callable[[str], AbstractAsyncContextManager[Opened]]
SQLITE: dict[str, Open] = {}
POSTGRES: dict[str, Open] = {}
ASYNC: set[Open] = set()


def kind(table: dict[str, Open], name: str, awaits: bool = False) -> Callable[[Any], Any]:
    def added(function: Callable[[str], AsyncIterator[Opened]]) -> Open:
        opened = table[name] = asynccontextmanager(function)
        if awaits:
            ASYNC.add(opened)
        return opened

    return added


def drive(library: Open, scenario: Coroutine[Any, Any, Any]) -> Any:
    """Runs a scenario: on an event loop if the library is asynchronous."""
    if library in ASYNC:
        return asyncio.run(scenario)
    try:
        scenario.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a plain library does not suspend")


async def call(library: Open, app: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """Calls a method of the application: as a coroutine if the library is asynchronous."""
    if library in ASYNC:
        return await getattr(app.aio, name)(*args, **kwargs)
    return getattr(app, name)(*args, **kwargs)


# SQLite: the URL is a path


@kind(SQLITE, "sqlite3")
async def _sqlite3(path: str) -> AsyncIterator[Opened]:
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    yield Opened(connection, connection.execute, connection.commit, connection.rollback)
    connection.close()


@kind(SQLITE, "aiosqlite", awaits=True)
async def _aiosqlite(path: str) -> AsyncIterator[Opened]:
    async with aiosqlite.connect(path) as connection:
        connection.row_factory = aiosqlite.Row

        async def run(text: str) -> None:
            await connection.execute(text)

        yield Opened(connection, run, connection.commit, connection.rollback)


@contextmanager
def engine(url: str, **options: Any) -> Iterator[sqlalchemy.Engine]:
    made = sqlalchemy.create_engine(url, **options)
    yield made
    made.dispose()


@asynccontextmanager
async def async_engine(url: str, **options: Any) -> AsyncIterator[Any]:
    made = create_async_engine(url, **options)
    yield made
    await made.dispose()


def _run_in(holder: Any) -> Callable[[str], Any]:
    return lambda text: holder.execute(sqlalchemy.text(text))


@kind(SQLITE, "SQLAlchemy Connection")
async def _connection_sqlite(path: str) -> AsyncIterator[Opened]:
    with engine(f"sqlite:///{path}") as made, made.connect() as connection:
        yield Opened(connection, _run_in(connection), connection.commit, connection.rollback)


@kind(SQLITE, "SQLAlchemy Session")
async def _session_sqlite(path: str) -> AsyncIterator[Opened]:
    with engine(f"sqlite:///{path}") as made, Session(made) as session:
        yield Opened(session, _run_in(session), session.commit, session.rollback)


@kind(SQLITE, "SQLAlchemy AsyncConnection", awaits=True)
async def _async_connection_sqlite(path: str) -> AsyncIterator[Opened]:
    async with async_engine(f"sqlite+aiosqlite:///{path}") as made, made.connect() as connection:
        yield Opened(connection, _run_in(connection), connection.commit, connection.rollback)


@kind(SQLITE, "SQLAlchemy AsyncSession", awaits=True)
async def _async_session_sqlite(path: str) -> AsyncIterator[Opened]:
    async with async_engine(f"sqlite+aiosqlite:///{path}") as made, AsyncSession(made) as session:
        yield Opened(session, _run_in(session), session.commit, session.rollback)


def _django(alias: str, settings: dict[str, Any]) -> Any:
    """A connection of Django in `atomic`, as views have it; the settings are those of DATABASES."""
    import django
    from django.conf import settings as configured
    from django.db import connections

    if not configured.configured:
        configured.configure(DATABASES={}, USE_TZ=True)
        django.setup()
    connections.settings[alias] = connections.configure_settings(
        {"default": settings | {"CONN_MAX_AGE": 0}}
    )["default"]
    return connections[alias]


@contextmanager
def _atomic(alias: str, settings: dict[str, Any]) -> Iterator[Opened]:
    from django.db import connections, transaction

    connection = _django(alias, settings)
    blocks: list[Any] = []

    def begin() -> None:
        blocks.append(transaction.atomic(using=alias))
        blocks[0].__enter__()

    def end(undo: bool) -> None:
        if undo:
            transaction.set_rollback(True, using=alias)
        blocks.pop().__exit__(None, None, None)

    def run(text: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(text)

    begin()
    yield Opened(
        connection, run, lambda: (end(undo=False), begin()), lambda: (end(undo=True), begin())
    )
    end(undo=True)
    connection.close()
    del connections[alias], connections.settings[alias]


@kind(SQLITE, "Django")
async def _django_sqlite(path: str) -> AsyncIterator[Opened]:
    settings = {"ENGINE": "django.db.backends.sqlite3", "NAME": path}
    with _atomic("sqlite", settings) as opened:
        yield opened


# PostgreSQL


def parts(url: str) -> dict[str, Any]:
    """The parts of a URL, under the names that asyncpg and Django have for them."""
    found = conninfo_to_dict(url)
    return {"host": found["host"], "user": found["user"], "database": found["dbname"]}


@kind(POSTGRES, "psycopg")
async def _psycopg(url: str) -> AsyncIterator[Opened]:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        yield Opened(connection, connection.execute, connection.commit, connection.rollback)


@kind(POSTGRES, "psycopg AsyncConnection", awaits=True)
async def _async_psycopg(url: str) -> AsyncIterator[Opened]:
    async with await psycopg.AsyncConnection.connect(url, row_factory=dict_row) as connection:
        yield Opened(connection, connection.execute, connection.commit, connection.rollback)


@kind(POSTGRES, "psycopg2")
async def _psycopg2(url: str) -> AsyncIterator[Opened]:
    connection = psycopg2.connect(url)

    def run(text: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(text)

    yield Opened(connection, run, connection.commit, connection.rollback)
    connection.close()


@asynccontextmanager
async def _of_asyncpg(connection: Any) -> AsyncIterator[Opened]:
    """asyncpg has a transaction only where one is begun."""
    transactions = [connection.transaction()]
    await transactions[0].start()

    async def end(how: str) -> None:
        await getattr(transactions.pop(), how)()
        transactions.append(connection.transaction())
        await transactions[0].start()

    yield Opened(connection, connection.execute, lambda: end("commit"), lambda: end("rollback"))
    if not connection.is_closed():
        await transactions[0].rollback()


@kind(POSTGRES, "asyncpg", awaits=True)
async def _asyncpg(url: str) -> AsyncIterator[Opened]:
    connection = await asyncpg.connect(**parts(url))
    async with _of_asyncpg(connection) as opened:
        yield opened
    await connection.close()


@kind(POSTGRES, "asyncpg of a pool", awaits=True)
async def _asyncpg_pool(url: str) -> AsyncIterator[Opened]:
    async with (
        asyncpg.create_pool(**parts(url), min_size=1, max_size=1) as pool,
        pool.acquire() as connection,
        _of_asyncpg(connection) as opened,
    ):
        yield opened


def _sqlalchemy_url(url: str, driver: str) -> str:
    given = parts(url)
    return f"postgresql+{driver}://{given['user']}@/{given['database']}?host={given['host']}"


def _sqlalchemy_kinds(driver: str) -> None:
    @kind(POSTGRES, f"SQLAlchemy Connection on {driver}")
    async def _connection(url: str) -> AsyncIterator[Opened]:
        with engine(_sqlalchemy_url(url, driver)) as made, made.connect() as connection:
            yield Opened(connection, _run_in(connection), connection.commit, connection.rollback)

    @kind(POSTGRES, f"SQLAlchemy Session on {driver}")
    async def _session(url: str) -> AsyncIterator[Opened]:
        with engine(_sqlalchemy_url(url, driver)) as made, Session(made) as session:
            yield Opened(session, _run_in(session), session.commit, session.rollback)


def _async_sqlalchemy_kinds(driver: str) -> None:
    @kind(POSTGRES, f"SQLAlchemy AsyncConnection on {driver}", awaits=True)
    async def _connection(url: str) -> AsyncIterator[Opened]:
        async with (
            async_engine(_sqlalchemy_url(url, driver)) as made,
            made.connect() as connection,
        ):
            yield Opened(connection, _run_in(connection), connection.commit, connection.rollback)

    @kind(POSTGRES, f"SQLAlchemy AsyncSession on {driver}", awaits=True)
    async def _session(url: str) -> AsyncIterator[Opened]:
        async with (
            async_engine(_sqlalchemy_url(url, driver)) as made,
            AsyncSession(made) as session,
        ):
            yield Opened(session, _run_in(session), session.commit, session.rollback)


_sqlalchemy_kinds("psycopg")
_sqlalchemy_kinds("psycopg2")
_async_sqlalchemy_kinds("psycopg")
_async_sqlalchemy_kinds("asyncpg")


@kind(POSTGRES, "Django")
async def _django_postgres(url: str) -> AsyncIterator[Opened]:
    given = parts(url)
    settings = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": given["database"],
        "USER": given["user"],
        "HOST": given["host"],
    }
    with _atomic("postgres", settings) as opened:
        yield opened


KINDS = [
    *((f"sqlite: {name}", library) for name, library in SQLITE.items()),
    *((f"postgres: {name}", library) for name, library in POSTGRES.items()),
]
