"""Schedules in a world where workers die and answers are lost: every slot is started once, by
whoever lives, on the database's clock."""

from __future__ import annotations

from typing import Any

import pytest

from rhythm.engine.schedules import Wanted, paused, put, resumed
from rhythm.store.interfaces.store import Store
from rhythm.worker.services import Scheduler, Services, ServiceSettings
from tests.engine.driver import EPOCH_US, World
from tests.support.length import sampled, sweep
from tests.support.stores import KINDS, MakeStore, rows, sqlite_in_memory

FLOW = (
    'workflow main(inputs) {\n  let x = await task("value", { x: inputs.x, took: inputs.took '
    "})\n  return x\n}\n"
)
MINUTE = 60_000_000
SLOTS = 3
# so many calls are let pass for one that is interrupted; each mode has others
EVERY = {"sqlite": sampled(23, 3), "postgres": sampled(83, 11)}
MODES = ["before", "after", "lost"]


def world(
    make_store: MakeStore, took: float = 1.0, fail_at: int = 0, mode: str = "", **wanted: Any
) -> World:
    made = World(FLOW, fail_at, mode, make_store)
    asked = Wanted("main", every_us=MINUTE, inputs=f'{{"x": 1, "took": {took}}}').replace(**wanted)
    made.inner.schedules.change("s", lambda before, now: put(before, "s", asked, now))
    return made


def live(world: World, until_s: float, last: bool = True) -> None:
    """Until then, and until all that was started by then has ended; after the last time nothing
    more is started."""
    while world.clock.seconds < until_s:
        world.round()
    if last:
        world.inner.schedules.change("s", lambda found, now: found and paused(found, now, "", ""))
    while not world._quiet():
        world.round()


def fates(store: Store) -> list[tuple[int, str]]:
    return [
        ((fire.slot_at - EPOCH_US) // MINUTE, fire.outcome)
        for fire in reversed(store.schedules.fires("s", 100))
    ]


def names(store: Store) -> list[str]:
    return sorted(
        str(row[0]) for row in rows(store, "SELECT key FROM executions WHERE parent_id IS NULL")
    )


CALLS: dict[str, int] = {}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
@sweep
def test_whatever_call_is_interrupted_every_slot_has_one_execution_that_completes(
    kind: str, mode: str, request: pytest.FixtureRequest
) -> None:
    """Killed before a call or after it, or without its answer: between the row of a slot and its
    start there is nothing."""
    make_store = (
        sqlite_in_memory if kind == "sqlite" else request.getfixturevalue("schemas").empty_store
    )
    until_s = SLOTS * 60 + 5
    if kind not in CALLS:
        calm = world(make_store)
        live(calm, until_s)
        CALLS[kind] = calm.store.calls
    for fail_at in range(1 + MODES.index(mode), CALLS[kind] + 1, EVERY[kind]):
        stormy = world(make_store, fail_at=fail_at, mode=mode)
        live(stormy, until_s)
        assert fates(stormy.inner) == [(n, "started") for n in range(1, SLOTS + 1)], fail_at
        started = rows(
            stormy.inner, "SELECT status, started_by FROM executions WHERE parent_id IS NULL"
        )
        assert started == [(5, "schedule:s")] * SLOTS, fail_at
        stormy.doctor()


def test_several_processes_start_every_slot_once(make_store: MakeStore) -> None:
    calm = world(make_store)
    others = [
        Services(
            calm.inner,
            ServiceSettings(),
            calm.clock.now,
            calm.clock.us,
            calm.program,
            calm.observe,
            holder=f"other-{n}",
        )
        for n in range(3)
    ]
    while calm.clock.seconds < SLOTS * 60 + 5:
        for each in others:
            each.run()
        calm.round()
    assert fates(calm.inner) == [(n, "started") for n in range(1, SLOTS + 1)]
    assert len(names(calm.inner)) == len(set(names(calm.inner))) == SLOTS


def test_a_slot_is_started_in_time_without_looking_all_the_time(make_store: MakeStore) -> None:
    calm = world(make_store)
    scheduler = Scheduler(calm.inner, ServiceSettings(), calm.program, calm.clock.us, calm.observe)
    looks = 0
    while calm.clock.seconds < 600:
        counts = scheduler.run_once(calm.clock.now())
        calm.clock.seconds += max(scheduler.rest_s(counts), 0.001)
        looks += 1
        for (id,) in rows(calm.inner, "SELECT id FROM executions WHERE finished_at IS NULL"):
            calm.inner.executions.cancel([id])
            rows(calm.inner, "UPDATE executions SET status = 7, finished_at = created_at")
    late = {fire.at - fire.slot_at for fire in calm.inner.schedules.fires("s", 100)}
    assert max(late) <= 2_000
    assert looks <= 25


def test_a_schedule_that_another_process_has_made_is_heard_of_with_the_look_of_the_rescuer(
    make_store: MakeStore,
) -> None:
    calm = World(FLOW, make_store=make_store)
    services = Services(
        calm.inner, ServiceSettings(), calm.clock.now, calm.clock.us, calm.program, calm.observe
    )
    services.run()
    wanted = Wanted("main", every_us=20 * 1_000_000, inputs='{"x": 1, "took": 0}')
    calm.inner.schedules.change("s", lambda before, now: put(before, "s", wanted, now))
    while not calm.inner.schedules.fires("s", 1):
        calm.clock.seconds += max(services.run(busy=False)[1], 0.001)
        assert calm.clock.seconds < 30
    (fire,) = calm.inner.schedules.fires("s", 9)
    assert fire.at - fire.slot_at < 10_000


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("skip", [(1, "started"), (2, "skipped"), (3, "started"), (4, "skipped"), (5, "started")]),
        ("queue", [(1, "started"), (2, "started"), (3, "started")]),
        ("allow", [(n, "started") for n in range(1, 6)]),
    ],
)
def test_an_execution_that_lasts_longer_than_a_slot(
    make_store: MakeStore, overlap: str, expected: list[Any]
) -> None:
    slow = world(make_store, took=90.0, overlap=overlap)
    live(slow, 5 * 60 + 10)
    assert fates(slow.inner)[: len(expected)] == expected


def test_the_one_before_is_cancelled_where_that_is_wanted(make_store: MakeStore) -> None:
    slow = world(make_store, took=90.0, overlap="cancel_other")
    live(slow, 3 * 60 + 10)
    ended = rows(
        slow.inner, "SELECT status FROM executions WHERE parent_id IS NULL ORDER BY created_at"
    )
    assert [status for (status,) in ended] == [7, 7, 5]
    slow.doctor()


def test_a_clock_that_is_set_forward_and_back_starts_no_slot_twice(make_store: MakeStore) -> None:
    """What was due in between is missed once; after a resume the schedule goes on with the time as
    it is."""
    calm = world(make_store)
    live(calm, 65, last=False)
    calm.clock.seconds += 86_400
    live(calm, calm.clock.seconds + 5, last=False)
    before = fates(calm.inner)
    calm.clock.seconds -= 86_400
    live(calm, calm.clock.seconds + 300, last=False)
    assert fates(calm.inner) == before
    calm.inner.schedules.change(
        "s", lambda found, now: found and resumed(paused(found, now, "", ""), now)
    )
    live(calm, calm.clock.seconds + 130, last=False)
    assert len(set(fates(calm.inner))) == len(fates(calm.inner)) > len(before)
    assert len(names(calm.inner)) == len(set(names(calm.inner)))
