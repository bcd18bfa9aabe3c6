"""A commit that is only sent: while it is on its way, its caller goes on, and its answer says the
same as that of any other commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from rhythm.errors import Unavailable
from rhythm.store.interfaces.claims import Claim
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import Committed, TaskEnd, TurnCommit
from rhythm.store.lifecycle import COMPLETED, TASK, WORKFLOW
from rhythm.store.postgres.connection import SESSIONS, Connection
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.postgres.wire import Wire
from tests.support.full_way import short_ways
from tests.support.postgres import Schemas
from tests.support.stores import Stores, rows

pytestmark = short_ways


def begun(store: Store, count: int = 3) -> list[Claim]:
    """Workflows that this worker owns."""
    store.executions.start(
        [NewExecution(f"w{n}", WORKFLOW, "main", "default") for n in range(count)]
    )
    return claimed(store)


def claimed(store: Store) -> list[Claim]:
    return list(store.claims.claim("a", ["default"], 10, 30.0))


def step(claim: Claim, seq: int = 0, **changes: Any) -> TurnCommit:
    return TurnCommit(
        claim.id, seq, claim.fence, claim.wakes, "own", "a", "turn", snapshot=b"{}"
    ).replace(**changes)


@pytest.fixture
def store(stores: Stores) -> Store:
    return stores.empty_store(lambda: 1_800_000_000_000_000)


def send(
    store: Store, *turns: TurnCommit, ends: Sequence[TaskEnd] = ()
) -> Callable[[], list[Committed]]:
    """Sends a commit of which the store can do that; returns what waits for its answer."""
    answer = store.turns.begin_commit(turns, ends)
    assert answer is not None
    return answer


def test_its_answer_is_that_of_a_commit(postgres: PostgresStore) -> None:
    """One of the turns has lost its claim."""
    own, _, lost = begun(postgres)
    light = send(postgres, step(own), step(lost, 7))()
    assert {answer.id: answer.outcome for answer in light} == {own.id: "own", lost.id: "lost"}
    postgres.executions.start([NewExecution("t", TASK, "work", "default")])
    [task] = claimed(postgres)
    assert send(postgres, ends=[TaskEnd("t", task.fence, COMPLETED, "1")])() == []
    assert rows(postgres, "SELECT status FROM executions WHERE id = 't'") == [(COMPLETED,)]


def test_what_takes_more_than_one_answer_is_not_sent(store: Store) -> None:
    """Not even a part of it: it can be committed afterwards."""
    own, parked, _ = begun(store)
    turns = [step(own), step(parked, end="park")]
    assert store.turns.begin_commit(turns, []) is None
    answers, _ = store.turns.commit(turns, [])
    assert {each.id: each.outcome for each in answers} == {own.id: "own", parked.id: "parked"}


# on PostgreSQL


@pytest.fixture
def postgres(schemas: Schemas) -> PostgresStore:
    return schemas.direct_store()


def db_of(store: PostgresStore) -> Connection:
    return store.turns.db


def test_it_is_made_while_its_caller_asks_for_other_things(postgres: PostgresStore) -> None:
    own, *others = begun(postgres)
    answers = [send(postgres, step(claim)) for claim in (own, *others)]
    assert postgres.turns.witness(own.id, 99) is None, "another session answers"
    assert [answer()[0].outcome for answer in answers] == ["own"] * 3
    assert rows(postgres, "SELECT seq FROM workflow_execution_context") == [(1,)] * 3


def test_any_thread_may_take_the_answer_and_the_session_goes_back(postgres: PostgresStore) -> None:
    [own] = begun(postgres, 1)
    for seq in range(SESSIONS + 2):
        answer = send(postgres, step(own, seq))
        with ThreadPoolExecutor(1) as other:
            assert other.submit(answer).result(60)[0].outcome == "own"
    assert len(db_of(postgres)._idle) <= 1


def test_after_a_conflict_it_is_made_again(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    [own] = begun(postgres, 1)
    receive = Wire.receive

    def conflicts(wire: Wire, answer_s: float) -> Any:
        monkeypatch.setattr(Wire, "receive", receive)
        receive(wire, answer_s)
        raise psycopg.errors.DeadlockDetected

    monkeypatch.setattr(Wire, "receive", conflicts)
    # What was rolled back is made again; this one was not, so its repetition is refused.
    assert send(postgres, step(own))()[0].outcome == "lost"


def test_a_connection_that_is_lost_meanwhile_leaves_the_commit_unknown(
    postgres: PostgresStore,
) -> None:
    """Nothing is sent again by itself: whether it was committed is found by its witness."""
    own, other = begun(postgres, 2)
    answer = send(postgres, step(own))
    kept = db_of(postgres)._last
    assert kept is not None
    kept.close()
    with pytest.raises(Unavailable, match="did not answer"):
        answer()
    seq = 1 if postgres.turns.witness(own.id, 1) == own.fence else 0
    [again] = postgres.turns.commit([step(own, seq)], [])[0]
    # Or the server has committed the first sending since it was asked.
    assert again.outcome == "own" or postgres.turns.witness(own.id, 1) == own.fence
    assert send(postgres, step(other))()[0].outcome == "own"


def test_what_cannot_be_sent_gives_the_session_back(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    [own] = begun(postgres, 1)

    def fails(wire: Wire, *args: Any) -> None:
        raise psycopg.OperationalError("gone")

    monkeypatch.setattr(Wire, "send", fails)
    for _ in range(SESSIONS + 2):
        with pytest.raises(Unavailable):
            send(postgres, step(own))
    monkeypatch.undo()
    taken = [db_of(postgres)._room.acquire(blocking=False) for _ in range(SESSIONS)]
    assert all(taken)
    db_of(postgres)._room.release(SESSIONS)
    assert send(postgres, step(own))()[0].outcome == "own"
