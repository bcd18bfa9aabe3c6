"""One workflow with every kind of await, on the real store: interrupted at any store call, it ends
as if it had not been."""

from __future__ import annotations

import json
import os

import pytest

from tests.engine.driver import World
from tests.support.length import sampled, sweep
from tests.support.stores import MakeStore, sqlite_in_memory

EVERY = int(os.environ.get("RHYTHM_TEST_EVERY", sampled("37", "3")))  # of the calls
# of those to a server, which take longer
SERVER_EVERY = int(os.environ.get("RHYTHM_TEST_EVERY", sampled("149", "17")))

EVERYTHING = """
workflow main(inputs) {
  let log_of = []
  let one = await task("value", { x: 1 })
  let many = await all([task("value", { x: i + 10, took: 1 }) for i in range(4)])
  let lazy = await task("flaky", { x: 5, fails: 1 })
  await sleep(3)
  let first = await race({ quick: task("value", { x: "q", took: 1 }), slow: task("value", { x: "s", took: 50 }) })
  let any_of = await any([task("fail"), task("value", { x: 6, took: 2 })])
  let child = await workflow("child", { x: 4 })
  let both = await all([branch { await sleep(1)
    let v = await task("value", { x: "b" })
    return v }, task("value", { x: 7, took: 3 })], { concurrency: 1 })
  let mail = await signal("go", { timeout: "1h", default: "none" })
  let late = await signal("never", { timeout: 5, default: "late" })
  let seen = []
  for (r in completed([task("value", { x: i + 20, took: 3 - i }) for i in range(3)])) { seen += [r.result] }
  try {
    await task("fail")
  } catch (e) {
    log_of += [e.code]
  } finally {
    let f = await task("value", { x: "f" })
    log_of += [f]
  }
  let long = await task("value", { x: "long", took: 20 })
  return { one, many, lazy, first: first.key, any_of: any_of.result, child, both, mail, late, seen, log_of, long }
}
workflow child(inputs) {
  let x = await task("value", { x: inputs.x })
  return x * 2
}
"""
RESULT = {
    "one": 1, "many": [10, 11, 12, 13], "lazy": 5, "first": "quick", "any_of": 6, "child": 8,
    "both": ["b", 7], "mail": {"n": 1},
    "late": "late", "seen": [22, 21, 20], "log_of": ["TaskFailed", "f"], "long": "long",
}  # fmt: skip


def run(make_store: MakeStore, fail_at: int = 0, mode: str = "", **settings: object) -> World:
    world = World(EVERYTHING, fail_at, mode, make_store, **settings)
    world.start()
    world.signal(5.0, "go", {"n": 1})
    ended = world.run()
    assert (ended.status, json.loads(ended.result or "null")) == ("completed", RESULT), ended.error
    return world


@pytest.mark.parametrize("owner_run", [True, False], ids=["owner-run", "queued"])
def test_every_kind_of_await_gives_its_result(make_store: MakeStore, owner_run: bool) -> None:
    world = run(make_store, owner_run=owner_run)
    assert set(world.ran.values()) <= {1, 2}
    assert [t.seq for t in world.inner.reading.history("run")] == list(
        range(1, len(world.inner.reading.history("run")) + 1)
    )


@pytest.mark.parametrize("owner_run", [True, False], ids=["owner-run", "queued"])
@pytest.mark.parametrize("mode", ["before", "after", "lost"])
@sweep
def test_interrupted_at_any_store_call_it_ends_as_if_it_had_not_been(
    make_store: MakeStore, mode: str, owner_run: bool
) -> None:
    calls = run(make_store, owner_run=owner_run).store.calls
    every = EVERY if make_store is sqlite_in_memory else SERVER_EVERY
    for n in range(1 + len(mode) % every, calls + 1, every):
        world = run(make_store, n, mode, owner_run=owner_run)
        assert world.store.calls >= n
        if mode == "lost":
            again = {
                body: times
                for body, times in world.ran.items()
                if times > 1 and not body.startswith(("flaky", "fail"))
            }
            assert not again, f"call {n}: bodies ran again though nobody died: {again}"


@pytest.mark.parametrize("owner_run", [True, False], ids=["owner-run", "queued"])
def test_options_of_a_call_win_over_the_task_on_either_path(owner_run: bool) -> None:
    world = World(
        'workflow main { await task("fail", null, { retries: 3, backoff: 2 }) }',
        owner_run=owner_run,
    )
    world.start()
    assert world.run().status == "failed"
    assert world.ran["fail()"] == 4
    assert world.clock.seconds >= 2 + 4 + 8
