"""PostgreSQL behind a pooler that lends a session for each transaction. `make pgbouncer` runs
everything through the real one."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from rhythm.errors import StoreError
from rhythm.store.interfaces.claims import Claim
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.turns import TaskEnd
from rhythm.store.lifecycle import COMPLETED, TASK, WORKFLOW
from rhythm.store.open import open_store
from rhythm.store.postgres.connecting import Access
from rhythm.store.postgres.store import PostgresStore
from tests.support.length import long
from tests.support.pooler import Pooler
from tests.support.postgres import GIVEN, THROUGH, Schemas

POOLED = Access(pooled=True)


@pytest.fixture
def pooler(schemas: Schemas) -> Iterator[Pooler]:
    with tempfile.TemporaryDirectory(prefix="rhythm-pool-", dir="/tmp") as folder:
        made = Pooler(Path(folder), schemas.url)
        yield made
        made.close()


@long
def test_everything_works_on_sessions_that_change_with_every_transaction(database_url: str) -> None:
    suites = [
        "tests/store/test_conformance.py",
        "tests/store/test_events.py",
        "tests/store/test_starts.py",
        "tests/worker/test_current.py",
    ]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "-k",
        "postgres",
        *suites,
    ]
    environment = {**os.environ, GIVEN: database_url, THROUGH: "pooler"}
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


def test_a_pooler_that_nobody_told_us_of_is_refused_before_anything_is_set_in_its_sessions(
    pooler: Pooler, schemas: Schemas
) -> None:
    store = PostgresStore(pooler.url, schemas.name)
    with pytest.raises(StoreError, match=r"add pooled=true to the URL"):
        store.schema.version()
    with psycopg.connect(pooler.url, autocommit=True, prepare_threshold=None) as other:
        assert {other.execute("SHOW search_path").fetchone() for _ in range(6)} == {
            ('"$user", public',)
        }
    store.close()


def test_what_a_session_must_know_goes_with_the_first_statement(
    pooler: Pooler, schemas: Schemas
) -> None:
    """A call that is no transaction waits once, as without a pooler; one that is does not wait for
    its beginning."""
    schemas.empty_store()
    store = PostgresStore(pooler.url, schemas.name, access=Access(pooled=True, notify=False))
    waited = {}
    for name, work in (
        ("connect", store.schema.version),
        ("get", lambda: store.reading.get(["w"])),
        ("start", lambda: store.executions.start([NewExecution("w", WORKFLOW, "main", "default")])),
        ("claim", lambda: store.claims.claim("a", ["default"], 1, 30.0)),
    ):
        before = pooler.answers
        work()
        waited[name] = pooler.answers - before
    store.close()
    del waited["connect"]
    assert waited == {"get": 1, "start": 1, "claim": 1}


def test_nothing_of_ours_stays_in_a_session(pooler: Pooler, schemas: Schemas) -> None:
    schemas.empty_store()
    store = open_store(f"{pooler.url}&schema={schemas.name}&pooled=true")
    for n in range(8):
        store.executions.start([NewExecution(f"w{n}", WORKFLOW, "main", "default")])
        store.operating.check(0.0)
    with psycopg.connect(pooler.url, autocommit=True, prepare_threshold=None) as other:
        for name, value in (
            ("search_path", '"$user", public'),
            ("enable_seqscan", "on"),
            ("lock_timeout", "20s"),
        ):
            assert {other.execute(f"SHOW {name}".encode()).fetchone() for _ in range(6)} == {
                (value,)
            }
        assert {
            other.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
            for _ in range(6)
        } == {(0,)}
    store.close()


def test_a_call_that_fails_leaves_its_transaction_behind(pooler: Pooler, schemas: Schemas) -> None:
    schemas.empty_store()
    store = PostgresStore(pooler.url, schemas.name, access=POOLED)
    with pytest.raises(psycopg.errors.UndefinedTable):
        store.db.autocommit(lambda: store.db.query(b"SELECT 1 FROM nothing"))
    assert store.reading.get([]) == {}

    def fails() -> None:
        store.db.query(b"DELETE FROM ready")
        raise KeyError

    store.executions.start([NewExecution("w", WORKFLOW, "main", "default")])
    with pytest.raises(KeyError):
        store.db.transaction(fails)
    assert [claim.id for claim in store.claims.claim("a", ["default"], 1, 30.0)] == ["w"]
    store.close()


def ended(claim: Claim, connection: psycopg.Connection) -> TaskEnd:
    connection.execute("SELECT 1")
    return TaskEnd(claim.id, claim.fence, COMPLETED, "1")


def test_a_handler_that_writes_gets_a_connection_of_the_pooler_too(
    pooler: Pooler, schemas: Schemas
) -> None:
    schemas.empty_store()
    store = PostgresStore(pooler.url, schemas.name, access=POOLED)
    for n in range(3):
        store.executions.start([NewExecution(f"t{n}", TASK, "work", "default")])
        claim = store.claims.claim("a", ["default"], 1, 30.0)[0]

        assert store.turns.complete_within(partial(ended, claim)) == "kept"
    assert {execution.status for execution in store.reading.get(["t0", "t1", "t2"]).values()} == {
        "completed"
    }
    store.close()


def test_hints_travel_behind_a_commit_through_a_pooler_too(
    pooler: Pooler, schemas: Schemas
) -> None:
    direct, heard = schemas.direct_store(), queue.SimpleQueue[frozenset[str]]()
    listening = direct.listen(heard.put)
    assert heard.get(timeout=120.0) == frozenset()
    store = PostgresStore(pooler.url, schemas.name, access=POOLED)
    for n in range(8):
        store.executions.start([NewExecution(f"w{n}", WORKFLOW, "main", "default")])
        assert heard.get(timeout=120.0) == {"default"}
    assert store._notifier._thread is None
    store.close()
    assert heard.empty()
    listening.close()


def test_nothing_can_be_heard_through_a_pooler_and_that_is_said_at_once(
    pooler: Pooler, schemas: Schemas
) -> None:
    store = PostgresStore(pooler.url, schemas.name, access=POOLED)
    listening = store.listen(lambda queues: None)
    assert "set listen_url" in listening.problem
    listening.close()
    store.close()
