"""Planning is pure: plain values in, one commit out, and no store, worker or clock anywhere
near."""

from __future__ import annotations

from typing import Any

import pytest

from rhythm.engine.planning import Capacity, Planned, Planner, Standpoint, in_place_of
from rhythm.engine.rows import EndedTasks, OwnedEnd, Referenced, load_owned
from rhythm.lang.languages import compile_text
from rhythm.store.interfaces.turns import Loaded
from rhythm.store.interfaces.workers import Declaration
from rhythm.store.lifecycle import CANCELLED, COMPLETED, FAILED, SUSPENDED
from rhythm.vm import commands as c
from rhythm.vm.interpreter import advance
from rhythm.vm.machine import Inputs
from rhythm.vm.snapshot import Snapshot

TASK = Declaration("value", "", 2, None, "null", transactional=False)
KNOWN = Referenced({"value": TASK})
ROOM = Capacity(3, {"value"}, {"default"})
NONE = Capacity(0, {"value"}, {"default"})
PLANNER = Planner("me", claim_ttl_s=30.0)


def loaded(**changes: Any) -> Loaded:
    row = Loaded(
        id="run",
        name="main",
        version="v",
        status=SUSPENDED,
        queue="default",
        priority=4,
        inputs="null",
        parent_id=None,
        root_id="run",
        retry_of=None,
        created_at=0,
        cancel_requested=False,
        paused=False,
        timed_out=False,
        seq=7,
        fence=9,
        snapshot=None,
        owned="[]",
        now=0,
        has_mail=False,
    )
    return row.replace(**changes)


def planned(
    text: str,
    capacity: Capacity = ROOM,
    known: Referenced = KNOWN,
    row: Loaded | None = None,
    **how: Any,
) -> Planned:
    """The first turn of a workflow."""
    program = compile_text(text, "main.flow").programs_or_raise()[0]
    at = Standpoint(row or loaded(), Snapshot(), 9, 2)
    turn = advance(
        program, at.snapshot, Inputs(now="2030-01-01T00:00:00Z", seed="0", inputs=None, ctx={})
    )
    return PLANNER.turn(at, program, turn, known, capacity, EndedTasks(), **how)


def two_owned(row: Loaded | None = None, running_s: dict[int, float] | None = None) -> Standpoint:
    """A workflow that awaits two tasks without rows, its children 2 and 3 (the group is 1)."""
    first = planned('await all([task("value", { x: 1 }), task("value", { x: 2 })])')
    return Standpoint(row or loaded(), first.snapshot, 9, 2, first.owned, running_s or {})


def end(at: Standpoint, n: int, status: int = COMPLETED, **changes: Any) -> OwnedEnd:
    return OwnedEnd(at.owned[n], status, "1", 1, 0.5).replace(**changes)


ONE = 'await task("value", { x: 1 })'


def test_a_lone_task_is_run_by_its_owner_without_a_row() -> None:
    plan = planned(ONE)
    assert (plan.commit.end, plan.commit.starts, set(plan.owned), plan.slots) == ("own", (), {1}, 1)
    assert load_owned(plan.commit.owned or "") == plan.owned


@pytest.mark.parametrize(
    "capacity", [NONE, ROOM.replace(tasks=set()), ROOM.replace(queues={"other"})]
)
def test_what_its_owner_cannot_run_goes_to_the_queue(capacity: Capacity) -> None:
    plan = planned(ONE, capacity)
    assert (plan.commit.end, dict(plan.owned), plan.slots, plan.commit.owned) == (
        "park",
        {},
        0,
        "[]",
    )
    assert [(row.id, row.queue, row.priority, row.max_attempts) for row in plan.commit.starts] == [
        ("run.1", "default", 4, 3)
    ]


def test_all_of_them_are_owned_or_none() -> None:
    text = 'await all([task("value", { x: n }) for n in range(3)])'
    assert (planned(text).slots, planned(text, ROOM.replace(slots=2)).slots) == (3, 0)


def test_a_plan_takes_its_slots_from_the_next_one() -> None:
    assert ROOM.less(planned(ONE).slots).slots == 2
    assert ROOM.slots == 3, "the capacity is a value"


def test_whoever_had_its_share_gives_the_claim_back_and_takes_no_slot() -> None:
    plan = planned(ONE, keep=False)
    assert (plan.commit.end, plan.slots, plan.commit.owned != "[]") == ("yield", 0, True)


def test_what_is_asked_of_others_goes_where_they_declared_it() -> None:
    known = Referenced({"value": TASK.replace(queue="far", retries=4)})
    [row] = planned(ONE, known=known).commit.starts
    assert (row.queue, row.max_attempts) == ("far", 5)


