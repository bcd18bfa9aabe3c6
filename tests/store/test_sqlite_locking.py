"""What only several connections to one SQLite file can show."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rhythm.errors import StoreError
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.maintenance import Recovered
from rhythm.store.interfaces.workers import Beat, Declaration
from rhythm.store.lifecycle import WORKFLOW
from rhythm.store.sqlite.store import SqliteStore


def test_a_transaction_on_sqlite_is_the_only_writer_before_it_reads(tmp_path: Path) -> None:
    """Else two that have read the same may both write: the second fails, or writes what is no
    longer true."""
    path, seen = str(tmp_path / "rhythm.db"), list[str]()

    def clock() -> int:  # asked inside every transaction, before it writes
        with sqlite3.connect(path, timeout=0) as other:
            try:
                other.execute("CREATE TABLE other (x)")
                seen.append("let in")
            except sqlite3.OperationalError as problem:
                seen.append(str(problem))
        other.close()
        return 1

    store = SqliteStore(path)
    store.schema.migrate()
    store.db.clock = clock
    store.executions.start([NewExecution("w", WORKFLOW, "main", "default")])
    store.executions.cancel(["w"])
    store.close()
    assert set(seen) == {"database is locked"}


def start(store: SqliteStore, id: str, inputs: str = "null") -> None:
    store.executions.start([NewExecution(id, WORKFLOW, "main", "default", inputs)])


def test_a_full_disk_is_a_store_error_and_nothing_of_the_transaction_stays(tmp_path: Path) -> None:
    with closing(SqliteStore(str(tmp_path / "rhythm.db"))) as store:
        store.schema.migrate()
        pages = store.db.connection.execute("PRAGMA page_count").fetchone()[0]
        store.db.connection.execute(f"PRAGMA max_page_count = {pages + 4}")
        with pytest.raises(StoreError, match="did not answer: database or disk is full"):
            start(store, "large", '"' + 100_000 * "x" + '"')
        store.db.connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
        start(store, "small")
        assert list(store.reading.get(["large", "small"])) == ["small"]


def test_a_database_that_may_only_be_read_is_a_store_error(tmp_path: Path) -> None:
    with closing(SqliteStore(str(tmp_path / "rhythm.db"))) as store:
        store.schema.migrate()
        store.db.connection.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreError, match="readonly"):
            start(store, "w")
        store.db.connection.execute("PRAGMA query_only = OFF")
        start(store, "w")


def test_a_read_that_finds_the_file_locked_for_too_long_is_a_store_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "rhythm.db")
    monkeypatch.setattr("rhythm.store.sqlite.session.BUSY_MS", 0)
    with closing(SqliteStore(path)) as new:
        new.schema.migrate()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        with closing(SqliteStore(path, create=False)) as store:
            other.execute("BEGIN EXCLUSIVE")
            for read in (
                lambda: store.reading.get(["w"]),
                lambda: store.claims.claim("a", ["default"], 1, 30.0),
                lambda: store.definitions.after("", 9),
            ):
                with pytest.raises(StoreError, match="locked"):
                    read()
            other.execute("ROLLBACK")
            assert store.reading.get(["w"]) == {}


def test_who_finds_nothing_to_do_needs_no_write_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "rhythm.db")
    monkeypatch.setattr("rhythm.store.sqlite.session.BUSY_MS", 0)
    task = Declaration("work", "default", 1, None, "null", False)
    with (
        closing(SqliteStore(path)) as store,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        store.schema.migrate()
        start(store, "w")
        store.workers.pause_queue("default", True)
        store.workers.declare([task])
        store.workers.beat(Beat("a", "host", 1, ("default",), 4, 0, False, "1"), {}, 30.0)
        other.execute("BEGIN IMMEDIATE")
        assert (store.claims.claim("a", ["default"], 1, 30.0), store.recover(10, 3, dead=True)) == (
            [],
            Recovered(),
        )
        store.workers.declare([task])
        assert (
            store.workers.declared(),
            store.workers.paused_queues(),
            len(store.workers.seen()),
        ) == ([task], {"default"}, 1)
        assert [queue.name for queue in store.workers.queues()] == ["default", "system"]
        with pytest.raises(StoreError, match="locked"):
            store.workers.pause_queue("default", False)


def test_a_statement_that_is_wrong_is_no_store_error(tmp_path: Path) -> None:
    with (
        closing(SqliteStore(str(tmp_path / "rhythm.db"))) as store,
        pytest.raises(sqlite3.OperationalError, match="no such table"),
    ):
        start(store, "w")


def test_a_store_that_is_closed_leaves_everything_in_its_one_file(tmp_path: Path) -> None:
    """So that whoever copies the file has all of it."""
    store = SqliteStore(str(tmp_path / "x.db"))
    store.schema.migrate()
    store.executions.start([NewExecution("w", WORKFLOW, "main", "default", version="1")])
    assert store.reading.find("main", None, None, 9) != []
    store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["x.db"]
