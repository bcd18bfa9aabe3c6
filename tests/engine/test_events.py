"""Waiting for events in the engine, interrupted at any store call: nobody misses one, and nobody
sees one twice."""

from __future__ import annotations

import json

import pytest

from rhythm.store.interfaces.messages import NewEvent
from tests.engine.driver import World
from tests.support.length import sampled, sweep
from tests.support.stores import MakeStore, sqlite_in_memory

EVENTS = """
workflow main {
  publish("told", { n: 0 })
  let mine = await event("told", { timeout: "1h" })
  let waits = branch { return await event("told", { where: { "n": 2 } }) }
  let told = await race({ told: event("told", { timeout: "1h" }), child: workflow("teller") })
  let heard = await waits
  let again = await event("told", { where: { n: 1 }, timeout: 5, default: "none" })
  return [mine.data, told.key, told.result.data, heard.data, again]
}
workflow teller {
  publish("told", { n: 1 })
  publish("told", { n: 2 })
  await sleep(60)
}
"""
RESULT = [{"n": 0}, "told", {"n": 1}, {"n": 2}, "none"]


def run(make_store: MakeStore, fail_at: int = 0, mode: str = "") -> World:
    world = World(EVENTS, fail_at, mode, make_store)
    world.start()
    ended = world.run()
    assert (ended.status, json.loads(ended.result or "null")) == ("completed", RESULT), ended.error
    return world


@pytest.mark.parametrize("mode", ["before", "after", "lost"])
@sweep
def test_interrupted_at_any_store_call_every_event_is_seen_once(
    make_store: MakeStore, mode: str
) -> None:
    every = sampled(5, 1) if make_store is sqlite_in_memory else sampled(29, 9)
    for n in range(1 + len(mode) % every, run(make_store).store.calls + 1, every):
        run(make_store, n, mode)


def test_an_event_from_outside_reaches_one_who_sleeps(make_store: MakeStore) -> None:
    world = World(
        'workflow main { let e = await event("paid", { timeout: "1d" }); return [e, now()] }',
        make_store=make_store,
    )
    world.start()
    while not world.inner.messages.waits("run"):
        world.round()
    world.clock.seconds += 60
    world.inner.messages.publish(NewEvent("mine", "paid", '{"sum": 5}'))
    event, now = json.loads(world.run().result or "null")
    assert event == {"id": "mine", "type": "paid", "data": {"sum": 5}, "at": now}


def test_a_wait_that_is_given_up_and_asked_for_by_its_id_is_a_timeout(
    make_store: MakeStore,
) -> None:
    world = World(
        'workflow main { let e = event("paid", { timeout: 5 })\nawait sleep(9)\nawait e }',
        make_store=make_store,
    )
    world.start()
    error = json.loads(world.run().error or "null")
    assert (error["code"], error["message"], error["at"]) == (
        "Timeout",
        "no event `paid` came in time",
        [3, 7],
    )


@pytest.mark.parametrize("how", ["cancelled", "timed out"])
def test_one_who_is_to_end_runs_its_finally_and_a_timeout_is_a_failure(
    make_store: MakeStore, how: str
) -> None:
    timeout = '@timeout("1h") ' if how == "timed out" else ""
    flow = (
        f'{timeout}workflow main {{ try {{ await event("never") }} finally {{ let x = await '
        f'task("value", {{ x: 1 }}) }} }}'
    )
    world = World(flow, make_store=make_store)
    world.start()
    while not world.inner.messages.waits("run"):
        world.round()
    if how == "cancelled":
        world.inner.executions.cancel(["run"])
    ended = world.run()
    assert (ended.status, world.ran["value(1)"]) == (
        "cancelled" if how == "cancelled" else "failed",
        1,
    )
    assert json.loads(ended.error or "null")["code"] == (
        "Cancelled" if how == "cancelled" else "Timeout"
    )
