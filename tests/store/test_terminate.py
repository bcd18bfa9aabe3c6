"""Ending executions without ado, with everything below them, on every database."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rhythm.engine.doctor import examine
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.messages import NewEvent
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import NewTimer
from rhythm.store.lifecycle import CANCELLED, COMPLETED
from tests.store.test_conformance import (
    Clock,
    begun,
    claims,
    commit,
    end,
    outcome,
    running_task,
    send,
    status,
    task,
    turn,
    workflow,
)
from tests.store.test_events import waits
from tests.support.stores import Stores, ready_rows, rows


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(stores: Stores, clock: Clock) -> Store:
    return stores.empty_store(clock)


def child(id: str, **changes: Any) -> NewExecution:
    parent, _, n = id.rpartition(".")
    return workflow(id, parent_id=parent, child_no=int(n), root_id=id.partition(".")[0]).replace(
        **changes
    )


def family(store: Store) -> None:
    """`w` waits for a task that is queued, one that runs, a child that waits for a task of its own,
    one that is held back, a timer and an event."""
    starts = (task("w.1"), task("w.2", queue="b"), child("w.3"), child("w.4", held=True))
    assert (
        outcome(
            store, turn(begun(store), starts=starts, timers=(NewTimer(5, 9.0),), waits=waits(6))
        )
        == "parked"
    )
    inner = claims(store, queues=("default",), limit=9)
    store.claims.release({"w.1": inner["w.1"].fence})
    assert (
        outcome(store, turn(inner["w.3"], starts=(task("w.3.1", root_id="w", queue="b"),)))
        == "parked"
    )


def test_an_execution_and_everything_below_it_ends_at_once(store: Store, clock: Clock) -> None:
    family(store)
    held = claims(store, queues=("b",))
    assert set(held) == {"w.2", "w.3.1"}
    clock.forward(1)
    assert store.executions.terminate(["w", "nobody"]) == {"w": True}
    found = store.reading.get(["w", "w.1", "w.2", "w.3", "w.3.1", "w.4"])
    assert {execution.status for execution in found.values()} == {"cancelled"}
    assert {json.loads(execution.error or "")["code"] for execution in found.values()} == {
        "Terminated"
    }
    assert (len(found), ready_rows(store), store.maintenance.fire_timers(9)) == (6, [], (0, None))
    assert store.messages.publish(NewEvent("e", "paid", "1")) == "published"
    assert ready_rows(store) == []
    assert not any(end(store, claim) for claim in held.values())
    assert send(store, "late") == "late"
    assert examine(store, 0.0) == []


def test_a_turn_that_was_computed_before_is_lost(store: Store) -> None:
    claim = begun(store)
    store.executions.terminate(["w"])
    assert outcome(store, turn(claim, starts=(task("w.1"),))) == "lost"
    assert outcome(store, turn(claim, 1)) == "lost"
    assert (list(store.reading.get(["w.1"])), status(store, "w"), ready_rows(store)) == (
        [],
        "cancelled",
        [],
    )
    assert [(step.to_status, step.cause) for step in store.reading.history("w")] == [
        ("cancelled", "terminated")
    ]
    assert examine(store, 0.0) == []


def test_what_has_ended_is_not_ended_again(store: Store) -> None:
    assert outcome(store, turn(begun(store), end="finish", status=COMPLETED)) == "finished"
    assert store.executions.terminate(["w"]) == {"w": False}
    begun(store, "x")
    assert (
        store.executions.terminate(["x"]),
        store.executions.terminate(["x"]),
        status(store, "w"),
    ) == (
        {"x": True},
        {"x": False},
        "completed",
    )
    assert store.executions.terminate([]) == {}


def test_a_child_that_is_terminated_wakes_its_parent(store: Store) -> None:
    family(store)
    assert store.executions.terminate(["w.3"]) == {"w.3": True}
    assert [row[0] for row in ready_rows(store)] == ["w", "w.1", "w.2"]
    assert (status(store, "w"), status(store, "w.3.1"), status(store, "w.4")) == (
        "suspended",
        "cancelled",
        "pending",
    )


def test_a_task_is_terminated_while_it_runs(store: Store) -> None:
    held = running_task(store)
    assert store.executions.terminate(["w.1"]) == {"w.1": True}
    assert (end(store, held), status(store, "w.1")) == (False, "cancelled")
    assert [row[0] for row in ready_rows(store)] == ["w"]
    assert store.claims.extend({"w.1": held.fence}, 30.0) == {}


def test_one_that_is_paused_or_delayed_or_was_asked_to_end_is_terminated_too(store: Store) -> None:
    store.executions.start(
        [workflow("delayed", delay_s=60.0), workflow("paused"), workflow("asked")]
    )
    store.people.pause(["paused"])
    store.executions.cancel(["asked"])
    assert set(store.executions.terminate(["delayed", "paused", "asked"]).values()) == {True}
    assert {status(store, id) for id in ("delayed", "paused", "asked")} == {"cancelled"}
    assert (ready_rows(store), examine(store, 0.0)) == ([], [])


def test_an_owner_that_goes_on_without_looking_at_its_row_is_stopped(store: Store) -> None:
    """A step touches no ready row: the fence of the context stops it."""
    claim = begun(store)
    assert outcome(store, turn(claim, end="own")) == "own"
    store.executions.terminate(["w"])
    rows(store, "UPDATE executions SET status = 1, finished_at = NULL WHERE id = 'w'")
    answer = commit(store, turn(claim, 1, "own"))
    assert not isinstance(answer, list)
    assert answer.outcome == "lost"


def test_parents_and_children_named_together_all_count(store: Store) -> None:
    family(store)
    assert store.executions.terminate(["w.3", "w", "w.3.1"]) == {
        "w.3": True,
        "w": True,
        "w.3.1": True,
    }
    assert rows(store, "SELECT count(*) FROM executions WHERE status <> ?", [CANCELLED]) == [(0,)]
    assert examine(store, 0.0) == []


def test_nobody_else_is_touched(store: Store) -> None:
    store.executions.start([workflow("w"), workflow("w1"), workflow("v")])
    store.executions.terminate(["w"])
    assert [row[0] for row in ready_rows(store)] == ["v", "w1"]
