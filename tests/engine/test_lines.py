"""What a workflow says, while its workers die and answers are lost: nothing twice, and in order."""

from __future__ import annotations

from typing import Any

import pytest

from rhythm.store.interfaces.logs import LogLine
from tests.engine.driver import World
from tests.support.length import sampled, sweep
from tests.support.stores import MakeStore, sqlite_in_memory

SAYS = """
log("begin", { at: now() })
for (x in [1, 2, 3]) {
  let y = await task("value", { x })
  log(`got ${y}`, { level: "warning", y })
  progress(x / 4, "step")
}
let all_of_them = await all([task("value", { x: 10, took: 2 }), task("value", { x: 11 })])
await sleep(5)
log("end")
return len(all_of_them)
"""
SAID = ["begin", "got 1", "step", "got 2", "step", "got 3", "step", "end"]


def run(make_store: MakeStore, fail_at: int = 0, mode: str = "", quick: bool = False) -> World:
    world = World(SAYS, fail_at, mode, make_store, quick=quick, log_level=20)
    world.start()
    assert world.run().result == "2"
    assert world.lines is not None
    world.lines.write(world.inner, everything=True)
    return world


def lines(world: World) -> list[LogLine]:
    return list(world.inner.logs.read("run", 0, 1000))


@pytest.mark.parametrize("quick", [False, True])
def test_what_a_workflow_says_is_kept_in_its_order(make_store: MakeStore, quick: bool) -> None:
    found = lines(run(make_store, quick=quick))
    assert [line.message for line in found] == SAID
    assert [line.level for line in found] == [20, 30, 20, 30, 20, 30, 20, 20]
    assert [line.fields for line in found][1:3] == ['{"y":1}', '{"fraction":0.25}']
    assert {(line.name, line.worker, line.attempt) for line in found} == {("main", "worker-1", 0)}


@pytest.mark.parametrize("mode", ["before", "after", "lost"])
@sweep
def test_interrupted_at_any_store_call_no_line_is_doubled_or_out_of_order(
    make_store: MakeStore, mode: str
) -> None:
    calls = run(make_store).store.calls
    short = 7 if make_store is sqlite_in_memory else 29
    for n in range(1 + len(mode), calls + 1, sampled(short, 2)):
        found = lines(run(make_store, n, mode))
        identities = [(line.turn, line.n) for line in found]
        assert identities == sorted(set(identities)), f"call {n}"
        said = [line.message for line in found]
        # What a worker has said and not written dies with it. No answer that is lost loses a line.
        rest = iter(SAID)
        assert all(message in rest for message in said), f"call {n}: {said}"
        assert mode != "lost" or said == SAID, f"call {n}"
        assert len(SAID) - len(said) <= 2, f"call {n}: {said}"


def test_a_turn_that_was_lost_says_nothing(make_store: MakeStore) -> None:
    """It is taken again: only what the turn has said that was committed is true. (On PostgreSQL a
    light turn may be committed although its claim is lost: then it is not taken again.)"""
    flow = 'log("once")\nreturn await task("value", { x: 1 })'
    world = World(flow, make_store=make_store, log_level=20)
    lost: dict[str, int] = {}

    def lose(name: str, answer: Any) -> None:
        if name == "claim" and not lost:  # it takes its first turn under a claim that is gone
            lost.update({claim.id: claim.fence for claim in answer})
            world.inner.claims.release(lost)

    world.store.after = lose
    world.start()
    assert world.run().result == "1"
    assert lost.keys() == {"run"}
    assert world.lines is not None
    world.lines.write(world.inner)
    assert [line.message for line in lines(world)] == ["once"]