def test_a_child_without_a_program_has_failed_before_it_began() -> None:
    known = KNOWN.replace(programs={("kid", None): "there is no workflow `kid`"})
    commit = planned('await workflow("kid", 1)', known=known).commit
    [row] = commit.done
    assert (row.n, row.status, "there is no workflow" in row.value, commit.end) == (
        1,
        FAILED,
        True,
        "own",
    )


def test_the_same_turn_gives_the_same_commit() -> None:
    assert planned(ONE).commit == planned(ONE).commit


def test_an_end_from_which_nothing_follows_leaves_the_rest_with_its_owner() -> None:
    at = two_owned(running_s={3: 0.1})
    plan = PLANNER.tasks_ended(at, PLANNER.ended_tasks(at.loaded, [end(at, 2)], KNOWN))
    assert ([row.n for row in plan.commit.done], set(plan.owned), plan.commit.end) == (
        [2],
        {3},
        "own",
    )
    last = PLANNER.tasks_ended(at, PLANNER.ended_tasks(at.loaded, [end(at, 2), end(at, 3)], KNOWN))
    assert (dict(last.owned), last.commit.end) == ({}, "park")


def test_a_failed_attempt_goes_to_the_queue_unless_its_workflow_was_cancelled() -> None:
    at = two_owned()
    again = end(at, 2, FAILED, retry_s=3.0)
    [row] = PLANNER.ended_tasks(at.loaded, [again], KNOWN).retries
    assert (row.attempt, row.delay_s, row.failed, row.later_us) == (1, 3.0, "1", -500_000)
    [later] = PLANNER.ended_tasks(at.loaded, [again.replace(counts=False)], KNOWN).retries
    assert (later.attempt, later.failed) == (0, None), "to be called later is no attempt"
    ended = PLANNER.ended_tasks(loaded(cancel_requested=True), [again], KNOWN)
    assert ([each.status for each in ended.done], ended.retries) == ([FAILED], ())


def test_a_task_that_lasts_gets_a_row_that_its_owner_has_claimed() -> None:
    plan = PLANNER.promote(two_owned(running_s={2: 2.0, 3: 0.1}), [2], KNOWN)
    [row] = plan.commit.starts
    assert (row.id, row.attempt, row.later_us) == ("run.2", 1, -2_000_000)
    assert (plan.commit.promoted, plan.commit.claim_ttl_s, set(plan.owned)) == ((2,), 30.0, {3})


def test_tasks_without_an_owner_are_run_only_where_all_of_them_can_be() -> None:
    at = two_owned()
    assert PLANNER.runs_owned(at, KNOWN, ROOM)
    assert not PLANNER.runs_owned(at, KNOWN, NONE)
    assert not PLANNER.runs_owned(at, KNOWN, ROOM.replace(slots=1)), (
        "never more handlers than slots"
    )


@pytest.mark.parametrize(
    ("crashes", "end", "queued", "failed"), [(0, "park", 2, 0), (2, "park", 2, 0), (3, "own", 0, 2)]
)
def test_tasks_beside_which_too_many_workers_died_fail(
    crashes: int, end: str, queued: int, failed: int
) -> None:
    plan = PLANNER.queue_owned(two_owned(), KNOWN, crashes, 3)
    assert (plan.commit.end, len(plan.commit.starts), len(plan.commit.done)) == (
        end,
        queued,
        failed,
    )
    assert (plan.load_again, {row.attempt for row in plan.commit.starts} <= {crashes}) == (
        failed > 0,
        True,
    )


def test_a_failure_keeps_the_guards_of_the_turn_that_it_stands_for() -> None:
    turn = planned(ONE).commit
    for commit in (
        in_place_of(turn, "LimitExceeded", "no"),
        PLANNER.failure(two_owned(), "Bug", "no").commit,
    ):
        assert (commit.id, commit.seq, commit.fence, commit.wakes) == (
            turn.id,
            turn.seq,
            turn.fence,
            turn.wakes,
        )
        assert (commit.end, commit.status, commit.owned) == ("finish", FAILED, None)


def test_what_a_turn_cancels_and_has_not_started_is_never_started() -> None:
    at = two_owned()
    program = compile_text("return 1", "main.flow").programs_or_raise()[0]
    turn = advance(
        program, Snapshot(), Inputs(now="2030-01-01T00:00:00Z", seed="0", inputs=None, ctx={})
    )
    plan = PLANNER.turn(
        at, program, turn.replace(commands=(c.Cancel(1, 3),)), KNOWN, ROOM, EndedTasks()
    )
    assert [(row.n, row.status) for row in plan.commit.done] == [(2, CANCELLED), (3, CANCELLED)]
    assert (plan.commit.starts, plan.commit.cancels) == ((), ((1, 3),))
