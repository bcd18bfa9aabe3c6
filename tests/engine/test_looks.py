"""What a look into the mailbox costs, and that nobody else pays for it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from rhythm.store.interfaces.messages import NewSignal
from tests.engine.driver import World
from tests.support.stores import Stores

TASKS_ONLY = """
for (i in range(5)) { let x = await task("value", { x: i }) }
return "done"
"""
LOOKS = """
let got = []
for (i in range(5)) {
  let x = await task("value", { x: i })
  let there = await signal("go", { timeout: 0, default: null })
  got += [there]
}
return got
"""


def calls(world: World) -> Counter[str]:
    """How often the worker asks its store for what, from now on."""
    counted: Counter[str] = Counter()
    world.store.after = lambda name, answer: counted.update([name])
    return counted


def test_whoever_gets_no_mail_never_reads_its_mailbox(stores: Stores) -> None:
    world = World(TASKS_ONLY, make_store=stores.empty_store)
    counted = calls(world)
    world.start()
    assert world.run().result == '"done"'
    assert (counted["load"], counted["outcomes"], counted["first_mail"]) == (0, 1, 0)
    assert counted["commit"] == 6  # one for each await, and the end


def test_whoever_never_looks_into_its_mailbox_reads_it_once(stores: Stores) -> None:
    world = World(TASKS_ONLY, make_store=stores.empty_store)
    counted = calls(world)
    world.signal(0.0, "go", 1)
    world.start()
    assert world.run().result == '"done"'
    assert (counted["load"], counted["outcomes"], counted["first_mail"]) == (0, 1, 1)


def test_a_look_loads_once_and_commits_once(stores: Stores) -> None:
    world = World(LOOKS, make_store=stores.empty_store)
    counted = calls(world)
    world.start()
    assert world.run().result == "[null,null,null,null,null]"
    assert (counted["load"], counted["outcomes"], counted["first_mail"]) == (5, 6, 0)
    assert counted["commit"] == 11


@pytest.mark.parametrize("at", [0.0, 0.5])
def test_a_signal_is_there_for_the_first_look_after_it_was_acknowledged(
    stores: Stores, at: float
) -> None:
    world = World(LOOKS.replace("{ x: i }", "{ x: i, took: 0.8 }"), make_store=stores.empty_store)
    world.signal(at, "go", 7)
    world.start()
    assert world.run().result == "[7,null,null,null,null]"


FIRST_LOOK = 'return await signal("go", { timeout: 0, default: null })'


def test_mail_that_lay_there_when_it_was_claimed_is_seen_in_the_first_turn(stores: Stores) -> None:
    world = World(FIRST_LOOK, make_store=stores.empty_store)
    world.start()
    world.inner.messages.signal(NewSignal("s", "run", "go", "7"), 10)
    assert world.run().result == "7"
    assert len(world.inner.reading.history("run")) == 1


def test_mail_that_comes_between_the_claim_and_the_commit_is_seen(stores: Stores) -> None:
    """The workflow was told that its mailbox is empty, and would park: it is woken."""
    world = World('return await signal("go")', make_store=stores.empty_store)
    outcomes: list[str] = []

    def send(name: str, answer: Any) -> None:
        if name == "claim" and answer and not outcomes:
            world.inner.messages.signal(NewSignal("s", "run", "go", "7"), 10)
        if name == "commit":
            outcomes.extend(committed.outcome for committed in answer[0])

    world.store.after = send
    world.start()
    assert world.run().result == "7"
    assert outcomes == ["woken", "finished"]


def test_of_two_that_ended_long_ago_the_first_wins_although_the_other_was_just_awaited(
    stores: Stores,
) -> None:
    text = """
      workflow main() {
        let slow = task("value", { x: "slow", took: 4 })
        let quick = task("value", { x: "quick", took: 2 })
        await sleep(9)
        let x = await slow
        let won = await race([slow, quick])
        return won.result
      }
    """
    world = World(text, make_store=stores.empty_store)
    world.start()
    assert world.run().result == '"quick"'


def test_a_cancel_leaves_no_doubt_about_what_had_ended_of_all_that_was_awaited(
    stores: Stores,
) -> None:
    """Of an `all` that nothing can settle yet its ends are not read; what is awaited after it must
    be read."""
    text = """
      workflow main() {
        let jobs = [task("value", { x: n, took: 1 + 50 * n }) for n in range(2)]
        try { await all(jobs) } finally {
          let won = await race({ mail: signal("go", { timeout: 0 }), job: jobs[0] })
          set_attribute("won", won.key)
          await sleep(1)
        }
      }
    """
    world = World(text, make_store=stores.empty_store)
    world.start()
    world.signal(5.0, "go", None)
    while world.clock.seconds < 20:
        world.round()
    world.inner.executions.cancel(["run"])
    ended = world.run()
    assert (ended.status, ended.attributes) == ("cancelled", '{"won":"job"}')
