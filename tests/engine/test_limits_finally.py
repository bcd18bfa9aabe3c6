"""A saga that meets a limit undoes what it has done, on every database, whatever goes wrong
meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from rhythm.engine import recheck
from rhythm.limits import DEFAULT_LIMITS
from rhythm.vm.interpreter import advance
from rhythm.worker import turns
from tests.engine.driver import World
from tests.support.length import sampled, sweep
from tests.support.stores import MakeStore, rows, sqlite_in_memory

MakeWorld = Callable[..., World]
BOTH = pytest.mark.parametrize("owner_run", [True, False], ids=["owner-run", "queued"])
# The state is over its limit where the fourth charge would begin.
LARGE_STATE = """
workflow main {
  let undo = []
  let pages = []
  try {
    for (i in range(4)) {
      let r = await task("value", { x: `charge ${i}` })
      undo += [r]
      if (i == 2) { pages = range(2000) }
    }
    return pages
  } finally {
    for (u in undo) { await task("value", { x: `refund of ${u}` }) }
  }
}
"""
# The last statement of the `try` would start too many children at once.
MANY_CHILDREN = """
workflow main {
  let undo = []
  try {
    for (i in range(3)) {
      let r = await task("value", { x: `charge ${i}` })
      undo += [r]
    }
    await all([workflow("kid") for i in range(9)])
  } finally {
    await all([task("value", { x: `refund of ${u}` }) for u in undo])
  }
}
workflow kid { await sleep(1) }
"""
SAGAS = {"state": LARGE_STATE, "children": MANY_CHILDREN}
SMALL = DEFAULT_LIMITS.replace(snapshot_bytes=4096, children=5, family=100)
EVERY, SERVER_EVERY = sampled(9, 1), sampled(29, 5)


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (turns, recheck):
        monkeypatch.setattr(module, "advance", partial(advance, limits=SMALL))


def run(make_store: MakeStore, text: str, fail_at: int = 0, mode: str = "", **how: Any) -> World:
    world = World(text, fail_at, mode, make_store, **how)
    world.inner.limits = SMALL
    world.start()
    return world


def error_of(world: World) -> dict[str, Any]:
    ended = world.run()
    assert ended.status == "failed", ended.result
    error: dict[str, Any] = json.loads(ended.error or "")
    return error


def check_undone(world: World) -> None:
    """All three charges were refunded, and nothing else was begun."""
    assert error_of(world)["code"] == "LimitExceeded"
    names = [f"charge {i}" for i in range(3)]
    assert set(world.ran) == {
        f"value({x!r})" for name in names for x in (name, f"refund of {name}")
    }
    done = rows(world.inner, "SELECT result FROM executions WHERE type = 1 AND status = 5")
    assert sorted(result for (result,) in done) == sorted(
        json.dumps(x) for name in names for x in (name, f"refund of {name}")
    )


@BOTH
@pytest.mark.parametrize("text", SAGAS.values(), ids=SAGAS)
def test_a_saga_over_a_limit_refunds_all_that_it_has_charged(
    make_store: MakeStore, text: str, owner_run: bool
) -> None:
    world = run(make_store, text, owner_run=owner_run)
    check_undone(world)
    assert set(world.ran.values()) == {1}


@BOTH
@pytest.mark.parametrize("mode", ["before", "after", "lost"])
@pytest.mark.parametrize("text", SAGAS.values(), ids=SAGAS)
@sweep
def test_interrupted_at_any_store_call_it_refunds_as_if_it_had_not_been(
    make_store: MakeStore, text: str, mode: str, owner_run: bool
) -> None:
    straight = run(make_store, text, owner_run=owner_run)
    straight.run()
    every = EVERY if make_store is sqlite_in_memory else SERVER_EVERY
    for n in range(1 + len(mode) % every, straight.store.calls + 1, every):
        world = run(make_store, text, n, mode, owner_run=owner_run)
        check_undone(world)
        if mode == "lost":
            assert set(world.ran.values()) == {1}, f"call {n}: bodies ran again, nobody died"


@BOTH
def test_a_finally_that_starts_too_much_itself_ends_at_once(
    make_store: MakeStore, owner_run: bool
) -> None:
    text = """
    workflow main {
      let slow = task("value", { x: "slow", took: 500 })
      await sleep(1)
      try { await all([workflow("kid") for i in range(9)]) } finally {
        await task("value", { x: "refund" })
        await all([workflow("kid") for i in range(30)])
      }
    }
    workflow kid { await sleep(1000) }
    """
    world = run(make_store, text, owner_run=owner_run)
    world.inner.limits = SMALL.replace(fan_out=20)
    assert "more than 25 children of this execution" in error_of(world)["message"]
    assert world.ran["value('refund')"] == 1
    assert rows(world.inner, "SELECT count(*) FROM executions WHERE finished_at IS NULL") == [(0,)]
    assert world.clock.seconds < 500, "what it began is cancelled"


def test_a_finally_may_start_something_where_nothing_else_may(make_store: MakeStore) -> None:
    text = """
    workflow main {
      let slow = [task("value", { x: `slow ${i}`, took: 900 }) for i in range(5)]
      await sleep(1)
      try { await workflow("kid") } finally { await task("value", { x: "refund" }) }
    }
    workflow kid { await sleep(1) }
    """
    world = run(make_store, text, owner_run=False)
    assert "more than 5 children of this execution" in error_of(world)["message"]
    assert set(world.ran) == {"value('refund')"}


def test_a_family_that_forks_in_its_finally_blocks_ends_too(make_store: MakeStore) -> None:
    fork = 'await all([workflow("main"), workflow("main")])'
    world = run(make_store, f"workflow main {{ try {{ {fork} }} finally {{ {fork} }} }}")
    world.inner.limits = SMALL.replace(family=30, fan_out=20)
    world.run()
    assert rows(world.inner, "SELECT count(*) FROM executions")[0][0] < 200


@BOTH
def test_a_cancel_of_a_saga_that_is_over_a_limit_ends_cancelled(
    make_store: MakeStore, owner_run: bool
) -> None:
    text = """
    workflow main {
      let pages = range(2000)
      try { await sleep(1) } finally { await task("value", { x: "slow", took: 500 }) }
      return pages
    }
    """
    world = run(make_store, text, owner_run=owner_run)
    while not world.handlers.agenda:
        world.round()
    world.inner.executions.cancel(["run"])
    assert (world.run().status, world.clock.seconds < 500) == ("cancelled", True)


def test_what_is_over_a_limit_and_cleaned_up_is_retried_only_from_the_start(
    make_store: MakeStore,
) -> None:
    from rhythm.app.explain import retry_refusal

    world = run(make_store, LARGE_STATE)
    world.run()
    assert "was over a limit and has cleaned up behind itself" in str(
        retry_refusal(world.inner, "run")
    )
    many = 'workflow main { await sleep(1)\nawait all([workflow("kid") for i in range(9)]) }'
    world = run(make_store, f"{many}\nworkflow kid {{ await sleep(1) }}")
    world.run()
    assert retry_refusal(world.inner, "run") is None, "it may be less by then"


def test_why_says_that_it_is_over_a_limit_and_cleans_up(make_store: MakeStore) -> None:
    from rhythm.app.explain import explain

    text = "workflow main { let pages = range(2000)\ntry { await sleep(1) } finally { await sleep(9) }\nreturn pages }"
    world = run(make_store, text)
    for _ in range(3):
        world.round()
    row = world.inner.reading.get(["run"])["run"]
    first, second = explain(world.inner, row, world.program("main", None)).reasons
    assert first.what == (
        "it is over a limit, and runs its `finally` blocks before it fails: the state of the "
        "execution is over 4 KiB: `pages` is over 4 KiB"
    )
    assert second.what == "it sleeps"
