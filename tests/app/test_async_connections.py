"""A caller's connection in async code: it is used from the caller's event loop, one statement at a
time, and is as it was when a call is cancelled."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiosqlite
import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker
from sqlalchemy.orm import Session

import rhythm
from rhythm.app import Rhythm
from rhythm.store import callers as store_callers
from rhythm.store.callers import CallerConnection, in_turn
from rhythm.store.loop_calls import call_here
from rhythm.store.postgres.callers import numbered_placeholders, type_of
from rhythm.store.postgres.joined import Joined
from tests.app.test_operating import until
from tests.support import callers
from tests.support.callers import Open, async_engine, engine
from tests.support.postgres import Schemas
from tests.support.stores import migrated_file

HOLD = 'workflow hold(inputs) {\n  return await signal("go")\n}'
WAIT = "120s"
LIBRARIES = [(name, library) for name, library in callers.KINDS if library in callers.ASYNC]
ON_POSTGRES = [
    (name, library) for name, library in LIBRARIES if library in callers.POSTGRES.values()
]


@pytest.fixture
def file_app(tmp_path: Path) -> Iterator[tuple[Rhythm, str]]:
    path = tmp_path / "app.db"
    migrated_file(path)
    with Rhythm(f"sqlite:///{path}", (), tasks=[], environment={}) as app:
        app.register(HOLD)
        yield app, str(path)


@pytest.fixture
def server_app(schemas: Schemas) -> Iterator[tuple[Rhythm, str]]:
    schemas.empty_store().close()
    with Rhythm(schemas.store_url, (), tasks=[], environment={}) as app:
        app.register(HOLD)
        yield app, schemas.url


on_postgres = pytest.mark.parametrize(
    "library", ON_POSTGRES, indirect=True, ids=lambda param: param[0]
)


@pytest.fixture(params=LIBRARIES, ids=lambda param: param[0])
def library(request: pytest.FixtureRequest) -> Open:
    return request.param[1]


@pytest.fixture
def place(library: Open, request: pytest.FixtureRequest) -> tuple[Rhythm, str]:
    """An application, and what the library connects to."""
    on_sqlite = library in callers.SQLITE.values()
    return request.getfixturevalue("file_app" if on_sqlite else "server_app")


def test_plain_call_refuses_it_names_the_coroutine_and_leaves_none_behind(
    library: Open, place: tuple[Rhythm, str]
) -> None:
    app, url = place

    async def scenario() -> None:
        async with library(url) as opened:
            for refused in (
                lambda: app.start_workflow("hold", connection=opened.given),
                lambda: app.signal("x", "go", connection=opened.given),
                lambda: app.publish("paid", connection=opened.given),
            ):
                with pytest.raises(TypeError, match=r"is asynchronous .*await app\.aio\."):
                    refused()

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # also for coroutines that were never awaited
        asyncio.run(scenario())
        gc.collect()


def test_default_application_takes_it_too(
    library: Open, place: tuple[Rhythm, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rhythm.app import default

    app, url = place
    monkeypatch.setattr(default, "_app", app)

    async def scenario() -> None:
        async with library(url) as opened:
            handle = await rhythm.start_workflow("hold", id="a", connection=opened.given)
            await rhythm.signal("a", "go", 1, connection=opened.given)
            await handle.signal("go", 2, connection=opened.given)
            await rhythm.publish("paid", connection=opened.given)
            await opened.commit()

    asyncio.run(scenario())
    with app.worker():
        assert app.result("a", WAIT) == 1


@on_postgres  # SQLite has one writer: there the second waits at its BEGIN
def test_second_start_with_a_key_waits_for_the_first_and_gets_what_it_left(
    library: Open, place: tuple[Rhythm, str]
) -> None:
    app, url = place

    async def scenario(end: str) -> tuple[Any, Any]:
        key = f"k-{end}"
        async with library(url) as one, library(url) as two:
            first = await app.aio.start_workflow("hold", idempotency_key=key, connection=one.given)
            second = asyncio.create_task(
                app.aio.start_workflow("hold", idempotency_key=key, connection=two.given)
            )
            await _blocked(app)
            assert not second.done()
            await getattr(one, end)()
            started = await second
            await two.commit()
            return first, started

    first, second = asyncio.run(scenario("commit"))
    assert (second.id, second.created) == (first.id, False)
    first, second = asyncio.run(scenario("rollback"))
    assert second.created
    assert first.id != second.id
    assert len(app.list()) == 2


def test_writers_of_a_file_take_turns(file_app: tuple[Rhythm, str]) -> None:
    app, path = file_app
    opens = [library for library in callers.SQLITE.values() if library in callers.ASYNC]

    async def one(library: Open) -> Any:
        async with library(path) as opened:
            handle = await app.aio.start_workflow(
                "hold", idempotency_key="k", connection=opened.given
            )
            await opened.commit()
            return handle

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(one(library) for library in opens * 3))

    handles = asyncio.run(all_at_once())
    assert sum(handle.created for handle in handles) == 1
    assert len({handle.id for handle in handles}) == len(app.list()) == 1


async def _blocked(app: Rhythm) -> None:
    """Waits until somebody waits for a lock."""
    async with await psycopg.AsyncConnection.connect(
        app.store.db.url,  # type: ignore[attr-defined]  # only of PostgreSQL
        autocommit=True,
        prepare_threshold=None,
    ) as admin:
        asked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while not await (await admin.execute(asked)).fetchall():
            await asyncio.sleep(0)


@on_postgres
def test_cancelled_while_it_waits_for_a_lock_it_is_undone_and_the_transaction_goes_on(
    library: Open, server_app: tuple[Rhythm, str]
) -> None:
    app, url = server_app

    async def scenario() -> None:
        async with library(url) as one, library(url) as two:
            await app.aio.start_workflow("hold", idempotency_key="k", connection=one.given)
            await app.aio.start_workflow("hold", id="before", connection=two.given)
            waiting = asyncio.create_task(
                app.aio.start_many(
                    "hold",
                    [rhythm.Start(id="lost"), rhythm.Start(idempotency_key="k")],
                    connection=two.given,
                )
            )
            await _blocked(app)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await app.aio.start_workflow("hold", id="after", connection=two.given)
            await two.commit()
            await one.rollback()

    asyncio.run(scenario())
    assert {execution.id for execution in app.list()} == {"before", "after"}
    until(lambda: not _of_callers())


def _of_callers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "rhythm caller"]


def _cancel_before(
    monkeypatch: pytest.MonkeyPatch, driver: Any, name: str, cancelled: Callable[[], Any], n: int
) -> list[str]:
    """Cancels before the n-th call of a driver's method; returns a list of what is sent."""
    sent, method = list[str](), getattr(driver, name)

    async def counted(self: Any, text: Any, *args: Any, **kwargs: Any) -> Any:
        sent.append(str(text))
        if len(sent) == n:
            cancelled()
        return await method(self, text, *args, **kwargs)

    monkeypatch.setattr(driver, name, counted)
    return sent


