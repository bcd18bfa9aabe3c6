"""Claims of PostgreSQL under a backlog begin where the last one ended, and hide nothing by that."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest

from rhythm.errors import Unavailable
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.lifecycle import TASK
from rhythm.store.postgres.claim_cursor import HIGHEST, LOWEST, MAX_REST_S
from rhythm.store.postgres.store import PostgresStore
from tests.support.postgres import Schemas

Clock = list[int]  # its time, in microseconds


@pytest.fixture
def clock() -> Clock:
    return [1_800_000_000_000_000]


@pytest.fixture
def store(schemas: Schemas, clock: Clock) -> PostgresStore:
    """Time stands still, so everything is checked only when the test says so."""
    return schemas.empty_store(lambda: clock[0])


def queue(store: PostgresStore, *ids: str, priority: int = 0) -> None:
    tasks = [NewExecution(id, TASK, "note", "mail", priority=priority) for id in ids]
    store.executions.start(tasks)


def claim(store: PostgresStore, limit: int = 2) -> dict[str, int]:
    claims = store.claims.claim("worker", ["mail"], limit, 30.0)
    return {claim.id: claim.fence for claim in claims}


@pytest.fixture
def backlog(store: PostgresStore) -> dict[str, int]:
    """Eight tasks have waited, and claims have come as far as the fourth; the first two claims."""
    queue(store, "a", "b", "c", "d", "e", "f", "g", "h")
    first = claim(store)
    assert list(first) == ["a", "b"]
    assert list(claim(store)) == ["c", "d"]
    return first


def test_under_a_backlog_what_is_free_again_is_claimed_when_everything_is_checked(
    store: PostgresStore, clock: Clock, backlog: dict[str, int]
) -> None:
    store.claims.release(backlog)
    assert list(claim(store)) == ["e", "f"]
    clock[0] += int(MAX_REST_S * 1e6)
    assert list(claim(store)) == ["a", "b"]
    assert list(claim(store)) == ["g", "h"]


def test_at_the_end_of_a_backlog_what_is_free_again_is_claimed(
    store: PostgresStore, backlog: dict[str, int]
) -> None:
    store.claims.release(backlog)
    assert list(claim(store, 3)) == ["e", "f", "g"]
    assert list(claim(store, 3)) == ["h", "a", "b"]
    assert claim(store) == {}


def test_under_a_backlog_higher_priorities_come_first(
    store: PostgresStore, backlog: dict[str, int]
) -> None:
    queue(store, "low", priority=-1)
    queue(store, "high", priority=7)
    assert list(claim(store)) == ["high", "e"]
    queue(store, "higher", priority=HIGHEST)
    assert list(claim(store, 4)) == ["higher", "f", "g", "h"]
    queue(store, "lowest", priority=LOWEST)
    assert list(claim(store)) == ["low", "lowest"]


def test_under_a_backlog_a_paused_queue_is_left_alone(
    store: PostgresStore, backlog: dict[str, int]
) -> None:
    store.workers.pause_queue("mail", paused=True)
    assert claim(store) == {}
    store.workers.pause_queue("mail", paused=False)
    assert list(claim(store)) == ["e", "f"]


def test_a_claim_without_slots_says_nothing_of_the_other_queues(
    store: PostgresStore, clock: Clock, backlog: dict[str, int]
) -> None:
    """A worker without a free slot claims workflows that go on, and nothing else."""
    store.claims.release(backlog)
    assert not store.claims.claim("worker", [], 2, 30.0)
    assert list(claim(store)) == ["e", "f"]
    clock[0] += int(MAX_REST_S * 1e6)
    assert not store.claims.claim("worker", [], 2, 30.0)
    assert list(claim(store)) == ["a", "b"]


def test_what_was_claimed_is_returned_if_the_check_of_everything_fails(
    store: PostgresStore, backlog: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.claims.release(backlog)
    in_transaction, answers = store.db.transaction, iter([True, False, False])

    def fails_later(work: Callable[[], Any]) -> Any:
        if next(answers):
            return in_transaction(work)
        raise Unavailable("the server is gone")

    with monkeypatch.context() as patched:
        patched.setattr(store.db, "transaction", fails_later)
        assert list(claim(store, 5)) == ["e", "f", "g", "h"]
        with pytest.raises(Unavailable):
            claim(store, 5)
    assert list(claim(store, 5)) == ["a", "b"]


def test_a_row_whose_transaction_commits_late_is_claimed_when_everything_is_checked(
    schemas: Schemas, store: PostgresStore, clock: Clock, backlog: dict[str, int]
) -> None:
    with psycopg.connect(schemas.url, options=f"-c search_path={schemas.name}") as slow:
        slow.execute(
            "INSERT INTO ready (id, kind, queue, priority, order_key, state) "
            "VALUES ('late', 1, 'mail', 0, 1, 0)"
        )
        assert list(claim(store)) == ["e", "f"]
        slow.commit()
    assert list(claim(store, 1)) == ["g"]
    clock[0] += int(MAX_REST_S * 1e6)
    assert store.claims.claim("worker", ["mail"], 1, 30.0)[0].id == "late"


def test_claims_do_not_step_over_what_earlier_claims_left(
    schemas: Schemas, store: PostgresStore
) -> None:
    """While a transaction is open, nothing that claims leave in the index can be cleaned up."""
    count, limit = 400, 20
    queue(store, *(f"t{n:03}" for n in range(count)))
    with closing(psycopg.connect(schemas.url)) as other:
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT 1")
        before = entries_read(schemas)
        claimed = [claim(store, limit) for _ in range(count // limit)]
    assert all(len(ids) == limit for ids in claimed)
    store.close()  # its session writes what it has counted
    while (read := entries_read(schemas) - before) < count:
        pass
    assert read < 3 * count  # from the beginning each time it would be ten times as many


def entries_read(schemas: Schemas) -> int:
    """How many entries of the index of free rows were read so far."""
    schemas.admin.execute("SELECT pg_stat_clear_snapshot()")
    text = "SELECT idx_tup_read FROM pg_stat_all_indexes WHERE indexrelid = %s::regclass"
    [[read]] = schemas.admin.execute(text, [f"{schemas.name}.ready_free"]).fetchall()
    return int(read)
