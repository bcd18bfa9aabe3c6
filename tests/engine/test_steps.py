"""A workflow of steps, interrupted at any store call: it ends as if it had not been, also when
somebody resumes it with data."""

from __future__ import annotations

import json

import pytest

from tests.engine.driver import World
from tests.engine.test_walking_skeleton import SERVER_EVERY
from tests.support.length import sampled, sweep
from tests.support.steps import approval, choice, document, end, parallel, task, wait
from tests.support.stores import MakeStore, sqlite_in_memory

# of the calls: what steps become is interrupted at every one in the walking skeleton
EVERY = sampled(11, 3)

STEPS = document(
    task("one", "value", inputs={"x": "${n}"}),
    parallel(
        "both",
        {
            "a": [wait("rest", **{"for": 2}), task("t", "value", inputs={"x": 5, "took": 1})],
            "b": [wait("s", **{"for": 1})],
        },
    ),
    wait("hold", **{"for": 10}),
    choice("if", {"field": "vip", "operator": "eq", "value": True}, "broken", "no"),
    task("broken", "fail", on_failure="ask"),
    end("no"),
    approval(
        timeout=60,
        reason="${error.code} ${one} ${both.a.t}",
        execute=[{"type": "task", "task": "value", "inputs": {"x": "told"}}],
    ),
    end("yes"),
)


def run(make_store: MakeStore, fail_at: int = 0, mode: str = "") -> World:
    world = World(STEPS, fail_at, mode, make_store)
    world.start(inputs={"n": 7, "vip": False})
    while world.clock.seconds < 5:
        world.round()
    if world.inner.reading.get(["run"])["run"].paused_at is None:
        assert world.inner.people.pause(["run"])["run"]
    while world.clock.seconds < 20:  # its time is over while it is paused
        world.round()
    assert world.inner.reading.get(["run"])["run"].status == "paused"
    assert world.inner.people.resume(["run"], data=json.dumps({"vip": True}))["run"]
    ended = world.run()
    error = json.loads(ended.error or "null")
    assert (ended.status, error["message"], error["data"]["decision"]) == (
        "blocked",
        "TaskFailed 7 5: expired",
        "expired",
    ), error
    assert world.ran["value('told')"] >= 1
    return world


@pytest.mark.parametrize("mode", ["before", "after", "lost"])
@sweep
def test_interrupted_at_any_store_call_steps_end_as_if_they_had_not_been(
    make_store: MakeStore, mode: str
) -> None:
    calls = run(make_store).store.calls
    every = EVERY if make_store is sqlite_in_memory else 3 * SERVER_EVERY
    for n in range(1 + len(mode) % every, calls + 1, every):
        assert run(make_store, n, mode).store.calls >= n
