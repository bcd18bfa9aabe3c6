"""What the engine promises, one law at a time, on the real store with a clock of our own."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from rhythm.errors import NewerFormat, StoreError
from rhythm.ir.program import Program
from rhythm.store.interfaces.executions import Execution
from rhythm.store.lifecycle import TASK
from rhythm.vm.machine import Inputs
from rhythm.vm.snapshot import Snapshot
from rhythm.worker import turns
from rhythm.worker.handlers import Task
from tests.engine.driver import EPOCH_US, Crashed, World
from tests.support.length import sampled, sweep
from tests.support.postgres import Schemas
from tests.support.stores import MakeStore, ready_rows, rob, rows

MakeWorld = Callable[..., World]
BOTH = pytest.mark.parametrize("owner_run", [True, False], ids=["owner-run", "queued"])


@pytest.fixture
def make_world(make_store: MakeStore) -> MakeWorld:
    return partial(World, make_store=make_store)


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
def test_cancel_reaches_children_and_runs_finally(make_world: MakeWorld, owner_run: bool) -> None:
    flow = """
    workflow main {
      try { await all([workflow("kid"), task("value", { x: "slow", took: 500 })]) } finally { await task("value", { x: "tidied" }) }
    }
    workflow kid { try { await sleep("1d") } finally { await task("value", { x: "kid tidied" }) } }
    """
    world = make_world(flow, owner_run=owner_run)
    world.start()
    rounds(world, 5)
    assert world.inner.executions.cancel(["run", "nobody"]) == {"run": True}
    ended = world.run()
    assert (ended.status, error_of(ended)["code"]) == ("cancelled", "Cancelled")
    assert [child.status for child in world.inner.reading.children("run")] == [
        "cancelled",
        "cancelled",
        "completed",
    ]
    assert (world.ran["value('tidied')"], world.ran["value('kid tidied')"]) == (1, 1)
    assert world.inner.executions.cancel(["run"]) == {"run": False}


@BOTH
def test_paused_workflow_takes_no_turn_and_goes_on_when_resumed(
    make_world: MakeWorld, owner_run: bool
) -> None:
    world = make_world(
        'workflow main { await sleep(10)\nlet x = await task("value", { x: 1 })\nreturn x }',
        owner_run=owner_run,
    )
    world.start()
    rounds(world, 1)
    world.inner.people.pause(["run"])
    rounds(world, 100)
    assert world.inner.reading.get(["run"])["run"].status == "paused"
    assert world.ran["value(1)"] == 0
    world.doctor()
    world.inner.people.resume(["run"])
    assert result_of(world.run()) == 1


def test_workflow_over_its_timeout_fails_and_its_children_are_cancelled(
    make_world: MakeWorld,
) -> None:
    world = make_world(
        '@timeout("10s") workflow main { await workflow("kid") }\nworkflow kid { await '
        'sleep("1d") }'
    )
    world.start()
    ended = world.run()
    assert error_of(ended)["code"] == "Timeout"
    assert [child.status for child in world.inner.reading.children("run")] == ["cancelled"]
    assert world.clock.seconds < 100


def test_task_over_its_timeout_is_tried_again_and_then_fails(make_world: MakeWorld) -> None:
    world = make_world(
        'workflow main { await task("value", { x: 1, took: 60 }, { timeout: "5s", '
        "retries: 1, backoff: 1 }) }"
    )
    world.start()
    assert error_of(world.run())["code"] == "Timeout"
    assert world.clock.seconds < 60


def test_task_that_no_worker_knows_is_put_back_and_fails_after_its_grace(
    make_world: MakeWorld,
) -> None:
    world = make_world(
        'workflow main { await task("nobody", { x: 1 }) }',
        missing_task_grace_s=20.0,
        missing_task_retry_s=5.0,
    )
    world.start()
    assert "no worker has a handler of this name" in error_of(world.run())["message"]
    assert 20 <= world.clock.seconds < 60
    assert world.inner.reading.children("run")[0].attempt <= 1


@BOTH
@pytest.mark.parametrize("retries", [0, 10])
def test_task_that_kills_its_worker_is_quarantined_and_the_others_go_on(
    make_world: MakeWorld, owner_run: bool, retries: int
) -> None:
    def poison() -> None:
        world.ran["poison()"] += 1
        raise Crashed

    flow = """
    workflow main { try { await task("poison") } catch (e) { return e.message } }
    workflow other { return await task("value", { x: 2 }) }
    """
    world = make_world(flow, owner_run=owner_run)
    world.tasks["poison"] = Task(poison, "poison", "default", retries, None, None)
    world.start()
    world.start("other", id="other")
    assert "its worker died 5 times" in result_of(world.run())
    assert world.ran["poison()"] == world.settings.crash_limit
    assert result_of(world.run("other")) == 2


@BOTH
def test_thousand_children_cost_a_few_turns(owner_run: bool) -> None:
    world = World(
        (
            'workflow main { let rs = await all([task("value", { x: i }) for i in '
            "range(1000)])\nreturn sum(rs) }"
        ),
        owner_run=owner_run,
    )
    world.start()
    assert result_of(world.run()) == sum(range(1000))
    assert len(world.inner.reading.history("run")) < 120


def test_signals_are_taken_in_the_order_in_which_they_were_sent_and_once(
    make_world: MakeWorld,
) -> None:
    world = make_world(
        "workflow main { let got = []\nfor (i in range(5)) { let s = await "
        'signal("n")\ngot += [s] }\nreturn got }'
    )
    world.start()
    for i in range(5):
        world.signal(i / 2, "n", i)
    assert result_of(world.run()) == [0, 1, 2, 3, 4]


def test_failure_of_a_child_says_which_and_why(make_world: MakeWorld) -> None:
    world = make_world(
        'workflow main { await workflow("kid") }\nworkflow kid { throw { code: "Oops", '
        'message: "broken" } }'
    )
    world.start()
    error = error_of(world.run())
    assert (error["code"], error["data"]["id"], error["data"]["error"]["code"]) == (
        "ChildFailed",
        "run.1",
        "Oops",
    )


def test_child_workflow_that_does_not_exist_is_a_failure_that_can_be_caught(
    make_world: MakeWorld,
) -> None:
    world = make_world(
        'workflow main { try { await workflow("nobody") } catch (e) { return e.message } }'
    )
    world.start()
    assert result_of(world.run()) == "there is no workflow `nobody`"


@BOTH
def test_result_that_cannot_be_stored_is_a_failure_of_the_task(
    make_world: MakeWorld, owner_run: bool
) -> None:
    world = make_world(
        'workflow main { try { await task("odd") } catch (e) { return e.message } }',
        owner_run=owner_run,
    )
    world.tasks["odd"] = Task(lambda: object(), "odd", "default", 0, None, None)
    world.start()
    assert "InvalidResult: result is of type object, which has no JSON form" in result_of(
        world.run()
    )


def test_endless_workflow_yields_to_others_and_stops_at_its_limit() -> None:
    world = World(
        'workflow main { while (true) { } }\nworkflow other { return await task("value", '
        "{ x: 3 }) }"
    )
    world.start()
    world.start("other", id="other")
    for _ in range(200):
        world.round()
    assert result_of(world.inner.reading.get(["other"])["other"]) == 3
    assert world.inner.reading.get(["run"])["run"].status in ("running", "suspended")


# who may run what


@pytest.mark.parametrize("call", ["claim", "load", "commit"])
@BOTH
def test_body_does_not_begin_when_its_claim_may_have_passed_to_another(
    make_world: MakeWorld, owner_run: bool, call: str
) -> None:
    """A worker that was stopped after any of its calls for longer than its claim lasts; `World`
    looks at every body that begins."""
    world = make_world(
        (
            'let a = await task("value", { x: 1 })\nawait signal("go", { timeout: 0, default: 0 })\n'
            'let b = await task("value", { x: 2 })\nreturn [a, b]'
        ),
        owner_run=owner_run,
        dead_after_s=3000.0,
    )
    stalls: list[str] = []

    def stall(name: str, answer: Any) -> None:
        if name == call and answer and len(stalls) < 4:
            stalls.append(name)
            world.clock.seconds += 31.0

    world.store.after = stall
    world.start()
    assert result_of(world.run()) == [1, 2]
    assert stalls or (call == "load" and not owner_run)  # its rows come with its claims


@pytest.mark.parametrize("mode", ["before", "after"])
@sweep
def test_inputs_of_a_body_are_committed_before_it_begins(make_world: MakeWorld, mode: str) -> None:
    """Whenever the worker dies, whoever goes on gives the task the same inputs under the same
    id."""
    flow = """
    let one = await task("value", { x: { of: "one", is: uuid() } })
    let both = await all([task("value", { x: { of: "two", is: uuid() } }), task("value", { x: { of: "three", is: now() } })])
    """
    again = 0
    for n in range(1, 30, sampled(4, 1 if mode == "before" else 2)):
        world = make_world(flow, n, mode)
        world.start()
        assert world.run().status == "completed"
        given = {(inputs["x"]["of"], inputs["x"]["is"]) for inputs in world.given}
        assert len(given) == 3, f"call {n}: one task was given different inputs: {given}"
        again += len(world.given) > 3
    assert again, "some died after a body had begun"


def test_claim_without_an_answer_is_given_back_at_once(make_world: MakeWorld) -> None:
    world = make_world('let x = await task("value", { x: 1 })\nreturn x')
    unanswered: list[Any] = []

    def lose(name: str, answer: Any) -> None:
        if name == "claim" and answer and not unanswered:
            unanswered.extend(answer)
            raise StoreError("no answer from claim")

    world.store.after = lose
    world.start()
    assert result_of(world.run()) == 1
    assert unanswered
    assert world.clock.seconds < world.settings.beat_s


@BOTH
def test_claim_that_was_lost_unnoticed_is_dropped_after_a_call_without_an_answer(
    make_world: MakeWorld, owner_run: bool
) -> None:
    world = make_world('return await task("value", { x: 1, took: 0.9 })', owner_run=owner_run)
    world.start()
    while not world.handlers.agenda:
        world.round()
    rob(world.inner, world.worker.name)
    assert len(world.inner.claims.claim("another", ["default"], 10, 30.0)) == 1
    world.worker.ownership.unsure = True
    world.worker.run_round()
    assert (world.worker.idle, world.handlers.agenda) == (True, [])


@BOTH
def test_claim_that_was_lost_unnoticed_is_dropped_after_anybodys_connection_was_lost(
    make_world: MakeWorld, owner_run: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call without an answer was another's, such as a service's; the database that answers now
    may know nothing of the claim."""
    world = make_world('return await task("value", { x: 1, took: 0.9 })', owner_run=owner_run)
    world.start()
    while not world.handlers.agenda:
        world.round()
    rob(world.inner, world.worker.name)
    assert len(world.inner.claims.claim("another", ["default"], 10, 30.0)) == 1
    monkeypatch.setattr(type(world.inner), "era", 1)
    world.worker.run_round()
    assert (world.worker.idle, world.handlers.agenda) == (True, [])


