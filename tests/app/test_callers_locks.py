"""What a caller's open transaction keeps waiting: only what needs the same execution or the same type
of event, and only until it ends."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

from rhythm.app import Rhythm
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.sqlite.store import SqliteStore
from tests.app.conftest import MakeApp

WORKS = 'workflow works(inputs) {\n  await task("slow", {})\n  return await signal("go")\n}'
HOLD = 'workflow hold(inputs) {\n  return await signal("go")\n}'
HEARS = 'workflow hears(inputs) {\n  let paid = await event("paid")\n  return paid.data\n}'
QUICK = 'workflow quick(inputs) {\n  await sleep("1ms")\n  return 1\n}'
WAIT = "120s"


class Gate(threading.Event):
    """Lets tasks end, at the latest when its block ends: a worker waits for them."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *problem: object) -> None:
        self.set()


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def app(make_app: MakeApp, gate: Gate) -> Rhythm:
    def slow() -> None:
        gate.wait()

    return make_app(slow, flows=(WORKS, HOLD, HEARS, QUICK))


@pytest.fixture
def connection(app: Rhythm, request: pytest.FixtureRequest) -> Iterator[Any]:
    opened: Any = (
        sqlite3.connect(app.store.db.path)
        if isinstance(app.store, SqliteStore)
        else psycopg.connect(request.getfixturevalue("schemas").url)
    )
    yield opened
    opened.close()


def wait_until_waiting(app: Rhythm, *ids: str) -> None:
    while any(app.get(id).status not in ("suspended", "paused") for id in ids):
        pass


def wait_until_blocked(app: Rhythm) -> None:
    """Until the worker waits for the caller: PostgreSQL says so; SQLite has one writer anyway."""
    if isinstance(app.store, PostgresStore):
        with psycopg.connect(app.store.db.url, autocommit=True, prepare_threshold=None) as admin:
            while not admin.execute(
                "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            ).fetchall():
                pass


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_worker_goes_on_when_the_caller_who_signalled_its_execution_ends(
    app: Rhythm, connection: Any, gate: Gate, end: str
) -> None:
    with app.worker(), gate:
        app.start_workflow("works", id="w")
        wait_until_waiting(app, "w")
        app.signal("w", "go", "ours", connection=connection)
        gate.set()  # its next turn needs what the caller has locked
        wait_until_blocked(app)
        getattr(connection, end)()
        if end == "rollback":
            app.signal("w", "go", "later")
        assert app.result("w", WAIT) == ("ours" if end == "commit" else "later")
        assert app.start_workflow("quick").result(WAIT) == 1


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_worker_goes_on_when_the_caller_who_published_ends(
    app: Rhythm, connection: Any, end: str
) -> None:
    with app.worker():
        app.start_workflow("hears", id="before")
        wait_until_waiting(app, "before")
        app.publish("paid", "ours", connection=connection)
        if isinstance(app.store, PostgresStore):
            app.start_workflow("hears", id="during")  # begins to wait for that type
            wait_until_blocked(app)
        getattr(connection, end)()
        app.publish("paid", "later")
        assert app.result("before", WAIT) == ("ours" if end == "commit" else "later")
        if isinstance(app.store, PostgresStore):  # it started after the first was published
            assert app.result("during", WAIT) == "later"


def test_signal_to_one_that_waits_keeps_no_worker_waiting(app: Rhythm, connection: Any) -> None:
    with app.worker():
        app.start_workflow("hold", id="h")
        wait_until_waiting(app, "h")
        app.signal("h", "go", 1, connection=connection)
        if isinstance(app.store, PostgresStore):  # SQLite has one writer, who is the caller
            assert app.start_workflow("quick").result(WAIT) == 1
        connection.commit()
        assert app.result("h", WAIT) == 1


def test_callers_locks_against_the_order_of_a_worker_stop_neither(
    app: Rhythm, connection: Any, gate: Gate
) -> None:
    """The server ends one of the two: a worker tries again, a caller gets the server's error."""
    with app.worker(), gate:
        for id in ("a", "b"):
            app.start_workflow("works", id=id)
        wait_until_waiting(app, "a", "b")
        app.signal("b", "go", 1, connection=connection)
        gate.set()
        wait_until_blocked(app)
        try:
            app.signal("a", "go", 1, connection=connection)
            connection.commit()
        except errors.DeadlockDetected:
            connection.rollback()
            for id in ("a", "b"):
                app.signal(id, "go", 1)
        assert [app.result(id, WAIT) for id in ("a", "b")] == [1, 1]
