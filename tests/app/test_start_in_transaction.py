"""A start on the caller's own connection comes with the caller's commit, or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

import rhythm
from rhythm.app import Rhythm
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.sqlite.store import SqliteStore
from tests.app.conftest import MakeApp

HOLD = 'workflow hold(inputs) {\n  return await signal("go")\n}'
WAIT = "120s"


@pytest.fixture
def app(make_app: MakeApp) -> Rhythm:
    return make_app(flows=(HOLD,))


@pytest.fixture
def connection(app: Rhythm, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A connection with a table of the user's, rows as dictionaries, and a path of its own."""
    opened: Any
    if isinstance(app.store, SqliteStore):
        opened = sqlite3.connect(app.store.db.path)
        opened.row_factory = lambda cursor, row: {
            column[0]: value for column, value in zip(cursor.description, row, strict=True)
        }
    else:
        assert isinstance(app.store, PostgresStore)
        opened = psycopg.connect(request.getfixturevalue("schemas").url, row_factory=dict_row)
        opened.execute("CREATE TEMPORARY TABLE orders (id text)")
        opened.execute("SET search_path = pg_temp")
    if isinstance(opened, sqlite3.Connection):
        opened.execute("CREATE TABLE orders (id text)")
    opened.commit()
    yield opened
    opened.close()


def orders(connection: Any) -> list[str]:
    return [row["id"] for row in connection.execute("SELECT id FROM orders").fetchall()]


def test_rolled_back_start_never_happened(app: Rhythm, connection: Any) -> None:
    connection.execute("INSERT INTO orders VALUES ('a')")
    handle = app.start_workflow("hold", id="a", connection=connection)
    connection.rollback()
    assert orders(connection) == []
    with pytest.raises(rhythm.UnknownExecution):
        handle.get()


def test_committed_start_runs_and_is_not_seen_before(app: Rhythm, connection: Any) -> None:
    handle = app.start_workflow("hold", id="a", connection=connection)
    # the connection's own path, rows and transaction are as they were
    connection.execute("INSERT INTO orders VALUES ('a')")
    if isinstance(connection, psycopg.Connection):
        assert connection.execute("SHOW search_path").fetchall() == [{"search_path": "pg_temp"}]
    with pytest.raises(rhythm.UnknownExecution):
        handle.get()
    connection.commit()
    assert orders(connection) == ["a"]
    handle.signal("go", 1)
    with app.worker():
        assert handle.result(WAIT) == 1


def test_conflict_undoes_the_start_alone_and_leaves_the_callers_own_work(
    app: Rhythm, connection: Any
) -> None:
    app.start_workflow("hold", id="taken")
    connection.execute("INSERT INTO orders VALUES ('a')")
    with pytest.raises(rhythm.Conflict):
        app.start_many(
            "hold",
            [rhythm.Start(id="new"), rhythm.Start(id="taken")],
            on_conflict="fail",
            connection=connection,
        )
    connection.commit()
    assert orders(connection) == ["a"]
    assert [execution.id for execution in app.list()] == ["taken"]


def wait_until_another_is_blocked(app: Rhythm) -> None:
    if isinstance(app.store, SqliteStore):
        while app.store.db.lock.acquire(timeout=0.1):  # not only for a moment
            app.store.db.lock.release()
    else:
        assert isinstance(app.store, PostgresStore)
        with psycopg.connect(app.store.db.url, autocommit=True, prepare_threshold=None) as admin:
            while not admin.execute(
                "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            ).fetchall():
                pass


def test_start_that_waits_for_the_key_of_another_keeps_nobody_else_waiting(
    app: Rhythm, connection: Any
) -> None:
    app.start_workflow("hold", id="other")
    first = app.start_workflow("hold", idempotency_key="k", connection=connection)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(app.start_workflow, "hold", idempotency_key="k")
        wait_until_another_is_blocked(app)
        assert app.get("other").status == "pending"
        if isinstance(app.store, PostgresStore):  # SQLite has one writer, who is the caller
            assert app.signal("other", "go")
        assert not second.done()
        connection.commit()
        assert second.result(30).id == first.id


def test_replace_in_a_transaction_that_is_rolled_back_cancels_nobody(
    app: Rhythm, connection: Any
) -> None:
    old = app.start_workflow("hold", idempotency_key="k")
    app.start_workflow("hold", idempotency_key="k", on_conflict="replace", connection=connection)
    connection.rollback()
    assert old.get().cancel_requested_at is None
    assert app.start_workflow("hold", idempotency_key="k").id == old.id


def test_workflow_that_was_defined_late_is_registered_though_the_caller_is_the_writer(
    app: Rhythm, connection: Any
) -> None:
    connection.execute("INSERT INTO orders VALUES ('a')")  # nobody else can write to a file now

    @rhythm.workflow
    async def late(n: int) -> int:
        return n

    for end in (connection.rollback, connection.commit):
        app.start_workflow(late, {"n": 1}, id="late", connection=connection)
        end()
    assert app.get("late").name == "late"
    app.start_workflow(late, {"n": 1})


def test_task_can_be_queued_in_a_transaction(app: Rhythm, connection: Any) -> None:
    handle = app.queue_task("later", {"x": 1}, connection=connection)
    connection.commit()
    assert handle.get().name == "later"


def test_connection_that_commits_by_itself_is_refused(app: Rhythm, connection: Any) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.isolation_level = None
    else:
        connection.autocommit = True
    with pytest.raises(
        ValueError, match="commits every statement by itself: begin a transaction first"
    ):
        app.start_workflow("hold", connection=connection)


def test_connection_to_another_database_is_refused(app: Rhythm) -> None:
    other = sqlite3.connect(":memory:")
    with pytest.raises(
        (TypeError, ValueError),
        match=r"a database in memory, the executions are in|must be a connection to PostgreSQL",
    ):
        app.start_workflow("hold", connection=other)
    other.close()
    with pytest.raises(TypeError, match=r"connection of Django, not str$"):
        app.start_workflow("hold", connection="postgresql://x")
    with pytest.raises(TypeError, match=r"connection of Django, not tests\.Unknown$"):
        app.signal("a", "go", connection=Unknown())


class Unknown:
    connection = None
