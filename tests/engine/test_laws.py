"""What the engine promises, one law at a time, on the real store with a clock of our own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rhythm.store.base import Execution
from rhythm.worker.handlers import Task
from tests.engine.driver import Crashed, World
from tests.support.stores import MakeStore

BOTH = pytest.mark.parametrize("owner_run", [True, False], ids=["owner-run", "queued"])


def result_of(execution: Execution) -> Any:
    assert execution.status == "completed", execution.error
    return json.loads(execution.result or "null")


def error_of(execution: Execution) -> dict[str, Any]:
    assert execution.error is not None, execution.status
    error: dict[str, Any] = json.loads(execution.error)
    return error


def rounds(world: World, seconds: float) -> None:
    """Lets so much virtual time pass."""
    until = world.clock.seconds + seconds
    while world.clock.seconds < until:
        world.round()


@BOTH
def test_cancel_reaches_children_and_runs_finally(owner_run: bool) -> None:
    flow = """
    workflow main {
      try { await all([workflow("kid"), task("value", { x: "slow", took: 500 })]) } finally { await task("value", { x: "tidied" }) }
    }
    workflow kid { try { await sleep("1d") } finally { await task("value", { x: "kid tidied" }) } }
    """
    world = World(flow, owner_run=owner_run)
    world.start()
    rounds(world, 5)
    assert world.inner.cancel(["run", "nobody"]) == {"run": True}
    ended = world.run()
    assert (ended.status, error_of(ended)["code"]) == ("cancelled", "Cancelled")
    assert [child.status for child in world.inner.children("run")] == ["cancelled", "cancelled", "completed"]
    assert (world.ran["value('tidied')"], world.ran["value('kid tidied')"]) == (1, 1)
    assert world.inner.cancel(["run"]) == {"run": False}


@BOTH
def test_paused_workflow_takes_no_turn_and_goes_on_when_resumed(owner_run: bool) -> None:
    world = World('workflow main { await sleep(10)\nlet x = await task("value", { x: 1 })\nreturn x }', owner_run=owner_run)
    world.start()
    rounds(world, 1)
    world.inner.pause("run", True)
    rounds(world, 100)
    assert world.inner.get(["run"])["run"].status == "paused"
    assert world.ran["value(1)"] == 0
    world.doctor()
    world.inner.pause("run", False)
    assert result_of(world.run()) == 1


def test_workflow_over_its_timeout_fails_and_its_children_are_cancelled() -> None:
    world = World('@timeout("10s") workflow main { await workflow("kid") }\nworkflow kid { await sleep("1d") }')
    world.start()
    ended = world.run()
    assert error_of(ended)["code"] == "Timeout"
    assert [child.status for child in world.inner.children("run")] == ["cancelled"]
    assert world.clock.seconds < 100


def test_task_over_its_timeout_is_tried_again_and_then_fails() -> None:
    world = World('workflow main { await task("value", { x: 1, took: 60 }, { timeout: "5s", retries: 1, backoff: 1 }) }')
    world.start()
    assert error_of(world.run())["code"] == "Timeout"
    assert world.clock.seconds < 60


def test_task_that_no_worker_knows_is_put_back_and_fails_after_its_grace() -> None:
    world = World('workflow main { await task("nobody", { x: 1 }) }', missing_task_grace_s=20.0, missing_task_retry_s=5.0)
    world.start()
    assert "no worker has a handler of this name" in error_of(world.run())["message"]
    assert 20 <= world.clock.seconds < 60
    assert world.inner.children("run")[0].attempt <= 1


@BOTH
def test_task_that_kills_its_worker_is_quarantined_and_the_others_go_on(owner_run: bool) -> None:
    def poison() -> None:
        world.ran["poison()"] += 1
        raise Crashed

    world = World('workflow main { await task("poison") }\nworkflow other { return await task("value", { x: 2 }) }', owner_run=owner_run)
    world.tasks["poison"] = Task(poison, "poison", "default", 0, None, None)
    world.start()
    world.start("other", id="other")
    assert "died" in error_of(world.run())["message"]
    assert world.ran["poison()"] == world.settings.crash_limit
    assert result_of(world.run("other")) == 2


@BOTH
def test_thousand_children_cost_a_few_turns(owner_run: bool) -> None:
    world = World(
        'workflow main { let rs = await all([task("value", { x: i }) for i in range(1000)])\nreturn sum(rs) }', owner_run=owner_run
    )
    world.start()
    assert result_of(world.run()) == sum(range(1000))
    assert len(world.inner.history("run")) < 120


def test_signals_are_taken_in_the_order_in_which_they_were_sent_and_once() -> None:
    world = World('workflow main { let got = []\nfor (i in range(5)) { let s = await signal("n")\ngot += [s] }\nreturn got }')
    world.start()
    for i in range(5):
        world.signal(i / 2, "n", i)
    assert result_of(world.run()) == [0, 1, 2, 3, 4]


def test_failure_of_a_child_says_which_and_why() -> None:
    world = World('workflow main { await workflow("kid") }\nworkflow kid { throw { code: "Oops", message: "broken" } }')
    world.start()
    error = error_of(world.run())
    assert (error["code"], error["data"]["id"], error["data"]["error"]["code"]) == ("ChildFailed", "run.1", "Oops")


def test_child_workflow_that_does_not_exist_is_a_failure_that_can_be_caught() -> None:
    world = World('workflow main { try { await workflow("nobody") } catch (e) { return e.message } }')
    world.start()
    assert result_of(world.run()) == "there is no workflow `nobody`"


@BOTH
def test_result_that_cannot_be_stored_is_a_failure_of_the_task(owner_run: bool) -> None:
    world = World('workflow main { try { await task("odd") } catch (e) { return e.message } }', owner_run=owner_run)
    world.tasks["odd"] = Task(lambda: object(), "odd", "default", 0, None, None)
    world.start()
    assert "InvalidResult: result is of type object, which has no JSON form" in result_of(world.run())


def test_endless_workflow_yields_to_others_and_stops_at_its_limit() -> None:
    world = World('workflow main { while (true) { } }\nworkflow other { return await task("value", { x: 3 }) }')
    world.start()
    world.start("other", id="other")
    for _ in range(200):
        world.round()
    assert result_of(world.inner.get(["other"])["other"]) == 3
    assert world.inner.get(["run"])["run"].status in ("running", "suspended")


def test_task_that_outlives_its_await_keeps_the_attempt_in_which_it_runs() -> None:
    flow = """
    workflow main {
      try { await all([task("fail"), task("value", { x: 1, took: 5 })], { keep: true }) } catch (e) { await sleep(10) }
    }
    """
    world = World(flow)
    world.start()
    assert world.run().status == "completed"
    assert [child.attempt for child in world.inner.children("run")] == [1, 1]


@pytest.mark.parametrize(
    "loser", ['task("value", { x: "s", took: 50 })', 'workflow("child")'], ids=["queued task", "child that runs its own"]
)
def test_what_a_turn_cancels_and_the_same_worker_runs_stops_at_once(make_store: MakeStore, loser: str) -> None:
    flow = f"""
    workflow main {{ let first = await race([{loser}, sleep(0.5)]); return first.key }}
    workflow child {{ let x = await task("value", {{ x: "s", took: 50 }}) }}
    """
    world = World(flow, make_store=make_store)
    world.start()
    assert (world.run().result, world.ran["value('s')"]) == ("1", 0)
    assert world.clock.seconds < 1
