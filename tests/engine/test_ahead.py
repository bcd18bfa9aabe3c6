"""A quick task of a first turn begins before the turn is committed, and is committed with the turn
after it. Whatever happens in between, it ends as if each had been committed by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from rhythm.errors import StoreError
from rhythm.limits import DEFAULT_LIMITS
from rhythm.store.interfaces.executions import Execution
from rhythm.worker.handlers import Task
from tests.engine.driver import EPOCH_US, Crashed, World
from tests.support.full_way import short_ways
from tests.support.length import sampled, sweep
from tests.support.stores import MakeStore, rob, rows

pytestmark = short_ways

MakeWorld = Callable[..., World]
MODES = pytest.mark.parametrize("mode", ["before", "after", "lost"])

ONE = 'workflow main { return await task("value", { x: 1 }) }'
# What may follow a first task: an end, another task, its own failure, a wait, children, a failure.
CASES: dict[str, tuple[str, Any]] = {
    "an end": (ONE, 1),
    "another task": (
        """workflow main { let a = await task("value", { x: 1 })
        let b = await task("value", { x: 2 })\nreturn [a, b] }""",
        [1, 2],
    ),
    "another attempt": ('workflow main { return await task("flaky", { x: 5, fails: 2 }) }', 5),
    "a failure": (
        'workflow main { try { await task("fail") } catch (e) { return e.message } }',
        "task `fail` failed: ValueError: broken",
    ),
    "a wait": (
        """workflow main { let a = await task("value", { x: 1 })\nawait sleep(3)
        let b = await task("value", { x: 2 })\nreturn [a, b] }""",
        [1, 2],
    ),
    "children": (
        """workflow main { let a = await task("value", { x: 1 })
        return await all([workflow("child", { x: a + 1 }), task("value", { x: 7 })]) }
        workflow child(inputs) { let x = await task("value", { x: inputs.x })\nreturn x * 2 }""",
        [4, 7],
    ),
    "a task that lasts": (
        """workflow main { let a = await task("value", { x: 1, took: 3 })
        let b = await task("value", { x: 2 })\nreturn [a, b] }""",
        [1, 2],
    ),
    "a group": (
        """workflow main { let a = await all([task("value", { x: 1 }), task("value", { x: 2 })])
        return a }""",
        [1, 2],
    ),
}
EACH = pytest.mark.parametrize("case", CASES)


@pytest.fixture
def make_world(make_store: MakeStore) -> MakeWorld:
    return partial(World, make_store=make_store, quick=True)


def result_of(execution: Execution) -> Any:
    assert execution.status == "completed", execution.error
    return json.loads(execution.result or "null")


def turns_of(world: World) -> list[tuple[int, str]]:
    """The turns that were committed: their numbers and causes."""
    found = rows(
        world.inner, "SELECT seq, cause FROM history WHERE execution_id = 'run' ORDER BY seq"
    )
    return [(seq, cause) for seq, cause in found]


def ran(world: World, case: str) -> World:
    world.start()
    assert result_of(world.run()) == CASES[case][1]
    return world


def counted(world: World) -> list[str]:
    """As long as the number of commits."""
    commits: list[str] = []
    world.store.after = lambda name, answer: commits.append(name) if name == "commit" else None
    return commits


@EACH
def test_the_result_is_that_of_turns_that_are_committed_one_by_one(
    make_world: MakeWorld, case: str
) -> None:
    world, text = make_world(CASES[case][0]), CASES[case][0]
    commits = counted(world)
    ran(world, case)
    turns, bodies = turns_of(world), world.ran
    plain = make_world(text, quick=False)
    commits_one_by_one = counted(plain)
    ran(plain, case)
    assert (turns, bodies) == (turns_of(plain), plain.ran)
    if case in ("an end", "another task"):
        assert len(commits_one_by_one) - len(commits) == 1


@EACH
@MODES
@sweep
def test_interrupted_at_any_store_call_it_ends_as_if_it_had_not_been(
    make_world: MakeWorld, case: str, mode: str
) -> None:
    text = CASES[case][0]
    calls = ran(make_world(text), case).store.calls
    for n in range(1, calls + 1, sampled(3, 1)):
        world = ran(make_world(text, n, mode), case)
        again = {
            body for body, times in world.ran.items() if times > 1 and body.startswith("value")
        }
        assert mode != "lost" or not again, (
            f"call {n}: bodies ran again though nobody died: {again}"
        )


def test_a_workflow_of_one_quick_task_is_one_commit_of_two_turns(make_world: MakeWorld) -> None:
    """The first is as old as it is: the workflow began when its task did."""
    world = make_world(ONE)
    commits = counted(world)
    world.start()
    world.worker.run_round()
    assert world.handlers.run_due()
    world.clock.seconds += 0.007
    assert result_of(world.run()) == 1
    assert len(commits) == 1
    assert turns_of(world) == [(1, "turn"), (2, "completed")]
    [execution] = world.inner.reading.get(["run"]).values()
    assert execution.finished_at == EPOCH_US + 7000
    assert execution.started_at == EPOCH_US
    times = [turn.at for turn in world.inner.reading.history("run")]
    assert times == [EPOCH_US, EPOCH_US + 7000]
    [task] = world.inner.reading.children("run")
    assert (task.status, task.attempt, task.result) == ("completed", 1, "1")


def test_a_task_that_is_not_quick_after_all_is_committed_while_it_runs(
    make_world: MakeWorld,
) -> None:
    """So people see where the workflow is, and after a second the task itself."""
    world = make_world('workflow main { return await task("value", { x: 1, took: 9 }) }')
    world.start()
    for _ in range(3):
        world.worker.run_round()
    assert turns_of(world) == [(1, "turn")]
    assert world.inner.reading.children("run") == []
    world.clock.seconds = 2.0
    world.worker.run_round()
    assert [child.status for child in world.inner.reading.children("run")] == ["running"]
    assert result_of(world.run()) == 1
    assert world.ran == {"value(1)": 1}


@pytest.mark.parametrize("draws", ["uuid()", "now()", "random()"])
@sweep
def test_a_turn_that_has_drawn_is_committed_before_its_task_begins(
    make_world: MakeWorld, draws: str
) -> None:
    """Else another owner would give the task other inputs under the same id."""
    flow = f"""workflow main {{ let drawn = {draws}
    return await task("value", {{ x: drawn }}) }}"""
    again = 0
    for n in range(1, 12):
        world = make_world(flow, n, "before")
        world.start()
        assert world.run().status == "completed"
        assert len({inputs["x"] for inputs in world.given}) == 1, f"call {n}: {world.given}"
        again += len(world.given) > 1
    assert again, "some died after the body had begun"


def test_only_the_first_task_begins_before_anything_is_committed(make_world: MakeWorld) -> None:
    """What a later one is given follows from results, which must be stored before it begins."""
    world = make_world(
        """workflow main { let a = await task("value", { x: 1 })
        let b = await task("value", { x: a + 1 })
        let c = await task("value", { x: b + 1 })\nreturn c }"""
    )
    world.start()
    stored: list[int] = []
    world.handlers.begins = lambda id, inputs: stored.append(
        len(world.inner.reading.children("run"))
    )
    assert result_of(world.run()) == 3
    assert stored == [0, 1, 2]


def test_a_task_that_kills_its_workers_kills_no_more_than_any_other(make_world: MakeWorld) -> None:
    """The first death counts, too, though nothing was committed before it."""

    def poison() -> None:
        world.ran["poison()"] += 1
        raise Crashed

    world = make_world(
        'workflow main { try { await task("poison") } catch (e) { return e.message } }'
    )
    world.tasks["poison"] = Task(poison, "poison", "default", 9, None, None)
    world.start()
    assert "its worker died 5 times" in result_of(world.run())
    assert world.ran["poison()"] == world.settings.crash_limit


FIRST_COMMITTED = {
    "another task": 'let s = task("value", { x: 9 })\nreturn await task("value", { x: 1 })',
    "an event": 'publish("hello", 1)\nreturn await task("value", { x: 1 })',
    "finally": 'try { return await task("value", { x: 1 }) } finally { await task("value", {}) }',
    "ctx": 'return await task("value", { x: ctx.resume_data ?? 1 })',
}


@pytest.mark.parametrize("why", FIRST_COMMITTED)
def test_a_turn_that_is_not_alone_or_may_not_repeat_itself_is_committed_first(
    make_world: MakeWorld, why: str
) -> None:
    """Others act on what it asks beside its task; or a cancel, or the data of a resume, that comes
    after a death could lead it elsewhere: past `finally`, or to another task under the same id."""
    world = make_world(f"workflow main(ctx, inputs) {{ {FIRST_COMMITTED[why]} }}")
    world.start()
    committed: list[int] = []
    world.handlers.begins = lambda id, inputs: committed.append(len(turns_of(world)))
    assert result_of(world.run()) == 1
    assert committed
    assert 0 not in committed


def test_what_is_undone_after_a_death_and_a_timeout_is_undone(make_world: MakeWorld) -> None:
    def charge() -> None:
        world.ran["charge"] += 1
        raise Crashed

    world = make_world(
        """@timeout("20s") workflow main {
        let x = 1
        try { await task("charge") } finally { await task("value", { x: "refund" }) } }"""
    )
    world.tasks["charge"] = Task(charge, "charge", "default", 0, None, None)
    world.start()
    assert world.run().status == "failed"
    assert world.ran == {"charge": 1, "value('refund')": 1}


def test_a_death_is_counted_only_for_a_task_that_may_have_begun(make_world: MakeWorld) -> None:
    """A worker that dies after its claim has begun none of several tasks."""
    world = make_world(
        """workflow main {
        return await all([task("once", { x: i }) for i in range(3)]) }"""
    )
    flaky = world.tasks["flaky"].function
    once = Task(lambda x: flaky(x, 1), "once", "default", 1, None, None)
    world.tasks["once"] = once

    def dies(name: str, answer: Any) -> None:
        if name == "claim" and answer and world.generation == 1:
            raise Crashed

    world.store.after = dies
    world.start()
    assert result_of(world.run()) == [0, 1, 2]


def test_a_task_that_has_begun_takes_one_slot(make_world: MakeWorld) -> None:
    world = make_world(
        'workflow main(inputs) { return await task("value", { x: inputs.x, took: 5 }) }',
        concurrency=2,
        check_interval_s=1e6,
        owner_run_limit_s=1e6,
    )
    world.start(inputs={"x": "a"}, id="a")
    world.worker.run_round()
    world.start(inputs={"x": "b"}, id="b")
    for _ in range(6):
        world.worker.run_round()
    assert rows(world.inner, "SELECT id FROM executions WHERE type = 1") == []
    assert result_of(world.run("a")) == "a"
    assert result_of(world.run("b")) == "b"


def test_what_was_committed_before_a_bug_is_not_sent_again(make_world: MakeWorld) -> None:
    world = make_world(CASES["another task"][0])
    turns, failed = world.worker.turns, list[str]()
    follow = turns.follow

    def fails(workflow: Any, answer: Any, turn: Any) -> None:
        if not failed:
            failed.append(workflow.id)
            raise RuntimeError("a bug")
        follow(workflow, answer, turn)

    turns.follow = fails  # type: ignore[method-assign]  # as if it had a bug
    for id in ("a", "b"):
        world.start(id=id)
    world.round()
    while not world.worker.idle and world.clock.seconds < world.settings.beat_s:
        world.round()
    assert failed
    ends = rows(world.inner, "SELECT count(*) FROM executions WHERE type = 0 AND status = 5")
    assert ends == [(2,)], "it is still the owner, and goes on"


def test_a_cancel_that_comes_meanwhile_beats_the_result(make_world: MakeWorld) -> None:
    world = make_world(ONE)
    world.start()
    world.worker.run_round()
    assert world.handlers.run_due(), "the task has run, and nothing is committed"
    assert turns_of(world) == []
    world.inner.executions.cancel(["run"])
    assert world.run().status == "cancelled"
    assert world.ran == {"value(1)": 1}


def test_a_signal_that_comes_meanwhile_is_found(make_world: MakeWorld) -> None:
    world = make_world(
        """workflow main { let a = await task("value", { x: 1, took: 0.5 })
        let b = await signal("go")\nreturn [a, b] }"""
    )
    world.start()
    world.signal(0.2, "go", 7)
    assert result_of(world.run()) == [1, 7]
    assert world.ran == {"value(1)": 1}


@pytest.mark.parametrize("took", [0, 0.5])
def test_what_is_heard_meanwhile_is_read_after_the_commit(
    make_world: MakeWorld, took: float
) -> None:
    """What the database has is older than what the worker knows."""
    world = make_world(f'workflow main {{ return await task("value", {{ x: 1, took: {took} }}) }}')
    world.start()
    world.worker.run_round()
    world.handlers.run_due()
    [workflow] = world.worker.ownership.workflows.values()
    workflow.stale = True
    assert result_of(world.run()) == 1
    assert world.ran == {"value(1)": 1}


def test_a_worker_that_lost_its_claim_meanwhile_commits_nothing(make_world: MakeWorld) -> None:
    world = make_world(ONE)
    world.start()
    world.worker.run_round()
    assert world.handlers.run_due()
    assert rob(world.inner, world.worker.name) == ["run"]
    [taken] = world.inner.claims.claim("another", ["default"], 1, 30.0)
    world.worker.run_round()
    assert turns_of(world) == []
    assert world.worker.idle, "what it did is forgotten"
    world.inner.claims.release({taken.id: taken.fence})
    assert result_of(world.run()) == 1


def test_a_turn_that_would_start_too_much_keeps_what_has_ended(make_world: MakeWorld) -> None:
    """The turn is taken again from the state that was never committed: it is stored with it."""
    world = make_world(
        """workflow main { let a = await task("value", { x: 1 })
        try { await all([workflow("kid") for i in range(5)]) } finally {
          let b = await task("value", { x: [a] })
        } }
        workflow kid { return 1 }"""
    )
    world.inner.limits = DEFAULT_LIMITS.replace(children=3)
    world.start()
    ended = world.run()
    assert json.loads(ended.error or "{}")["code"] == "LimitExceeded"
    assert world.ran == {"value(1)": 1, "value([1])": 1}


def test_the_first_turn_is_not_lost_when_nobody_knows_of_the_commit(make_world: MakeWorld) -> None:
    """The worker gives up asking, and loads the workflow anew: what the database has, counts."""
    world = make_world(CASES["another task"][0])
    world.worker.committer.gives_up = lambda waited_s: True
    refused: list[str] = []

    def lose(name: str, answer: Any) -> None:
        if name == "commit" and not refused:
            refused.append(name)
            raise StoreError("no answer from commit")

    world.store.after = lose
    world.start()
    assert result_of(world.run()) == [1, 2]
    assert refused
    assert world.clock.seconds < world.settings.beat_s, "it is still the owner, and goes on"
