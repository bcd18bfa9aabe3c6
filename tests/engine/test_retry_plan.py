"""What a retry is made of: plain rows in, plain rows out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rhythm.engine import retry_plan as module
from rhythm.engine.retry_plan import anew
from rhythm.errors import NotRetryable, RetryTooLarge
from rhythm.limits import DEFAULT_LIMITS
from rhythm.store.interfaces.executions import (
    Family,
    Reach,
    Retry,
    StoredExecution,
    StoredSignal,
    StoredTimer,
)
from rhythm.store.lifecycle import CANCELLED, COMPLETED, FAILED, PENDING, SUSPENDED, TASK, WORKFLOW
from rhythm.vm.snapshot import Snapshot, decode_snapshot, encode_snapshot, pack

END = 1_000
REACH = Reach.by(DEFAULT_LIMITS)


def retried(family: Family, id: str, reach: Reach = REACH) -> Family:
    return module.retried(family, id, reach)


def row(id: str = "old", **changes: Any) -> StoredExecution:
    parent, _, n = id.rpartition(".")
    plain = StoredExecution(
        id=id,
        type=TASK if parent else WORKFLOW,
        name="work" if parent else "main",
        version="",
        queue="q",
        priority=3,
        status=FAILED,
        parent_id=parent or None,
        child_no=int(n) if parent else 0,
        root_id="old",
        retry_of=None,
        attempt=2,
        max_attempts=3,
        held=False,
        error="{}",
        created_at=1,
        started_at=2,
        finished_at=END,
        timeout_us=50,
        cancel_requested_at=None,
        fence=7,
        worker="w",
        started_by="ann",
        authority=None,
        source=id,
        seq=5,
        statement=4,
        snapshot=None,
        owned="[]",
    )
    return plain.replace(**changes)


def waiting(
    plan: dict[str, Any] | None,
    locals: dict[str, Any] | None = None,
    next_child: int = 10,
    **changes: Any,
) -> StoredExecution:
    """A failed workflow whose last snapshot awaits this."""
    return row(snapshot=encode_snapshot(Snapshot(4, locals or {}, plan, next_child)), **changes)


def task(n: int) -> dict[str, Any]:
    return {"op": "task", "n": n, "name": "work"}


def statuses(family: Family) -> dict[str, int]:
    return {execution.id: execution.status for execution in family.executions}


def test_awaited_failure_begins_anew_with_all_its_attempts_and_its_options() -> None:
    family = retried(
        Family((waiting(task(2)), row("old.1", status=COMPLETED), row("old.2"))), "new"
    )
    root, done, again = family.executions
    assert (
        root.retry_of,
        root.root_id,
        root.status,
        root.statement,
        json.loads(root.awaiting or ""),
    ) == (
        "old",
        "new",
        SUSPENDED,
        4,
        task(2),
    )
    assert (done.id, done.parent_id, done.root_id, done.fence, done.finished_at) == (
        "new.1",
        "new",
        "new",
        7,
        END,
    )
    assert (done.source, done.ends_alike) == ("old.1", True)
    assert (
        again.id,
        again.status,
        again.attempt,
        again.source,
        again.ends_alike,
        again.error,
        again.created_at,
    ) == (
        "new.2",
        PENDING,
        0,
        "old.2",
        False,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("child", "expected"),
    [
        (row("old.1", status=FAILED), FAILED),  # caught long ago
        (row("old.1", status=CANCELLED, cancel_requested_at=END - 1), CANCELLED),  # lost a race
        # stopped by the end of its workflow
        (row("old.1", status=CANCELLED, cancel_requested_at=END), PENDING),
        (
            row("old.1", status=PENDING, finished_at=None, cancel_requested_at=END, error=None),
            PENDING,
        ),
        (
            row("old.1", status=PENDING, finished_at=None, cancel_requested_at=END - 1, error=None),
            CANCELLED,
        ),
        (row("old.1", status=COMPLETED, error=None), COMPLETED),
    ],
)
def test_what_is_not_awaited_stays_unless_it_ran_until_the_end(
    child: StoredExecution, expected: int
) -> None:
    family = retried(Family((waiting(task(2)), child, row("old.2"))), "new")
    assert statuses(family)["new.1"] == expected
    copy = family.executions[1]
    assert (copy.finished_at is not None, copy.error is not None) == (
        expected >= COMPLETED,
        expected in (FAILED, CANCELLED),
    )


def test_children_of_the_turn_that_failed_are_left_behind() -> None:
    family = retried(Family((waiting(task(2), next_child=3), row("old.2"), row("old.3"))), "new")
    assert set(statuses(family)) == {"new", "new.2"}


def test_item_that_a_loop_has_taken_is_not_run_again() -> None:
    plan = {"op": "completed", "n": 1, "items": [task(2), task(3)], "taken": [0]}
    family = retried(Family((waiting(plan), row("old.2"), row("old.3"))), "new")
    assert statuses(family) == {"new": SUSPENDED, "new.2": FAILED, "new.3": PENDING}


def test_what_a_limit_holds_back_is_held_back_again() -> None:
    plan = {
        "op": "all",
        "n": 1,
        "first": 2,
        "count": 3,
        "of": {"op": "task", "name": "work"},
        "concurrency": 1,
        "released": 2,
    }
    rows = (
        row("old.2", status=COMPLETED),
        row("old.3"),
        row("old.4", status=CANCELLED, cancel_requested_at=END),
    )
    family = retried(Family((waiting(plan), *rows)), "new")
    assert [(execution.id, execution.held) for execution in family.executions[1:]] == [
        ("new.2", False),
        ("new.3", False),
        ("new.4", True),
    ]


def test_timers_fired_or_cancelled_before_stay_and_others_begin_anew() -> None:
    fired = StoredTimer("old", 1, 5, None, 6, 8, None)
    before = StoredTimer("old", 2, 5, None, 6, None, END - 1)
    stopped = StoredTimer("old", 3, 5, None, 6, None, END)
    later = StoredTimer("old", 99, 5, None, 6, None, END)
    sleep = {"op": "race", "n": 4, "items": [{"op": "sleep", "n": 3}, task(5)]}
    family = retried(Family((waiting(sleep), row("old.5")), (fired, before, stopped, later)), "new")
    assert family.timers == (
        fired.replace(execution_id="new"),
        before.replace(execution_id="new"),
        StoredTimer("new", 3, 5, None, None, None, None, True),
    )


def test_mailbox_is_that_of_the_snapshot_numbered_anew() -> None:
    taken, by_the_last_turn, waits = (
        StoredSignal(f"s{n}", "old", n, "go", n, seq, f"s{n}")
        for n, seq in ((1, 4), (2, 5), (3, None))
    )
    family = retried(
        Family(
            (waiting({"op": "signal", "n": 1, "name": "go"}, seq=5),),
            (),
            (taken, by_the_last_turn, waits),
        ),
        "new",
    )
    assert [
        (signal.execution_id, signal.n, signal.received_at, signal.consumed_seq)
        for signal in family.signals
    ] == [
        ("new", 1, 2, None),
        ("new", 2, 3, None),
    ]
    assert len({signal.id for signal in family.signals} | {"s1", "s2", "s3"}) == 5


def test_ids_of_children_in_variables_are_renamed_and_nothing_else() -> None:
    locals = {
        "a": ["old.1", {"b": "old.2.3"}],
        "own": "old",
        "text": "old.1 and more",
        "other": "older.1",
    }
    new = retried(
        Family((waiting(task(2), locals), row("old.1", status=COMPLETED), row("old.2"))), "new"
    ).executions[0]
    assert decode_snapshot(new.snapshot or b"").locals == {
        **locals,
        "a": ["new.1", {"b": "new.2.3"}],
    }


def test_child_workflow_goes_on_below_its_new_parent() -> None:
    inner = row(
        "old.1", type=WORKFLOW, name="inner", snapshot=encode_snapshot(Snapshot(2, {}, task(2), 3))
    )
    rows = (
        waiting({"op": "workflow", "n": 1, "name": "inner"}),
        inner,
        row("old.1.1", status=COMPLETED),
        row("old.1.2"),
    )
    family = retried(Family(rows), "new")
    assert statuses(family) == {
        "new": SUSPENDED,
        "new.1": SUSPENDED,
        "new.1.1": COMPLETED,
        "new.1.2": PENDING,
    }
    assert {execution.root_id for execution in family.executions} == {"new"}


def test_tasks_that_never_got_a_row_are_run_by_whoever_takes_over() -> None:
    owned = json.dumps([[2, "work", None, {}], [1, "work", None, {}]])
    new = retried(
        Family(
            (waiting({"op": "all", "n": 3, "items": [task(1), task(2)]}, owned=owned), row("old.1"))
        ),
        "new",
    ).executions[0]
    assert json.loads(new.owned or "") == [[2, "work", None, {}]]


def test_from_the_start_nothing_is_taken_along() -> None:
    family = anew(Family((waiting(task(2)), row("old.2"))), "new", "v2")
    (new,) = family.executions
    assert (
        new.id,
        new.version,
        new.snapshot,
        new.status,
        new.source,
        new.retry_of,
        new.timeout_us,
    ) == (
        "new",
        "v2",
        None,
        PENDING,
        "old",
        "old",
        50,
    )


def test_an_id_that_somebody_gave_as_data_is_no_wait() -> None:
    locals = {"$resumed": {"approval": "old.1"}, "$context": {"approval": "old.1"}}
    assert (
        retried(Family((waiting(task(2), locals), row("old.2"))), "new").executions[0].retry_of
        == "old"
    )


@pytest.mark.parametrize(
    ("old", "message"),
    [
        (row(status=SUSPENDED, finished_at=None), "has not ended"),
        (row(status=COMPLETED), "has completed"),
        (row("old.1"), "is part of old: retry that one"),
        (waiting(task(5)), "waits for number 5, of which nothing is left: retry it from the start"),
        (waiting({"op": "event", "n": 5, "name": "paid"}), "waits for an event"),
        (waiting(None, {"a": [{"id": "old.5"}]}), "waits for number 5, of which nothing is left"),
        (
            waiting(
                None,
                {"$started": {"4": {"op": "all", "n": 4, "items": [{"op": "approval", "n": 5}]}}},
            ),
            "waits for an approval",
        ),
        (
            row(snapshot=encode_snapshot(Snapshot(4, {}, task(2), 3, cancelled=True))),
            "has cleaned up behind itself",
        ),
    ],
)
def test_what_cannot_go_on_is_refused(old: StoredExecution, message: str) -> None:
    with pytest.raises(NotRetryable, match=message):
        retried(Family((old,)), "new")


def itself(plan: dict[str, Any], **changes: Any) -> StoredExecution:
    """A workflow that its own code made fail, after an await of this."""
    return waiting(plan, error='{"code":"Odd","message":"odd","data":null,"at":[3,1]}', **changes)


def ended(n: int, status: int, at: int) -> StoredExecution:
    return row(f"old.{n}", status=status, finished_at=at, error='{"code":"No","message":""}')


GROUP = {"n": 1, "items": [task(2), task(3)]}


@pytest.mark.parametrize(
    ("plan", "rows"),
    [
        (task(2), [ended(2, COMPLETED, 5)]),
        ({"op": "all", **GROUP}, [ended(2, COMPLETED, 5), ended(3, COMPLETED, 6)]),
        ({"op": "any", **GROUP}, [ended(2, FAILED, 5), ended(3, COMPLETED, 6)]),
        ({"op": "race", **GROUP}, [ended(2, COMPLETED, 5), ended(3, FAILED, 6)]),
        (
            {"op": "race", **GROUP},
            [ended(2, COMPLETED, 5), row("old.3", status=CANCELLED, cancel_requested_at=END)],
        ),
        ({"op": "completed", **GROUP, "taken": [0]}, [ended(2, FAILED, 5), ended(3, COMPLETED, 6)]),
    ],
)
def test_await_that_would_end_as_it_did_is_no_place_to_go_on_from(
    plan: dict[str, Any], rows: list[StoredExecution]
) -> None:
    with pytest.raises(
        NotRetryable,
        match=(
            "failed when what it had waited for was done, so going on from there would fail again"
        ),
    ):
        retried(Family((itself(plan), *rows)), "new")
    for elsewhere in (waiting(plan), itself(plan, status=CANCELLED)):  # a crash, a cancellation
        assert retried(Family((elsewhere, *rows)), "new")


@pytest.mark.parametrize("code", ["Timeout", "Crashed", "InternalError", "InvalidProgram"])
def test_what_ended_a_workflow_from_outside_may_be_over(code: str) -> None:
    """Such an end has no place in the source, or names the execution whose time was over; what a
    program throws has and does not."""
    error: dict[str, Any] = {"code": code, "message": "", "data": None}
    outside = error | ({"data": {"execution": "old"}, "at": [1, 1]} if code == "Timeout" else {})
    done = ended(2, COMPLETED, 5)
    assert retried(Family((waiting(task(2), error=json.dumps(outside)), done)), "new")
    with pytest.raises(NotRetryable, match="would fail again"):
        retried(Family((waiting(task(2), error=json.dumps(error | {"at": [1, 1]})), done)), "new")


@pytest.mark.parametrize(
    ("plan", "rows"),
    [
        (task(2), [ended(2, FAILED, 5)]),
        (task(2), [row("old.2", status=CANCELLED, cancel_requested_at=5)]),
        ({"op": "all", **GROUP}, [ended(2, COMPLETED, 5), ended(3, FAILED, 6)]),
        ({"op": "all", **GROUP, "settle": True}, [ended(2, COMPLETED, 5), ended(3, FAILED, 6)]),
        ({"op": "any", **GROUP}, [ended(2, FAILED, 5), ended(3, FAILED, 6)]),
        ({"op": "race", **GROUP}, [ended(2, FAILED, 5), ended(3, COMPLETED, 6)]),
        ({"op": "completed", **GROUP, "taken": []}, [ended(2, FAILED, 5), ended(3, COMPLETED, 6)]),
    ],
)
def test_await_that_may_end_otherwise_is_taken_up_again(
    plan: dict[str, Any], rows: list[StoredExecution]
) -> None:
    assert retried(Family((itself(plan), *rows)), "new").executions[0].status == SUSPENDED


def test_signal_gets_its_time_again_unless_it_had_come() -> None:
    plan = {"op": "signal", "n": 1, "name": "go", "timeout": 5.0}
    over = StoredTimer("old", 1, 5, None, 6, 6, None)
    assert retried(Family((itself(plan),), (over,)), "new").timers == (
        StoredTimer("new", 1, 5, None, None, None, None, True),
    )
    came = StoredSignal("s", "old", 1, "go", 4, 5, "s")
    with pytest.raises(NotRetryable, match="would fail again"):
        retried(Family((itself(plan),), (over,), (came,)), "new")
    late = came.replace(received_at=7, consumed_seq=None)
    assert retried(Family((itself(plan),), (over,), (late,)), "new").signals


def test_retry_beside_another_one_is_refused_and_from_the_start_it_is_not() -> None:
    rows = (waiting(task(2)), row("old.2"))
    failed, cancelled, done = Retry("r1", FAILED), Retry("r2", CANCELLED), Retry("r3", COMPLETED)
    for retries, message in (
        ((failed,), "old was retried as r1, which failed in turn: retry r1 instead"),
        ((failed, cancelled), "old was retried as r2, which was cancelled: retry r2 instead"),
        ((failed, done, cancelled), "old was retried as r3, which completed"),
    ):
        with pytest.raises(NotRetryable, match=f"^{message}$"):
            retried(Family(rows, retries=retries), "new")
        assert anew(Family(rows, retries=retries), "new", "v2")


def test_snapshots_that_are_small_only_while_they_are_packed_count_as_they_are() -> None:
    """The database is asked how large they are; what they are unpacked is known here."""
    snapshots = [
        pack(encode_snapshot(Snapshot(4, {"text": "x" * 100_000}, plan, 10)))
        for plan in ({"op": "all", **GROUP}, None)
    ]
    assert sum(map(len, snapshots)) < 2000
    family = Family(
        (
            row(snapshot=snapshots[0]),
            row("old.2"),
            row("old.3", type=WORKFLOW, snapshot=snapshots[1]),
        )
    )
    with pytest.raises(
        RetryTooLarge,
        match=r"old has more below it than a retry may read .*`rhythm retry old --from-start`",
    ):
        retried(family, "new", REACH.replace(bytes=150_000))
    assert len(retried(family, "new", REACH.replace(bytes=250_000)).executions) == 3
