"""Families that want to grow without end, on every database: they end in a clear error, and whoever
terminates one wins."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import pytest

from rhythm.limits import DEFAULT_LIMITS
from rhythm.store.interfaces import executions
from tests.engine.driver import World
from tests.support.length import sampled, sweep
from tests.support.stores import MakeStore, ready_rows, rows

MakeWorld = Callable[..., World]
FORK = (
    'workflow main { return await all([workflow("main"), workflow("main"), workflow("main"), '
    'workflow("main")]) }'
)
CHILDREN = sampled(3_000, 15_000)  # of a flood: some turns of it, and many
FLOOD = 'workflow main { while (true) { let _ = task("value", { took: 999 }) } }'
LOOP = """
workflow main {
  let n = 0
  for (i in range(40)) {
    let x = await all([workflow("child"), task("value", { x: 1, took: 3 })])
    n += x[0] + x[1]
  }
  return n
}
workflow child { await sleep(1); return 1 }
"""


@pytest.fixture
def make_world(make_store: MakeStore) -> MakeWorld:
    return partial(World, make_store=make_store)


def count(world: World, condition: str = "1 = 1") -> int:
    return int(rows(world.inner, f"SELECT count(*) FROM executions WHERE {condition}")[0][0])


def test_a_workflow_that_forks_for_ever_ends_with_a_limit_that_says_what_to_do(
    make_world: MakeWorld,
) -> None:
    world = make_world(FORK)
    world.inner.limits = DEFAULT_LIMITS.replace(family=60)
    world.start()
    ended = world.run()
    error = json.loads(ended.error or "")
    while error["code"] == "ChildFailed":
        error = error["data"]["error"]
    assert (ended.status, error["code"]) == ("failed", "LimitExceeded")
    assert "more than 60 children are under way" in error["message"]
    assert count(world) < 200


@sweep
def test_a_workflow_that_queues_tasks_for_ever_ends_with_a_limit(make_world: MakeWorld) -> None:
    world = make_world(FLOOD)
    world.inner.limits = DEFAULT_LIMITS.replace(children=CHILDREN)
    world.start()
    ended = world.run()
    assert (ended.status, json.loads(ended.error or "")["code"]) == ("failed", "LimitExceeded")
    assert count(world) <= CHILDREN + 1


def test_a_loop_that_starts_children_and_waits_for_them_never_meets_a_limit(
    make_world: MakeWorld,
) -> None:
    world = make_world(LOOP)
    world.inner.limits = DEFAULT_LIMITS.replace(family=5, children=4)
    world.start()
    assert world.run().result == "80"


def test_what_its_owner_ran_is_kept_when_the_turn_after_it_is_refused(
    make_world: MakeWorld,
) -> None:
    text = (
        'workflow main { let x = await task("value", { x: 7 })\nlet more = [task("value", { '
        "x: n }) for n in range(9)]\nreturn more }"
    )
    world = make_world(text)
    world.inner.limits = DEFAULT_LIMITS.replace(children=5)
    world.start()
    ended = world.run()
    assert (ended.status, "more than 5 children of this execution" in (ended.error or "")) == (
        "failed",
        True,
    )
    assert (world.inner.reading.get(["run.1"])["run.1"].result, count(world)) == ("7", 2)


def test_terminate_wins_against_a_family_that_grows(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers go on between any two transactions of it."""
    monkeypatch.setattr(executions, "PASS_SIZE", 5)
    world = make_world(FORK)
    world.inner.limits = DEFAULT_LIMITS.replace(family=10**9)
    world.start()
    while count(world) < 40:
        world.worker.run_round()
    one_pass, sizes = world.inner.executions.end_terminated, list[int]()

    def among_others(limit: int) -> list[str]:
        for _ in range(3):
            world.worker.run_round()
        sizes.append(count(world))
        return one_pass(limit)

    monkeypatch.setattr(world.inner.executions, "end_terminated", among_others)
    monkeypatch.setattr(executions, "MAX_PASSES", 1000)
    assert world.inner.executions.terminate(["run"]) == {"run": True}
    assert (
        count(world, "finished_at IS NULL"),
        rows(world.inner, "SELECT 1 FROM terminations"),
    ) == (0, [])
    assert sizes[-1] == sizes[0], "from the mark on, nothing was started"
    while world.worker.run_round():
        pass
    assert (count(world), ready_rows(world.inner)) == (sizes[-1], [])
    world.doctor()


def test_a_family_whose_terminate_was_killed_is_ended_by_the_services(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(FORK)
    world.inner.limits = DEFAULT_LIMITS.replace(family=10**9)
    world.start()
    while count(world) < 200:
        world.worker.run_round()
    monkeypatch.setattr(executions, "MAX_PASSES", 0)
    world.inner.executions.terminate(["run"])
    assert count(world, "finished_at IS NULL") >= 199
    assert world.run().status == "cancelled"
    world.inner.recover(100, 3)
    assert (
        count(world, "finished_at IS NULL"),
        rows(world.inner, "SELECT 1 FROM terminations"),
    ) == (0, [])
