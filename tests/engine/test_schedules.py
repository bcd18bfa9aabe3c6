"""What becomes of the slots of a schedule: every slot once, whatever was missed, whoever still
runs."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rhythm.engine.schedules import (
    LATE_US,
    MOST_SLOTS,
    Wanted,
    check_wanted,
    fire,
    paused,
    put,
    registered,
    resumed,
    run_now,
)
from rhythm.ir.program import Program
from rhythm.schedule_times import US, slots
from rhythm.store.access import Actor
from rhythm.store.schedules import Due, Firing, Schedule

NOW = 1_800_000_000_000_000
MINUTE = 60 * US
NIGHTLY = Wanted("report", cron="30 2 * * *", tz="Europe/Berlin")


def program(**options: Any) -> Program:
    return Program.__new__(Program).replace(name="report", version="v1", options=options)


def schedule(
    overlap: str = "skip", catch_up: int = 1, every_us: int = MINUTE, **changes: Any
) -> Schedule:
    """One that comes every minute, and is due now."""
    wanted = Wanted(
        "report", every_us=every_us, overlap=overlap, catch_up=catch_up, inputs='{"a":1}'
    )
    return put(None, "s", wanted, NOW - every_us).replace(**changes)


def fired(
    schedule: Schedule, now: int = NOW, running: tuple[str, ...] = (), known: bool = True
) -> Firing | None:
    ids = count(1)
    return fire(Due(schedule, running, now), program() if known else None, lambda: f"e{next(ids)}")


def told(firing: Firing | None) -> list[tuple[str, int, int | None]]:
    """Outcome of each slot, in minutes since it was due for the first time."""
    assert firing is not None
    return [
        (
            new.fire.outcome,
            (new.fire.slot_at - NOW) // MINUTE,
            new.fire.until_at and (new.fire.until_at - NOW) // MINUTE,
        )
        for new in firing.fires
    ]


def test_a_slot_starts_the_workflow_as_it_is_now_and_the_next_slot_follows_from_it() -> None:
    firing = fire(
        Due(schedule(), (), NOW + 7 * US), program(queue="reports", timeout=60.0), lambda: "e1"
    )
    assert firing is not None
    assert firing.next_at == NOW + MINUTE
    (new,) = firing.fires
    started = new.start
    assert started is not None
    assert (new.fire.execution_id, started.id, started.name, started.version) == (
        "e1",
        "e1",
        "report",
        "v1",
    )
    assert (started.queue, started.timeout_s, started.inputs) == ("reports", 60.0, '{"a":1}')
    assert (started.started_by, started.key) == ("schedule:s", "schedule:s@2027-01-15T08:00:00Z")
    assert json.loads(started.attributes) == {
        "schedule": "s",
        "scheduled_at": "2027-01-15T08:00:00Z",
    }


@pytest.mark.parametrize(
    "early", [schedule(next_at=NOW + 1), schedule(paused_at=1), schedule(next_at=None)]
)
def test_nothing_happens_before_its_time_in_a_pause_or_after_the_last_slot(early: Schedule) -> None:
    assert fired(early) is None


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        (0, [("missed", 0, 5)]),
        (1, [("missed", 0, 4), ("started", 5, None)]),
        (3, [("missed", 0, 2), ("started", 3, None), ("started", 4, None), ("started", 5, None)]),
        (6, [("started", n, None) for n in range(6)]),
        (7, [("started", n, None) for n in range(6)]),
    ],
)
def test_what_was_missed_is_made_up_for_as_far_as_it_is_wanted(
    catch_up: int, expected: list[Any]
) -> None:
    firing = fired(
        schedule("allow", catch_up, next_at=NOW, every_us=2 * MINUTE, anchor_at=NOW),
        NOW + 12 * MINUTE - 1,
    )
    assert firing is not None
    halves = [(outcome, 2 * slot, until and 2 * until) for outcome, slot, until in expected]
    assert told(firing) == halves
    assert firing.next_at == NOW + 12 * MINUTE


def test_without_catching_up_a_slot_that_is_only_late_is_run() -> None:
    assert told(fired(schedule(catch_up=0), NOW + LATE_US - 1)) == [("started", 0, None)]
    late = fired(schedule(catch_up=0, every_us=10 * MINUTE), NOW + LATE_US + 1)
    assert told(late) == [("missed", 0, 0)]
    several = fired(schedule(catch_up=0, every_us=MINUTE // 4, next_at=NOW), NOW + MINUTE)
    assert [outcome for outcome, _, _ in told(several)] == ["missed", "started"]


@pytest.mark.parametrize(
    ("overlap", "outcomes", "cancels", "queued"),
    [
        ("skip", ["skipped"], (), None),
        ("queue", [], (), NOW),
        ("allow", ["started"], (), None),
        ("cancel_other", ["started"], ("old", "older"), None),
    ],
)
def test_an_execution_that_still_runs(
    overlap: str, outcomes: list[str], cancels: tuple[str, ...], queued: int | None
) -> None:
    firing = fired(schedule(overlap), running=("old", "older"))
    assert firing is not None
    assert ([new.fire.outcome for new in firing.fires], firing.cancels, firing.queued_at) == (
        outcomes,
        cancels,
        queued,
    )
    assert firing.next_at == NOW + MINUTE


@pytest.mark.parametrize("overlap", ["skip", "queue", "allow", "cancel_other"])
def test_without_one_every_policy_starts(overlap: str) -> None:
    assert told(fired(schedule(overlap))) == [("started", 0, None)]


@pytest.mark.parametrize(
    ("overlap", "outcomes", "queued"),
    [
        ("skip", ["started", "skipped", "skipped"], None),
        ("queue", ["started", "skipped"], NOW + MINUTE),
        ("allow", ["started"] * 3, None),
        ("cancel_other", ["skipped", "skipped", "started"], None),
    ],
)
def test_slots_that_are_made_up_for_together_obey_the_policy_too(
    overlap: str, outcomes: list[str], queued: int | None
) -> None:
    firing = fired(schedule(overlap, catch_up=3), NOW + 2 * MINUTE)
    assert firing is not None
    assert ([new.fire.outcome for new in firing.fires], firing.queued_at) == (outcomes, queued)


def test_a_queued_slot_runs_when_nothing_runs_any_more_and_before_the_next() -> None:
    waiting = schedule("queue", queued_at=NOW - MINUTE)
    assert fired(waiting.replace(next_at=NOW + MINUTE), running=("old",)) is None
    firing = fired(waiting)
    assert told(firing) == [("started", -1, None)]
    assert firing is not None
    assert firing.queued_at == NOW
    assert told(fired(waiting, running=("old",))) == [("skipped", 0, None)]


def test_a_slot_of_a_workflow_that_is_unknown_fails_and_the_schedule_goes_on() -> None:
    firing = fired(schedule(), known=False)
    assert told(firing) == [("failed", 0, None)]
    assert firing is not None
    assert (firing.fires[0].fire.detail, firing.next_at) == (
        "there is no workflow `report`",
        NOW + MINUTE,
    )


def test_a_zone_that_is_not_known_here_changes_nothing() -> None:
    with pytest.raises(ValueError, match="there is no time zone"):
        fired(schedule(every_us=MINUTE).replace(every_us=None, cron="* * * * *", tz="Mars/Olympus"))


def test_of_very_many_slots_some_are_run_and_the_rest_is_due_at_the_next_look() -> None:
    """However much is made up for, no transaction starts more than so many; every slot has its fate
    in the end."""
    current, fates, looks = schedule("allow", 1000, next_at=NOW), list[int](), 0
    while (firing := fired(current, NOW + 1200 * MINUTE)) is not None:
        looks += 1
        assert len(firing.fires) <= MOST_SLOTS + 1
        for new in firing.fires:
            last = new.fire.slot_at if new.fire.until_at is None else new.fire.until_at
            fates += range(new.fire.slot_at, last + 1, MINUTE)
        current = current.replace(next_at=firing.next_at)
    assert fates == list(range(NOW, NOW + 1200 * MINUTE + 1, MINUTE))
    assert looks == 10


def test_of_very_many_slots_the_last_one_alone_takes_the_place_of_what_runs() -> None:
    firing = fired(schedule("cancel_other", 1000, next_at=NOW), NOW + 1200 * MINUTE, ("old",))
    assert firing is not None
    assert {new.fire.outcome for new in firing.fires} == {"missed", "skipped"}
    assert firing.cancels == ()


def test_a_date_comes_once_however_late() -> None:
    once = put(None, "s", Wanted("report", at=NOW), NOW - 5)
    assert once.next_at == NOW
    firing = fired(once, NOW + 86_400 * US)
    assert told(firing) == [("started", 0, None)]
    assert firing is not None
    assert firing.next_at is None


LOOKS = st.lists(st.tuples(st.integers(0, 400), st.booleans()), min_size=1, max_size=12)


@settings(deadline=None)  # a busy machine is no failure
@given(LOOKS, st.integers(0, 5), st.sampled_from(["skip", "queue", "allow"]))
def test_whenever_somebody_looks_every_slot_has_exactly_one_fate(
    looks: list[tuple[int, bool]], catch_up: int, overlap: str
) -> None:
    """In order, without a gap: whatever was run, skipped or missed adds up to all slots; at most
    one is still queued."""
    wanted = Wanted(
        "report", cron="*/7 * * * *", tz="Europe/Berlin", overlap=overlap, catch_up=catch_up
    )
    now, current = NOW, put(None, "s", wanted, NOW)
    fates: list[int] = []
    for wait, runs in looks:
        now += wait * MINUTE
        if (firing := fired(current, now, ("old",) if runs else ())) is None:
            continue
        for new in firing.fires:
            fate = new.fire
            last = fate.slot_at if fate.until_at is None else fate.until_at
            fates += _between(current, fate.slot_at - 1, last)
        current = current.replace(next_at=firing.next_at, queued_at=firing.queued_at)
    every = _between(current, NOW, now)
    assert sorted(fates + ([current.queued_at] if current.queued_at else [])) == every
    assert current.next_at == next(slots(current.timing, now))


def _between(schedule: Schedule, after: int, until: int) -> list[int]:
    found = []
    for slot in slots(schedule.timing, after):
        if slot > until:
            return found
        found.append(slot)
    return found


def test_running_it_now_leaves_its_slots_alone() -> None:
    firing = run_now(Due(schedule("skip"), ("old",), NOW + 5), program(), lambda: "e1", "k")
    (new,) = firing.fires
    assert (new.fire.manual, new.fire.slot_at, new.fire.outcome, firing.revision) == (
        True,
        NOW + 5,
        "started",
        None,
    )
    assert new.start is not None
    assert (new.start.key, new.start.started_by) == ("k", "schedule:s")


def test_asked_for_again_it_stays_as_it_is_and_with_other_times_it_begins_anew() -> None:
    made = put(None, "s", NIGHTLY, NOW, Actor("ada"))
    held = paused(made, NOW + 1, "bob", "holidays")
    assert put(made, "s", NIGHTLY, NOW + 99, Actor("eve")) == made
    late = held.replace(next_at=NOW - 5)
    other = put(late, "s", NIGHTLY.replace(overlap="allow"), NOW + 9)
    assert (other.next_at, other.overlap, other.paused_by, other.created_by, other.updated_at) == (
        NOW - 5,
        "allow",
        "bob",
        "ada",
        NOW + 9,
    )
    moved = put(late, "s", NIGHTLY.replace(tz="UTC"), NOW + 9)
    assert (moved.next_at, moved.paused_by) == (next(slots(moved.timing, NOW + 9)), "bob")


def test_a_queued_slot_is_dropped_with_the_policy_that_queued_it() -> None:
    waiting = schedule("queue", queued_at=5)
    again = Wanted("report", every_us=MINUTE, overlap="queue", inputs=waiting.inputs)
    assert put(waiting, "s", again, NOW).queued_at == 5
    assert put(waiting, "s", again.replace(overlap="skip"), NOW).queued_at is None


def test_slots_of_a_pause_are_not_made_up_for_but_a_date_is() -> None:
    held = paused(schedule(), NOW - 5, "ada", "why")
    assert paused(held, NOW, "eve", "") == held
    free = resumed(held, NOW + 5 * MINUTE)
    assert (free.paused_at, free.paused_by, free.next_at) == (None, "", NOW + 6 * MINUTE)
    assert resumed(free, NOW) == free
    once = paused(put(None, "s", Wanted("report", at=NOW), NOW - 5), NOW - 4, "", "")
    assert resumed(once, NOW + MINUTE).next_at == NOW


def test_annotations_make_change_and_remove_schedules() -> None:
    hourly = Wanted("report", cron="0 * * * *")
    first = registered({"report": [NIGHTLY, hourly], "other": []}, [], NOW)
    assert {name: each and (each.cron, each.origin) for name, each in first.items()} == {
        "@report": ("30 2 * * *", "report"),
        "@report.2": ("0 * * * *", "report"),
    }
    existing = [each for each in first.values() if each]
    assert registered({"report": [NIGHTLY, hourly]}, existing, NOW + 5) == {}
    assert registered({"report": []}, existing, NOW + 5) == {"@report": None, "@report.2": None}
    changed = registered({"report": [hourly]}, existing, NOW + 5)
    assert (changed["@report"] and changed["@report"].cron, changed["@report.2"]) == (
        "0 * * * *",
        None,
    )


def test_a_policy_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="overlap is one of skip, queue, allow, cancel_other"):
        check_wanted(NIGHTLY.replace(overlap="maybe"))
    check_wanted(NIGHTLY)