def test_turn_is_not_sent_again_with_a_fence_that_another_has_by_now(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failover that has lost the claim, the same number may have been drawn once more."""
    world = make_world('return await task("value", { x: 1 })')
    world.start()
    commit, sent = world.inner.turns.commit, list[str]()

    def fail_over(turns: Any, ends: Any) -> Any:
        sent.extend(turn.id for turn in turns)
        if len(sent) > 1:
            return commit(turns, ends)
        rows(world.inner, "UPDATE ready SET claimed_by = 'another'")
        raise StoreError("the server has gone away")

    monkeypatch.setattr(world.inner.turns, "commit", fail_over)
    world.worker.run_round()
    assert (sent, world.worker.idle) == (["run"], True)
    assert world.inner.reading.history("run") == []


@BOTH
def test_claim_that_was_lost_is_dropped_at_the_next_beat(
    make_world: MakeWorld, owner_run: bool
) -> None:
    world = make_world(
        'return await task("value", { x: 1, took: 25 })',
        owner_run=owner_run,
        owner_run_limit_s=1000.0,
    )
    world.start()
    while not world.handlers.agenda:
        world.round()
    rob(world.inner, world.worker.name)
    assert len(world.inner.claims.claim("another", ["default"], 10, 1000.0)) == 1
    rounds(world, world.settings.claim_ttl_s / 3 + 1)
    assert (world.worker.idle, world.handlers.agenda) == (True, [])


@BOTH
def test_claiming_again_what_was_lost_stops_the_old_body(
    make_world: MakeWorld, owner_run: bool
) -> None:
    world = make_world('return await task("value", { x: 1, took: 0.9 })', owner_run=owner_run)
    world.start()
    while not world.handlers.agenda:
        world.round()
    rob(world.inner, world.worker.name)
    for _ in range(3):
        world.worker.run_round()
        assert len(world.handlers.agenda) <= 1
    assert (result_of(world.run()), world.ran["value(1)"]) == (1, 1)


def test_what_was_parked_woken_and_claimed_again_is_not_reported_as_lost(
    schemas: Schemas,
) -> None:
    """The commit that parks it is under way: its answer is read after the next claim."""
    world = World(
        """workflow main { await sleep(0.01)\nreturn 1 }
        workflow busy { for (i in range(20)) { await task("value", { x: i, took: 0.005 }) } }""",
        make_store=schemas.empty_store,
    )
    said: list[str] = []
    observe = world.worker.narrator.complain
    assert observe is not None
    world.worker.narrator.complain = lambda what, id, detail: said.append(what)
    for n in range(20):
        world.start(id=f"main-{n}")
        world.start("busy", id=f"busy-{n}")
    begin = world.inner.turns.begin_commit

    def woken(turns: Any, ends: Any) -> Any:
        """Its answer comes after its timer."""
        answer = begin(turns, ends)
        world.clock.seconds += 0.02
        world.services.run()
        return answer

    world.inner.turns.begin_commit = woken  # type: ignore[method-assign]  # for this store alone
    world.run("busy-19")
    assert "claim_lost" not in said


def test_owner_that_finds_a_newer_fence_lets_go(make_world: MakeWorld) -> None:
    """It had no answer after its claim, has compared what it owns, and was stopped before it loads
    that again; `World` sees it if a body begins without a claim."""
    world = make_world('return await task("value", { x: 1, took: 0.9 })')
    world.start()
    while not world.handlers.agenda:
        world.round()
    world.worker.stop()
    world._boot()
    unanswered: list[str] = []
    taken: list[str] = []

    def take(name: str, answer: Any) -> None:
        if name == "paused_queues" and not unanswered:
            unanswered.append(name)
            raise StoreError("no answer from paused_queues")
        if name == "claim" and unanswered and not taken:
            taken.extend(rob(world.inner, world.worker.name))

    world.store.after = take
    assert result_of(world.run()) == 1
    assert taken == ["run"]


def orphan(world: World, id: str, kind: int) -> None:
    """A row in `ready` for what has ended, as a late wake leaves it."""
    rows(
        world.inner,
        (
            f"INSERT INTO ready (id, kind, queue, priority, order_key, state) VALUES ('{id}', "
            f"{kind}, 'system', 0, 0, 0)"
        ),
    )


def test_row_of_a_workflow_that_has_ended_is_dropped(make_world: MakeWorld) -> None:
    world = make_world('return await task("value", { x: 1 })')
    world.start()
    world.run()
    before, turns = world.clock.seconds, world.inner.reading.history("run")
    orphan(world, "run", 0)
    world.run()
    assert (world.inner.reading.history("run"), world.ran["value(1)"], ready_rows(world.inner)) == (
        turns,
        1,
        [],
    )
    assert world.clock.seconds < before + 1


def test_task_that_has_ended_is_not_run_again(make_world: MakeWorld) -> None:
    world = make_world('return await task("value", { x: 1 })')
    world.start()
    world.run()
    orphan(world, "run.1", 1)
    world.run()
    assert (world.ran["value(1)"], ready_rows(world.inner)) == (1, [])


def test_cancelled_task_that_is_queued_is_not_run(make_world: MakeWorld) -> None:
    world = make_world(
        'let first = await race([task("value", { x: n }) for n in range(4)])\nreturn first.result',
        concurrency=1,
    )
    world.start()
    assert (result_of(world.run()), world.ran["value(3)"]) == (0, 0)
    assert [child.status for child in world.inner.reading.children("run")][-1] == "cancelled"


def test_cancelled_task_that_runs_is_stopped_at_the_next_beat(make_world: MakeWorld) -> None:
    world = make_world('return await task("value", { x: 1, took: 500 })', owner_run=False)
    world.start()
    while not world.handlers.agenda:
        world.round()
    assert world.inner.executions.cancel(["run.1"]) == {"run.1": True}
    rounds(world, world.settings.claim_ttl_s / 3 + 1)
    assert (world.handlers.agenda, world.inner.reading.get(["run.1"])["run.1"].status) == (
        [],
        "cancelled",
    )


def test_task_that_ends_while_the_end_of_another_is_committed_does_not_begin_again(
    make_world: MakeWorld,
) -> None:
    """On PostgreSQL the answer to a commit is read later: by then, further tasks have ended."""
    tasks = ", ".join(f'task("value", {{ x: {n}, took: 0.1 }})' for n in range(5))
    world = make_world(f"return await all([{tasks}])")
    world.start()
    assert result_of(world.run()) == [0, 1, 2, 3, 4]
    assert len(world.given) == 5


def test_task_that_may_lose_a_race_goes_through_the_queue(make_world: MakeWorld) -> None:
    world = make_world(
        'return await race([task("value", { x: 1, took: 0.5 }), task("value", { x: 2, '
        "took: 0.7 })])"
    )
    world.start()
    while not world.inner.reading.history("run"):
        world.round()
    assert [child.name for child in world.inner.reading.children("run")] == ["value", "value"]


def test_cancel_stops_the_body_of_an_owned_task_at_the_next_beat(make_world: MakeWorld) -> None:
    world = make_world('return await task("value", { x: 1, took: 500 })', owner_run_limit_s=1000.0)
    world.start()
    while not world.handlers.agenda:
        world.round()
    assert world.inner.executions.cancel(["run"]) == {"run": True}
    rounds(world, world.settings.claim_ttl_s / 3 + 1)
    assert (world.handlers.agenda, world.inner.reading.get(["run"])["run"].status) == (
        [],
        "cancelled",
    )


def test_end_of_a_task_is_kept_while_a_claim_has_no_answer(make_world: MakeWorld) -> None:
    world = make_world('return await task("value", { x: 1 })', owner_run=False)
    unanswered: list[str] = []

    def lose(name: str, answer: Any) -> None:
        if name == "claim" and world.worker.ownership.ends and not unanswered:
            unanswered.append(name)
            raise StoreError("no answer from claim")

    world.store.after = lose
    world.start()
    assert (result_of(world.run()), world.ran["value(1)"], unanswered) == (1, 1, ["claim"])


@BOTH
def test_worker_that_stops_gives_everything_back(make_world: MakeWorld, owner_run: bool) -> None:
    world = make_world('return await task("value", { x: 1, took: 0.9 })', owner_run=owner_run)
    world.start()
    while not world.handlers.agenda:
        world.round()
    world.worker.stop()
    assert (world.worker.idle, world.inner.claims.claimed_by(world.worker.name)) == (True, {})
    assert [
        claim.attempt
        for claim in world.inner.claims.claim("another", ["default"], 10, 30.0)
        if claim.kind == TASK
    ] == [1] * (not owner_run)


# looking again


def test_pause_stops_a_chain_of_owned_tasks_after_the_one_that_runs(make_world: MakeWorld) -> None:
    world = make_world('for (i in range(20)) { await task("value", { x: i }) }')
    world.start()
    while world.ran.total() < 3:
        world.round()
    world.inner.people.pause(["run"])
    rounds(world, 60)
    assert (world.ran.total() <= 5, world.inner.reading.get(["run"])["run"].status) == (
        True,
        "paused",
    )
    world.inner.people.resume(["run"])
    assert (world.run().status, world.ran.total()) == ("completed", 20)


def test_long_computation_is_cut_into_turns_and_ends(make_world: MakeWorld) -> None:
    world = make_world("let n = 0\nwhile (n < 60000) { n += 1 }\nreturn n")
    world.start()
    assert result_of(world.run()) == 60000
    assert len(world.inner.reading.history("run")) > 1


def slowly(world: World) -> None:
    """Every look at the clock takes a hundredth of a second."""
    looks = itertools.count()
    world.worker.turns.now = lambda: world.clock.now() + next(looks) / 100
    world.worker.ownership.alive_until = float("inf")


def test_a_turn_that_lasts_yields_before_its_fuel_is_spent(make_world: MakeWorld) -> None:
    world = make_world("let n = 0\nwhile (n < 60000) { n += 1 }\nreturn n")
    world.start()
    slowly(world)
    while world.inner.reading.get(["run"])["run"].finished_at is None:
        world.worker.run_round()
    assert result_of(world.inner.reading.get(["run"])["run"]) == 60000
    assert len(world.inner.reading.history("run")) > 10, (
        "a chunk of instructions in every hundredth of a second, of which a turn has 25"
    )


def test_a_cancel_reaches_what_never_waits(make_world: MakeWorld) -> None:
    world = make_world('while (true) { try { let x = parse_json("[1,") } catch (e) { let y = 1 } }')
    world.start()
    for _ in range(5):
        world.worker.run_round()
    world.inner.executions.cancel(["run"])
    assert world.run().status == "cancelled"


def test_what_was_started_before_and_has_ended_is_found_when_it_is_awaited(
    make_world: MakeWorld,
) -> None:
    world = make_world(
        'workflow main { let early = task("value", { x: 1 })\nawait sleep(10)\nlet x = '
        "await early\nreturn x }"
    )
    world.start()
    assert result_of(world.run()) == 1


def test_signal_that_came_during_a_task_is_found(make_world: MakeWorld) -> None:
    world = make_world('await task("value", { x: 1 })\nlet mail = await signal("go")\nreturn mail')
    world.start()
    world.signal(0.0, "go", 5)
    assert result_of(world.run()) == 5


def test_task_that_outlives_its_await_keeps_the_attempt_in_which_it_runs() -> None:
    flow = """
    workflow main {
      try { await all([task("fail"), task("value", { x: 1, took: 5 })], { keep: true }) } catch (e) { await sleep(10) }
    }
    """
    world = World(flow)
    world.start()
    assert world.run().status == "completed"
    assert [child.attempt for child in world.inner.reading.children("run")] == [1, 1]


@pytest.mark.parametrize(
    "loser",
    ['task("value", { x: "s", took: 50 })', 'workflow("child")'],
    ids=["queued task", "child that runs its own"],
)
def test_what_a_turn_cancels_and_the_same_worker_runs_stops_at_once(
    make_store: MakeStore, loser: str
) -> None:
    flow = f"""
    workflow main {{ let first = await race([{loser}, sleep(0.5)]); return first.key }}
    workflow child {{ let x = await task("value", {{ x: "s", took: 50 }}) }}
    """
    world = World(flow, make_store=make_store)
    world.start()
    assert (world.run().result, world.ran["value('s')"]) == ("1", 0)
    assert world.clock.seconds < 1


# what a worker cannot understand


def test_workflow_of_a_newer_rhythm_is_left_to_newer_workers(make_world: MakeWorld) -> None:
    world = make_world("await sleep(5)\nreturn 1")
    world.start()
    rounds(world, 1)
    understands = world.worker.loader.programs
    complaints: list[str] = []

    def refuse(name: str, version: str | None) -> Any:
        raise NewerFormat("program 'main' has IR version 99")

    world.worker.loader.programs = refuse
    world.worker.narrator.complain = lambda what, id, detail: complaints.append(what)
    rounds(world, 20)
    assert (world.inner.reading.get(["run"])["run"].status, set(complaints)) == (
        "suspended",
        {"program_newer"},
    )
    assert len(complaints) < 6, "it is not looked at again and again"
    world.worker.loader.programs = understands
    assert result_of(world.run()) == 1


def test_bug_that_a_turn_meets_fails_its_workflow_alone(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world('return await task("value", { x: ctx.id })')
    advance = turns.advance

    def broken(program: Program, snapshot: Snapshot, inputs: Inputs, **limits: Any) -> Any:
        if inputs.ctx["id"] == "bad":
            raise ZeroDivisionError("a bug\0")
        return advance(program, snapshot, inputs, **limits)

    monkeypatch.setattr(turns, "advance", broken)
    world.worker.narrator.complain = lambda what, id, detail: None
    for id in ("a", "bad", "b"):
        world.start(id=id)
    assert [result_of(world.run(id)) for id in ("a", "b")] == ["a", "b"]
    error = json.loads(world.inner.reading.get(["bad"])["bad"].error or "")
    assert error["code"] == "InternalError"
    assert error["message"].startswith(
        "Rhythm itself failed in a turn of this workflow: ZeroDivisionError: a bug"
    )


def test_workflow_whose_handler_was_lost_fails_alone(make_world: MakeWorld) -> None:
    """That would be a bug of the worker: the others are not to hear of it."""
    world = make_world('return await task("value", { x: ctx.id, took: 1 })')
    world.worker.narrator.complain = lambda what, id, detail: None
    for id in ("a", "bad", "b"):
        world.start(id=id)
    while "bad.1" not in world.worker.attempts.running:
        world.round()
    world.worker.attempts.stop("bad.1")
    assert [result_of(world.run(id)) for id in ("a", "b")] == ["a", "b"]
    assert (
        json.loads(world.inner.reading.get(["bad"])["bad"].error or "")["code"] == "InternalError"
    )


@pytest.mark.parametrize(
    "wait",
    ["await sleep(1)", 'await signal("go", { timeout: 1, default: null })',
        'await race([sleep(1), sleep(9)])',
             'try { await event("paid", { timeout: 1 }) } catch (e) { }'],
             ids=["sleep", "signal", "race", "event"],
)  # fmt: skip
def test_workflow_that_waits_in_a_loop_does_not_grow(make_world: MakeWorld, wait: str) -> None:
    world = make_world(f"for (i in range(20)) {{ {wait} }}")
    world.start()
    largest = 0
    while world.inner.reading.get(["run"])["run"].finished_at is None:
        world.round()
        timers = (
            rows(world.inner, "SELECT count(*) FROM timer_tasks")[0][0]
            + rows(world.inner, "SELECT count(*) FROM event_waits")[0][0]
        )
        largest = max(largest, timers)
    assert 0 < largest <= 4


def test_wait_that_was_begun_before_a_group_can_be_awaited_again_by_its_id(
    make_world: MakeWorld,
) -> None:
    flow = """
    workflow main {
      let late = signal("never", { timeout: 5, default: "late" })
      let first = await race({ late, long: sleep(9) })
      await sleep(1)
      let again = await late
      return [first.key, again]
    }
    """
    world = make_world(flow)
    world.start()
    assert result_of(world.run()) == ["late", "late"]
    assert world.clock.seconds < 8


# what people can see of a task


@BOTH
def test_failed_attempts_and_times_of_a_task_are_told(
    make_world: MakeWorld, owner_run: bool
) -> None:
    world = make_world(
        'return await task("flaky", { x: 7, fails: 2, took: 3 })',
        owner_run=owner_run,
        owner_run_limit_s=100.0,
    )
    world.start()
    assert result_of(world.run()) == 7
    (child,) = world.inner.reading.children("run")
    told = world.inner.reading.history(child.id)
    assert [(step.seq, step.cause) for step in told] == [
        (1, "attempt failed"),
        (2, "attempt failed"),
    ]
    assert all("not yet" in json.loads(step.error or "")["message"] for step in told)
    assert child.created_at <= EPOCH_US + 100_000, "it began with its first attempt"
    assert child.started_at
    assert child.finished_at
    assert child.finished_at - child.started_at >= 3_000_000


def test_task_that_lasts_began_when_it_began_and_not_when_it_got_its_row(
    make_world: MakeWorld,
) -> None:
    world = make_world('return await task("value", { x: 1, took: 20 })')
    world.start()
    world.run()
    (child,) = world.inner.reading.children("run")
    assert child.started_at
    assert child.finished_at
    assert (child.created_at - EPOCH_US, child.finished_at - child.started_at) == (0, 20_000_000)


@BOTH
def test_error_that_a_workflow_catches_has_no_lines_of_python(
    make_world: MakeWorld, owner_run: bool
) -> None:
    world = make_world(
        'try { await task("fail") } catch (e) { return keys(e) }', owner_run=owner_run
    )
    world.start()
    assert sorted(result_of(world.run())) == ["code", "data", "message"]
    (child,) = world.inner.reading.children("run")
    assert json.loads(child.error or "")["frames"][-1].endswith('raise ValueError("broken")')


# when there is no room, no answer, no handler


def test_worker_without_a_free_slot_still_takes_turns(make_world: MakeWorld) -> None:
    world = make_world('return await task("value", { x: 1, took: 1000 })', concurrency=1)
    world.start()
    rounds(world, 5)
    world.inner.executions.cancel(["run"])
    rounds(world, 5)
    assert world.inner.reading.get(["run"])["run"].status == "cancelled"


@BOTH
def test_paused_workflow_begins_nothing_although_its_tasks_end_one_by_one(
    make_world: MakeWorld, owner_run: bool
) -> None:
    flow = """
    await all([task("value", { x: 1, took: 3 }), task("value", { x: 2, took: 8 })])
    for (i in range(5)) { await task("value", { x: "later" }) }
    """
    world = make_world(flow, owner_run=owner_run, owner_run_limit_s=100.0)
    world.start()
    rounds(world, 1)
    world.inner.people.pause(["run"])
    world.worker.ownership.unsure = True  # the pause is seen while both run
    rounds(world, 60)
    assert (world.inner.reading.get(["run"])["run"].status, world.ran["value('later')"]) == (
        "paused",
        0,
    )
    world.inner.people.resume(["run"])
    assert world.run().status == "completed"
    assert (world.ran["value(1)"], world.ran["value(2)"], world.ran["value('later')"]) == (1, 1, 5)


def test_all_of_more_tasks_than_there_are_slots_keeps_the_limit(make_world: MakeWorld) -> None:
    world = make_world(
        'await all([task("value", { x: n, took: 1 }) for n in range(10)])', concurrency=3
    )
    world.start()
    most = 0
    while world.inner.reading.get(["run"])["run"].finished_at is None:
        world.round()
        most = max(most, len(world.worker.attempts.running))
    assert most == 3


def test_children_of_one_turn_ask_for_their_workflow_once(make_world: MakeWorld) -> None:
    flow = """
    workflow main { let all_of_them = await all([workflow("kid", n) for n in range(30)])\nreturn len(all_of_them) }
    workflow kid { return 1 }
    """
    world = make_world(flow)
    asked, find = list[str](), world.worker.turns.catalogue.programs
    world.worker.turns.catalogue.programs = lambda name, version: (
        asked.append(name) or find(name, version)
    )
    world.start()
    assert (result_of(world.run()), asked) == (30, ["kid"])


def test_workflow_keeps_its_slot_between_two_tasks_of_its_own(make_world: MakeWorld) -> None:
    world = make_world('for (n in range(4)) { await task("value", { x: n }) }', concurrency=2)
    for n in range(6):
        world.start(id=f"run{n}")
    queued = 0
    while world.inner.reading.get(["run5"])["run5"].finished_at is None:
        world.round()
        queued += rows(world.inner, "SELECT count(*) FROM ready WHERE kind = 1")[0][0]
    assert (queued, world.ran["value(3)"]) == (0, 6)


def test_workflows_that_never_end_do_not_keep_the_slots_from_others(make_world: MakeWorld) -> None:
    flow = """
    workflow endless { while (true) { await task("value", { x: "busy", took: 0.5 }) } }
    workflow main { return await task("value", { x: "short" }) }
    """
    world = make_world(flow, concurrency=2)
    for n in range(3):
        world.start("endless", id=f"endless{n}")
    world.start()
    rounds(world, 3 * world.settings.share_s)
    assert (world.inner.reading.get(["run"])["run"].status, world.ran["value('short')"]) == (
        "completed",
        1,
    )


def test_running_task_of_the_queue_hears_soon_that_it_was_cancelled(make_world: MakeWorld) -> None:
    world = make_world(
        'return await race([task("value", { x: 1, took: 1000 }), signal("never")])',
        claim_ttl_s=3000.0,
    )
    world.start()
    rounds(world, 2)
    world.inner.executions.cancel(["run.2"])
    began = world.clock.seconds
    while world.inner.reading.get(["run.2"])["run.2"].finished_at is None:
        world.round()
    assert world.clock.seconds - began < 10


def test_worker_that_looks_for_cancels_does_not_read_the_inputs_of_what_runs(
    make_world: MakeWorld,
) -> None:
    world = make_world(
        'return await race([task("value", { x: 1, took: 1000 }), signal("never")])',
        claim_ttl_s=3000.0,
    )
    world.start()
    rounds(world, 2)
    asked: set[str] = set()
    world.store.after = lambda name, answer: asked.add(name)
    rounds(world, 5)
    assert "cancelled" in asked
    assert "load" not in asked


def test_grace_for_a_missing_handler_begins_when_it_is_missed(make_world: MakeWorld) -> None:
    world = make_world(
        'try { await task("nobody", {}, { retries: 0 }) } catch (e) { return e.message }',
        missing_task_grace_s=60.0,
    )
    world.start()
    world.worker.slots.draining = True
    rounds(world, 1000)  # nobody looks
    world.worker.slots.draining = False
    rounds(world, 30)
    assert world.inner.reading.get(["run"])["run"].status == "suspended"
    assert "no worker has a handler" in result_of(world.run())


def test_grace_begins_anew_for_a_task_that_others_had_in_between(make_world: MakeWorld) -> None:
    world = make_world(
        'try { await task("nobody") } catch (e) { return e.message }', missing_task_grace_s=60.0
    )
    world.start()
    rounds(world, 10)
    world.worker.slots.draining = True
    rounds(world, 1000)
    world.worker.slots.draining = False
    rounds(world, 30)
    assert world.inner.reading.get(["run"])["run"].status == "suspended"
    assert "no worker has a handler" in result_of(world.run())


@pytest.mark.parametrize("refused", ["turn", "end"])
def test_item_that_the_database_refuses_fails_alone(make_world: MakeWorld, refused: str) -> None:
    world = make_world('return await task("value", { x: ctx.id })', owner_run=refused == "turn")
    commit = world.inner.turns.commit

    def picky(turns: Any, ends: Any) -> Any:
        if any(turn.id == "bad" and turn.done for turn in turns) or any(
            end.value == '"bad"' for end in ends
        ):
            raise ValueError("a text that is too long for an index")
        return commit(turns, ends)

    world.inner.turns.commit = picky  # type: ignore[method-assign]
    world.worker.narrator.complain = lambda what, id, detail: None
    for id in ("a", "bad", "b"):
        world.start(id=id)
    assert [result_of(world.run(id)) for id in ("a", "b")] == ["a", "b"]
    ended = world.inner.reading.get(["bad"])["bad"]
    assert (ended.status, "it cannot be stored: ValueError" in (ended.error or "")) == (
        "failed",
        True,
    )
