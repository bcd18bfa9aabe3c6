"""Workers among others: what one may do while it lives, and must not when it may be dead to the
others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from rhythm.errors import StoreError
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.workers import Beat, Declaration, OwnClaims
from rhythm.store.lifecycle import TASK
from rhythm.worker.heartbeat import Heartbeat
from rhythm.worker.services import Rescuer, Services, ServiceSettings
from tests.engine.driver import World
from tests.engine.test_laws import BOTH, MakeWorld, result_of, rounds
from tests.support.stores import MakeStore, ready_rows, rows


@pytest.fixture
def make_world(make_store: MakeStore) -> MakeWorld:
    return partial(World, make_store=make_store)


OTHER = Beat("other", "host", 1, ("default",), 10, 0, draining=False, version="")


class CutOff:
    """The way of the heartbeats to the database, cut."""

    @property
    def workers(self) -> CutOff:
        return self

    def beat(self, beat: Beat, claims: Mapping[str, int], ttl_s: float) -> OwnClaims:
        raise StoreError("cut off")


def cut_off(world: World) -> None:
    store: Any = CutOff()
    world.worker.heart.store = store


class Locked:
    """The way of the heartbeats to a database in which somebody has locked everything that is to be
    prolonged."""

    def __init__(self, world: World) -> None:
        self.inner, self.workers = world.inner, self

    def beat(self, beat: Beat, claims: Mapping[str, int], ttl_s: float) -> OwnClaims:
        mine = self.inner.workers.beat(beat, {}, ttl_s)
        return OwnClaims(((id, *has) for id, has in mine.items()), claims)


def until_a_body_runs(world: World) -> None:
    while not world.handlers.agenda:
        world.round()


@pytest.mark.parametrize("call", ["beat", "claim", "load", "commit"])
@BOTH
def test_body_does_not_begin_when_its_worker_may_be_dead_to_the_others(
    make_world: MakeWorld, owner_run: bool, call: str
) -> None:
    """Its claims would last: it is the beat that is missed. `World` looks at every body that
    begins."""
    flow = (
        'let a = await task("value", { x: 1 })\nawait signal("go", { timeout: 0, default: 0 })\n'
        'let b = await task("value", { x: 2 })\nreturn [a, b]'
    )
    world = make_world(flow, owner_run=owner_run, claim_ttl_s=3000.0)
    stalls: list[str] = []

    def stall(name: str, answer: Any) -> None:
        if name == call and (answer or call == "beat") and len(stalls) < 4:
            stalls.append(name)
            world.clock.seconds += 31.0

    world.store.after = stall
    world.start()
    assert result_of(world.run()) == [1, 2]
    assert stalls or (call == "load" and not owner_run)  # its rows come with its claims


@BOTH
def test_whoever_runs_a_body_can_ask_whether_it_may_still_begin(
    make_world: MakeWorld, owner_run: bool
) -> None:
    """Threads may be held up before they begin it."""
    world = make_world(
        'return await task("value", { x: 1, took: 100 })',
        owner_run=owner_run,
        claim_ttl_s=3000.0,
        owner_run_limit_s=1e6,
    )
    world.start()
    until_a_body_runs(world)
    [body] = world.worker.attempts.running.values()
    assert body.current.may_begin()
    world.clock.seconds += 31.0
    assert not body.current.may_begin()


@BOTH
def test_worker_without_heartbeats_stops_what_it_runs_before_it_is_dead_to_the_others(
    make_world: MakeWorld, owner_run: bool
) -> None:
    world = make_world(
        'return await task("value", { x: 1, took: 100 })',
        owner_run=owner_run,
        claim_ttl_s=3000.0,
        owner_run_limit_s=1e6,
    )
    world.start()
    until_a_body_runs(world)
    cut_off(world)
    began = world.clock.seconds
    rounds(world, world.settings.dead_after_s - 5)
    assert world.handlers.agenda
    world.clock.seconds = began + world.settings.dead_after_s - 0.5
    world.worker.run_round()
    assert (
        world.handlers.agenda,
        world.worker.ownership.workflows,
        world.worker.ownership.tasks,
    ) == ([], {}, {})


def test_claim_that_a_beat_could_not_prolong_keeps_its_deadline(make_world: MakeWorld) -> None:
    world = make_world('return await task("value", { x: 1, took: 100 })', owner_run_limit_s=1e6)
    world.start()
    until_a_body_runs(world)
    [held] = world.worker.ownership.workflows.values()
    store: Any = Locked(world)
    world.worker.heart.store, before = store, held.deadline
    rounds(world, 20)
    assert (world.worker.ownership.workflows, held.deadline) == ({"run": held}, before)
    world.worker.heart.store = world.inner
    rounds(world, 6)
    assert held.deadline > before


def test_worker_without_heartbeats_claims_nothing(make_world: MakeWorld) -> None:
    world = make_world('return await task("value", { x: 1 })')
    rounds(world, 1)
    cut_off(world)
    rounds(world, world.settings.dead_after_s)
    world.start()
    rounds(world, 10)
    assert [state for _, state, _ in ready_rows(world.inner)] == [0]


@BOTH
def test_worker_whose_heartbeats_are_heard_again_goes_on(
    make_world: MakeWorld, owner_run: bool
) -> None:
    world = make_world(
        'return await task("value", { x: 1, took: 50 })', owner_run=owner_run, claim_ttl_s=3000.0
    )
    world.start()
    until_a_body_runs(world)
    cut_off(world)
    rounds(world, 40)
    world.worker.heart.store = world.store
    assert (result_of(world.run()), world.ran["value(1)"]) == (1, 1)


def test_claim_that_its_worker_knows_nothing_of_is_given_back(make_world: MakeWorld) -> None:
    world = make_world('return await task("value", { x: 1 })', claim_ttl_s=3000.0)
    rounds(world, 1)
    world.start()
    assert [
        claim.id for claim in world.inner.claims.claim(world.worker.name, ["default"], 10, 3000.0)
    ] == ["run"]
    assert result_of(world.run()) == 1
    assert world.clock.seconds < 4 * world.settings.beat_s


def test_what_a_beat_says_is_lost_is_dropped_and_what_came_after_the_beat_is_not(
    make_world: MakeWorld,
) -> None:
    """The worker takes the answer to a beat when it gets to it: meanwhile it may have claimed
    more."""
    world = make_world('return await task("value", { x: 1, took: 3 })', owner_run=False)
    world.start()
    until_a_body_runs(world)
    heart, before = world.worker.heart, dict(world.worker.ownership.tasks)
    heart.apart = True
    world.clock.seconds += 5
    heart.run_once()
    world.start(id="second")
    world.worker.ownership.tasks["second.1"] = world.worker.ownership.tasks["run.1"].replace(
        id="second.1", fence=10**6
    )
    world.worker.liveness.catch_up()
    assert world.worker.ownership.tasks.keys() == {*before, "second.1"}


@BOTH
def test_worker_that_was_silent_for_too_long_loses_its_work_to_the_others(
    make_world: MakeWorld, owner_run: bool
) -> None:
    world = make_world(
        'return await task("value", { x: 1, took: 20 })', owner_run=owner_run, claim_ttl_s=3000.0
    )
    world.start()
    until_a_body_runs(world)
    world._boot()  # the process is gone, another one comes
    assert result_of(world.run()) == 1
    assert world.clock.seconds < world.settings.dead_after_s + 40


def test_nobody_is_taken_for_dead_while_the_rescuer_itself_has_not_been_heard_for_long(
    make_world: MakeWorld,
) -> None:
    world = make_world('return await task("value", { x: 1, took: 20 })', claim_ttl_s=3000.0)
    world.start()
    until_a_body_runs(world)
    world.clock.seconds += 100.0
    other = Heartbeat(
        lambda: world.inner, lambda: OTHER, dict, world.settings.heart, world.clock.now
    )
    rescuer = Rescuer(world.inner, ServiceSettings(), other)
    for _ in range(6):
        other.run_once()
        rescuer.run_once(0.0)
        assert [state for _, state, _ in ready_rows(world.inner)] == [1]
        world.clock.seconds += 5.0
    other.run_once()
    rescuer.run_once(0.0)
    assert [state for _, state, _ in ready_rows(world.inner)] == [0]


def test_worker_does_not_rob_itself_after_an_outage_longer_than_its_claims(
    make_world: MakeWorld,
) -> None:
    world = make_world(
        'return await task("value", { x: 1, took: 20 })', claim_ttl_s=15.0, dead_after_s=1000.0
    )
    world.services = Services(
        world.store,
        ServiceSettings(),
        world.clock.now,
        world.clock.us,
        world.program,
        world.observe,
        heart=world.worker.heart,
    )
    world.start()
    until_a_body_runs(world)
    world.clock.seconds += 18.0  # the database was away
    world.services.run()
    assert result_of(world.run()) == 1
    assert (
        world.ran["value(1)"],
        rows(world.inner, "SELECT attempt FROM executions WHERE id = 'run.1'"),
    ) == (1, [(1,)])


# sharing


def test_chain_of_owned_tasks_stops_when_their_queue_is_paused(make_world: MakeWorld) -> None:
    world = make_world('for (i in range(50)) { await task("value", { x: i, took: 0.1 }) }')
    world.start()
    while world.ran.total() < 3:
        world.round()
    world.inner.workers.pause_queue("default", True)
    rounds(world, 30)
    assert world.ran.total() < 3 + 20
    world.inner.workers.pause_queue("default", False)
    assert (world.run().status, world.ran.total()) == ("completed", 50)


def test_task_goes_to_the_queue_that_others_have_declared(make_world: MakeWorld) -> None:
    world = make_world('return await task("elsewhere", { x: 1 })')
    world.declared["elsewhere"] = Declaration(
        "elsewhere", "far", 4, None, "null", transactional=False
    )
    world.start()
    rounds(world, 5)
    assert rows(world.inner, "SELECT queue, max_attempts FROM executions WHERE id = 'run.1'") == [
        ("far", 5)
    ]
    assert rows(world.inner, "SELECT queue, state FROM ready WHERE id = 'run.1'") == [("far", 0)]


def test_turn_is_committed_before_a_task_begins_that_was_there_when_workers_died(
    make_world: MakeWorld,
) -> None:
    """So a workflow that is claimed together with what kills its workers goes on all the same, and
    is not blamed for their deaths."""
    world = make_world("await sleep(1)\nreturn 1", crash_limit=3)
    world.inner.executions.start([NewExecution("t", TASK, "value", "default", "{}")])
    world.start()
    world.inner.claims.claim("dead", ["default"], 10, 1.0)
    world.clock.seconds += 2.0
    assert len(world.inner.maintenance.rescue(10, 3)) == 2
    turns: list[int] = []
    world.handlers.begins = lambda id, inputs: turns.append(len(world.inner.reading.history("run")))
    rounds(world, 1)
    assert turns == [1]


@pytest.mark.parametrize("max_attempts", [1, 11])
def test_those_that_were_there_when_workers_died_have_their_last_chance_one_by_one(
    make_world: MakeWorld, max_attempts: int
) -> None:
    world = make_world("return 1", crash_limit=3)
    inputs = [f'{{"x": {n}, "took": 2}}' for n in range(3)]
    world.inner.executions.start(
        [
            NewExecution(f"t{n}", TASK, "value", "default", inputs[n], max_attempts=max_attempts)
            for n in range(3)
        ]
    )
    for n in range(2):
        claims = world.inner.claims.claim(f"dead{n}", ["default"], 10, 1.0)
        assert len(claims) == 3
        world.clock.seconds += 2.0
        assert len(world.inner.maintenance.rescue(10, 3)) == 3
    most = 0
    while world.ran.total() < 3:
        world.round()
        most = max(most, len(world.worker.attempts.running))
    assert most == 1
    rounds(world, 1)
    assert {
        execution.status for execution in world.inner.reading.get(["t0", "t1", "t2"]).values()
    } == {"completed"}


def test_nothing_else_begins_beside_a_last_chance_for_a_while(make_world: MakeWorld) -> None:
    """A task that is new here might be what kills workers, and the suspect would be blamed for
    it."""
    world = make_world('return await task("value", { x: 1 })', crash_limit=3, alone_s=10.0)
    world.inner.executions.start([NewExecution("t", TASK, "value", "default", '{"took": 30}')])
    for n in range(2):
        world.inner.claims.claim(f"dead{n}", ["default"], 10, 1.0)
        world.clock.seconds += 2.0
        world.inner.maintenance.rescue(10, 3)
    until_a_body_runs(world)
    world.inner.executions.start([NewExecution("new", TASK, "value", "default", '{"x": 2}')])
    world.start()
    rounds(world, 9)
    assert world.ran.total() == 0
    rounds(world, 5)
    assert (world.ran["value(1)"], world.ran["value(2)"]) == (1, 1)


def test_newcomer_waits_for_its_turn_among_many_that_never_end_and_no_longer(
    make_world: MakeWorld,
) -> None:
    flow = """
    workflow endless { while (true) { await task("value", { x: "busy", took: 0.5 }) } }
    workflow main { return await task("value", { x: "short" }) }
    """
    world = make_world(flow, concurrency=4)
    for n in range(24):
        world.start("endless", id=f"endless{n:02}")
    rounds(world, 1)
    world.start()
    rounds(world, 2 * 24 / 4 * (world.settings.share_s + 1))
    assert (world.inner.reading.get(["run"])["run"].status, world.ran["value('short')"]) == (
        "completed",
        1,
    )
    turns = [len(world.inner.reading.history(f"endless{n:02}")) for n in range(24)]
    assert min(turns) > 1, "all have had a turn"


# one that is broken


@pytest.mark.parametrize(
    ("column", "value"), [("inputs", "{"), ("options", "{"), ("options", '{"retries": "3"}')]
)
def test_task_whose_row_cannot_be_read_fails_alone(
    make_world: MakeWorld, column: str, value: str
) -> None:
    world = make_world("return 1")
    world.inner.executions.start(
        [NewExecution(id, TASK, "fail", "default") for id in ("good", "broken")]
    )
    rows(world.inner, f"UPDATE executions SET {column} = ? WHERE id = 'broken'", [value])
    rounds(world, 5)
    found = world.inner.reading.get(["good", "broken"])
    assert {id: json.loads(row.error or "{}")["code"] for id, row in found.items()} == {
        "good": "TaskFailed",
        "broken": "InternalError",
    }
    assert (world.worker.idle, len(world.bugs)) == (True, 1)


def test_what_has_ended_when_the_worker_stops_is_committed(make_world: MakeWorld) -> None:
    world = make_world('return await task("value", { x: 1, took: 1 })', owner_run=False)
    world.start()
    until_a_body_runs(world)
    world.clock.seconds += 1.0
    world.handlers.run_due()
    world.worker.dispatcher.take_ends(world.worker.attempts.ended())
    world.worker.stop()
    world._boot()
    assert (result_of(world.run()), world.ran["value(1)"]) == (1, 1)