def test_cancelled_in_any_statement_all_is_there_or_nothing(
    server_app: tuple[Rhythm, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, url = server_app
    app.start_workflow("hold", id="x")

    async def scenario(n: int) -> tuple[bool, list[str]]:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            with monkeypatch.context() as patched:
                started = asyncio.create_task(
                    app.aio.start_workflow("hold", id=f"c{n}", connection=connection)
                )
                sent = _cancel_before(patched, psycopg.AsyncCursor, "execute", started.cancel, n)
                await asyncio.wait([started])
            await connection.execute("SELECT 1")  # its transaction is not aborted
            await connection.commit()
            return started.cancelled(), sent

    n, cancelled = 0, True
    while cancelled:
        n += 1
        cancelled, sent = asyncio.run(scenario(n))
        undone = "ROLLBACK" in sent[-1]
        assert undone or n >= len(sent)  # only the last statement is not undone
        assert (f"c{n}" in app.executions.get_many([f"c{n}"])) is not undone
    assert n == 4
    with app.worker():
        for id in app.executions.get_many([f"c{n}" for n in range(10)]):
            app.signal(id, "go")
            app.result(id, WAIT)


def test_cancelled_before_its_first_statement_the_transaction_goes_on(
    server_app: tuple[Rhythm, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, url = server_app

    async def scenario() -> None:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            await app.aio.start_workflow("hold", id="before", connection=connection)
            loop, beginning = asyncio.get_running_loop(), Joined._beginning

            def cancelled(self: Joined) -> list[str]:
                loop.call_soon_threadsafe(started.cancel)
                return beginning(self)

            with monkeypatch.context() as patched:
                patched.setattr(Joined, "_beginning", cancelled)
                started = asyncio.create_task(
                    app.aio.start_workflow("hold", id="lost", connection=connection)
                )
                await asyncio.wait([started])
            assert started.cancelled()
            await app.aio.start_workflow("hold", id="after", connection=connection)

    asyncio.run(scenario())
    assert {execution.id for execution in app.list()} == {"before", "after"}


def test_cancelled_before_its_rows_are_read_a_connection_of_aiosqlite_goes_on(
    file_app: tuple[Rhythm, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, path = file_app
    fetchall, kept = aiosqlite.Cursor.fetchall, list[Any]()

    async def scenario(n: int) -> bool:
        async with aiosqlite.connect(path) as connection:
            read = 0

            async def cancelled(self: Any) -> Any:
                nonlocal read
                read += 1
                kept.append(self)  # nobody collects it, and its statement
                if read == n:
                    started.cancel()
                    await asyncio.sleep(0)
                return await fetchall(self)

            with monkeypatch.context() as patched:
                patched.setattr(aiosqlite.Cursor, "fetchall", cancelled)
                started = asyncio.create_task(
                    app.aio.start_workflow("hold", id=f"lost{n}", connection=connection)
                )
                await asyncio.wait([started])
            await connection.rollback()
            await app.aio.start_workflow("hold", id=f"after{n}", connection=connection)
            await connection.commit()
        return started.cancelled()

    n = 1
    while asyncio.run(scenario(n)):
        n += 1
    assert n > 3
    assert {execution.id for execution in app.list()} == {f"after{i + 1}" for i in range(n)}


def _start_two(app: Rhythm, connection: Any) -> Any:
    """Starts two workflows at once on one connection; the second is refused."""
    fails = {"idempotency_key": "taken", "on_conflict": "fail"}
    return asyncio.gather(
        app.aio.start_workflow("hold", id="a", connection=connection),
        app.aio.start_workflow("hold", **fails, connection=connection),
        app.aio.start_workflow("hold", id="b", connection=connection),
        return_exceptions=True,
    )


def test_calls_at_once_on_one_connection_of_postgres_do_not_undo_each_other(
    server_app: tuple[Rhythm, str],
) -> None:
    app, url = server_app
    first = app.start_workflow("hold", idempotency_key="taken")

    async def scenario() -> list[Any]:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            return list(await _start_two(app, connection))

    a, refused, b = asyncio.run(scenario())
    assert isinstance(refused, rhythm.Conflict)
    assert {execution.id for execution in app.list()} == {first, a, b}


def test_calls_at_once_on_one_connection_of_sqlite_do_not_undo_each_other(
    file_app: tuple[Rhythm, str],
) -> None:
    app, path = file_app
    first = app.start_workflow("hold", idempotency_key="taken")

    async def scenario() -> list[Any]:
        async with aiosqlite.connect(path) as connection:
            found = list(await _start_two(app, connection))
            await connection.commit()
            return found

    a, refused, b = asyncio.run(scenario())
    assert isinstance(refused, rhythm.Conflict)
    assert {execution.id for execution in app.list()} == {first, a, b}


def test_plain_call_beside_a_coroutine_on_one_connection_is_refused() -> None:
    """It would wait for the coroutine, which needs the event loop that it blocks."""
    reached = CallerConnection("sqlite3", object(), call_here)

    async def scenario() -> None:
        with pytest.raises(ValueError, match="await that one first"), in_turn(reached):
            raise AssertionError

    held, done = threading.Event(), threading.Event()

    def other() -> None:
        with in_turn(reached):
            held.set()
            done.wait()

    thread = threading.Thread(target=other)
    thread.start()
    held.wait()
    asyncio.run(scenario())
    done.set()
    thread.join()
    assert not store_callers._LOCKS


def test_connection_of_a_plain_library_can_be_given_to_a_coroutine(
    file_app: tuple[Rhythm, str], server_app: tuple[Rhythm, str]
) -> None:
    async def with_sqlite3(app: Rhythm, path: str) -> None:
        connection = sqlite3.connect(path)  # may be used in this thread only
        await app.aio.start_workflow("hold", id="a", connection=connection)
        await app.aio.signal("a", "go", connection=connection)
        connection.commit()
        connection.close()

    async def with_session(app: Rhythm, url: str) -> None:
        with engine(url) as made, Session(made) as session:
            await app.aio.start_workflow("hold", id="b", connection=session)
            session.commit()

    async def with_psycopg(app: Rhythm, url: str) -> None:
        with psycopg.connect(url) as connection:
            await app.aio.start_workflow("hold", id="a", connection=connection)

    app, path = file_app
    asyncio.run(with_sqlite3(app, path))
    asyncio.run(with_session(app, f"sqlite:///{path}"))
    assert {each.id for each in app.list()} == {"a", "b"}
    app, url = server_app
    asyncio.run(with_psycopg(app, url))
    asyncio.run(with_session(app, callers._sqlalchemy_url(url, "psycopg")))
    assert {each.id for each in app.list()} == {"a", "b"}


def test_scoped_session_is_that_of_the_calling_task(file_app: tuple[Rhythm, str]) -> None:
    app, path = file_app

    async def scenario() -> None:
        async with async_engine(f"sqlite+aiosqlite:///{path}") as made:
            scoped: Any = async_scoped_session(
                async_sessionmaker(made, class_=AsyncSession), asyncio.current_task
            )
            await app.aio.start_workflow("hold", id="a", connection=scoped)
            await scoped.commit()
            await scoped.remove()

    asyncio.run(scenario())
    assert app.get("a").name == "hold"


@pytest.mark.parametrize(
    "isolated", ["async psycopg", "asyncpg", "sqlalchemy on asyncpg", "sqlalchemy on psycopg"]
)
def test_connection_that_commits_by_itself_is_refused(
    isolated: str, server_app: tuple[Rhythm, str]
) -> None:
    app, url = server_app

    async def refused(connection: Any) -> None:
        with pytest.raises(ValueError, match=r"commits every statement by itself: begin a trans"):
            await app.aio.start_workflow("hold", connection=connection)

    async def scenario() -> None:
        import asyncpg

        if isolated == "async psycopg":
            async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
                await refused(connection)
                async with connection.transaction():
                    await app.aio.start_workflow("hold", id="a", connection=connection)
        elif isolated == "asyncpg":
            other = await asyncpg.connect(**callers.parts(url))
            await refused(other)
            async with other.transaction(), other.transaction():  # a savepoint of it
                await app.aio.start_workflow("hold", id="a", connection=other)
            await other.close()
        else:
            full = callers._sqlalchemy_url(url, isolated.rpartition(" ")[2])
            async with (
                async_engine(full, isolation_level="AUTOCOMMIT") as made,
                made.connect() as third,
            ):
                await refused(third)
            await app.aio.start_workflow("hold", id="a")

    asyncio.run(scenario())
    assert [each.id for each in app.list()] == ["a"]


def test_more_waiting_calls_than_a_pool_has_threads_stop_nobody(
    server_app: tuple[Rhythm, str],
) -> None:
    app, url = server_app
    count = 40  # more than the pool of asyncio has threads

    async def waiter() -> Any:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            return await app.aio.start_workflow("hold", idempotency_key="k", connection=connection)

    async def scenario() -> None:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            first = await app.aio.start_workflow("hold", idempotency_key="k", connection=connection)
            others = [asyncio.create_task(waiter()) for _ in range(count)]
            await _blocked(app)
            # the caller everybody waits for goes on, with its connection and without
            await app.aio.start_workflow("hold", id="more", connection=connection)
            await app.aio.list()
            await connection.commit()
            assert {(await other).id for other in others} == {first.id}

    asyncio.run(scenario())
    assert len(app.list()) == 2


def test_pipeline_is_refused_because_nothing_is_answered_there(
    server_app: tuple[Rhythm, str],
) -> None:
    app, url = server_app

    async def scenario() -> None:
        async with (
            await psycopg.AsyncConnection.connect(url) as connection,
            connection.pipeline(),
        ):
            with pytest.raises(ValueError, match=r"leave the block of `pipeline\(\)` first"):
                await app.aio.start_workflow("hold", connection=connection)

    asyncio.run(scenario())
    with (
        psycopg.connect(url) as connection,
        connection.pipeline(),
        pytest.raises(ValueError, match=r"leave the block of `pipeline\(\)` first"),
    ):
        app.start_workflow("hold", connection=connection)


def test_round_trips_of_a_call_are_few(
    server_app: tuple[Rhythm, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, url = server_app
    app.start_workflow("hold", id="parked")
    counts = dict[str, int]()

    async def scenario() -> None:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            await app.aio.start_workflow("hold", connection=connection)  # knows the server now
            sent = _cancel_before(monkeypatch, psycopg.AsyncCursor, "execute", lambda: None, 0)
            for name, *args in (
                ("start_workflow", "hold"),
                ("start_many", "hold", [1, 2, 3]),
                ("queue_task", "work"),
                ("signal", "parked", "go"),
                ("publish", "paid"),
            ):
                sent.clear()
                await getattr(app.aio, name)(*args, connection=connection)
                counts[name] = len(sent)

    asyncio.run(scenario())
    assert counts == {
        "start_workflow": 3,
        "start_many": 3,
        "queue_task": 3,
        "signal": 5,
        "publish": 9,
    }


def test_placeholders_are_numbered_and_have_the_types_of_their_values() -> None:
    values = {"id": "a", "n": [None, 3], "on": True, "none": None, "empty": []}
    types = tuple((name, type_of(value)) for name, value in values.items())
    text, names = numbered_placeholders(
        b"%(n)b::smallint[] %(id)s %(n)b %(on)b %(none)s LIKE '%%' %(empty)b::text[]", types
    )
    assert text == (
        "$1::bigint[]::smallint[] $2::text $1::bigint[] $3::boolean $4 LIKE '%' $5::text[]"
    )
    assert names == ("n", "id", "on", "none", "empty")


DRIVERS = [(name, library) for name, library in LIBRARIES if "SQLAlchemy" not in name]


@pytest.mark.parametrize("library", DRIVERS, indirect=True, ids=lambda param: param[0])
def test_calls_at_the_same_time_on_one_connection_undo_only_their_own_part(
    library: Open, place: tuple[Rhythm, str]
) -> None:
    app, url = place
    ids = [f"x{i}" for i in range(8)]

    async def scenario() -> list[Any]:
        async with library(url) as opened:
            calls = [
                app.aio.start_many("hold", [rhythm.Start(id=id)], connection=opened.given)
                for id in ids
            ]
            wrong = [app.aio.signal("nobody", "go", connection=opened.given) for _ in ids]
            mixed = [call for pair in zip(calls, wrong, strict=True) for call in pair]
            ended = await asyncio.gather(*mixed, return_exceptions=True)
            await opened.commit()
            return [each for each in ended if isinstance(each, BaseException)]

    problems = asyncio.run(scenario())
    assert [type(each) for each in problems] == [rhythm.UnknownExecution] * len(ids)
    assert {execution.id for execution in app.list()} == {*ids}
