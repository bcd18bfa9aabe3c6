"""Snapshots of any size, on every database: they come back as they were, and a large one leaves
nothing behind."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from rhythm.store.blobs import INLINE_BYTES
from rhythm.store.interfaces.claims import Claim
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import TurnCommit
from rhythm.store.lifecycle import WORKFLOW
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.sqlite.store import SqliteStore
from rhythm.vm.snapshot import COMPRESSED
from tests.engine.driver import World
from tests.support.stores import MakeStore, Stores

SIZES = {"10 B": 10, "10 KB": 10_000, "3 MB": 3_000_000}
LARGE = INLINE_BYTES + 1


@pytest.fixture
def store(stores: Stores) -> Store:
    return stores.empty_store(lambda: 1_800_000_000_000_000)


def noise(size: int) -> bytes:
    return b"{" + random.Random(size).randbytes(size - 1)


def begun(store: Store, snapshot: bytes | None = None) -> Claim:
    store.executions.start(
        [NewExecution("w", WORKFLOW, "main", "default", version="1", snapshot=snapshot)]
    )
    return store.claims.claim("a", ["default"], 1, 30.0)[0]


def turn(
    claim: Claim, seq: int, snapshot: bytes | None, end: str = "own", **changes: Any
) -> TurnCommit:
    return TurnCommit(
        claim.id, seq, claim.fence, claim.wakes, end, "a", "turn", snapshot=snapshot
    ).replace(**changes)


def outcome(store: Store, turn: TurnCommit) -> str:
    return store.turns.commit([turn], [])[0][0].outcome


def blobs(store: Store) -> list[tuple[str, int]]:
    text = "SELECT execution_id, length(data) FROM blobs ORDER BY 1"
    if isinstance(store, PostgresStore):
        return store.db.autocommit(lambda: store.db.query(text.encode()).fetchall())
    assert isinstance(store, SqliteStore)
    return store.db.connection.execute(text).fetchall()


@pytest.mark.parametrize("end", ["own", "park"])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_snapshot_of_a_turn_comes_back(store: Store, size: int, end: str) -> None:
    claim = begun(store)
    assert outcome(store, turn(claim, 0, noise(size), end)) == {"own": "own", "park": "parked"}[end]
    assert store.turns.load(["w"])[0].snapshot == noise(size)
    assert [id for id, _ in blobs(store)] == (["w"] if size > INLINE_BYTES else [])


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_snapshot_that_an_execution_begins_with_comes_back(store: Store, size: int) -> None:
    begun(store, noise(size))
    assert store.turns.load(["w"])[0].snapshot == noise(size)


@pytest.mark.parametrize("end", ["own", "park"])
def test_next_snapshot_takes_the_place_of_a_large_one(store: Store, end: str) -> None:
    claim = begun(store, noise(LARGE))
    outcome(store, turn(claim, 0, noise(LARGE + 5)))
    assert blobs(store) == [("w", LARGE + 5)]
    outcome(store, turn(claim, 1, noise(10), end))
    assert (blobs(store), store.turns.load(["w"])[0].snapshot) == ([], noise(10))


@pytest.mark.parametrize("end", ["own", "park", "finish"])
def test_large_snapshot_that_does_not_change_stays(store: Store, end: str) -> None:
    claim = begun(store, noise(LARGE))
    outcome(store, turn(claim, 0, None, end, status=5 if end == "finish" else 1))
    assert (blobs(store), store.turns.load(["w"])[0].snapshot) == ([("w", LARGE)], noise(LARGE))


@pytest.mark.parametrize("size", [10, LARGE])
@pytest.mark.parametrize("end", ["own", "park"])
def test_turn_that_has_lost_leaves_the_snapshot_alone(store: Store, size: int, end: str) -> None:
    claim = begun(store, noise(LARGE))
    assert outcome(store, turn(claim.replace(fence=claim.fence), 7, noise(size), end)) == "lost"
    assert (blobs(store), store.turns.load(["w"])[0].snapshot) == ([("w", LARGE)], noise(LARGE))


def test_pruning_takes_the_blobs_along(store: Store) -> None:
    claim = begun(store, noise(LARGE))
    branch = NewExecution(
        "w.1",
        WORKFLOW,
        "main",
        "default",
        version="1",
        parent_id="w",
        child_no=1,
        root_id="w",
        snapshot=noise(LARGE),
    )
    store.turns.commit([turn(claim, 0, None, "finish", status=5, value="1", starts=(branch,))], [])
    assert [id for id, _ in blobs(store)] == ["w", "w.1"]
    child = next(
        claim for claim in store.claims.claim("a", ["default"], 10, 30.0) if claim.id == "w.1"
    )
    store.turns.commit([turn(child, 0, None, "finish", status=5, value="1")], [])
    assert store.maintenance.prune(-1.0, 10) == 1
    assert blobs(store) == []


def test_many_snapshots_are_loaded_with_one_question(store: Store) -> None:
    sizes = {f"w{i}": size for i, size in enumerate((10, LARGE, 20, LARGE + 1))}
    store.executions.start(
        [
            NewExecution(id, WORKFLOW, "main", "default", version="1", snapshot=noise(size))
            for id, size in sizes.items()
        ]
    )
    assert {row.id: row.snapshot for row in store.turns.load(list(sizes))} == {
        id: noise(size) for id, size in sizes.items()
    }


GROWS = """
workflow main(ctx, inputs) {
  let parts = []
  while (len(parts) < inputs.parts) {
    let part = await task("value", { x: "é" + inputs.text })
    parts += [part]
  }
  let told = await task("value", { x: len(parts) })
  return [told, parts[-1] == "é" + inputs.text]
}
"""


@pytest.mark.parametrize("owner_run", [True, False])
def test_workflow_goes_on_from_a_large_snapshot(make_store: MakeStore, owner_run: bool) -> None:
    world = World(GROWS, make_store=make_store, owner_run=owner_run)
    text = random.Random(1).randbytes(400_000).hex()  # compressing it does not help much
    world.start(inputs={"parts": 4, "text": text})
    assert json.loads(world.run().result or "null") == [4, True]


def test_snapshots_of_a_worker_are_compressed(make_store: MakeStore) -> None:
    world = World(GROWS, make_store=make_store)
    world.start(inputs={"parts": 1, "text": "tea " * 1000})
    assert world.run().status == "completed"
    snapshot = world.inner.turns.load(["run"])[0].snapshot or b""
    assert (snapshot[:1], len(snapshot) < 500) == (COMPRESSED, True)


def test_state_over_the_limit_fails_the_workflow_clearly(make_store: MakeStore) -> None:
    world = World(GROWS, make_store=make_store)
    world.start(inputs={"parts": 6, "text": "x" * 900_000})
    ended = world.run()
    error = json.loads(ended.error or "null")
    assert (ended.status, error["code"], error["message"]) == (
        "failed",
        "LimitExceeded",
        "the state of the execution is over 4,096 KiB: `parts` is over 4,096 KiB",
    )
