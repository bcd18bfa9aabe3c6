"""What a start does when somebody has its id or its key already, on every database."""

from __future__ import annotations

import pytest

from rhythm.errors import Conflict
from rhythm.store.interfaces.executions import NewExecution, Started
from rhythm.store.interfaces.store import Store
from rhythm.store.lifecycle import TASK, WORKFLOW
from tests.store.test_conformance import NOW, Clock, begun, claims, outcome, status, turn, workflow
from tests.support.stores import Stores, ready_rows


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(stores: Stores, clock: Clock) -> Store:
    return stores.empty_store(clock)


def test_conflict_with_fail_starts_nothing_of_the_call(store: Store) -> None:
    store.executions.start([workflow("a", key="k")])
    for taken in (workflow("a"), workflow("b", key="k")):
        with pytest.raises(Conflict) as raised:
            store.executions.start([workflow("new"), taken], "fail")
        assert raised.value.id == "a"
    assert (store.reading.get(["new", "b"]), [row[0] for row in ready_rows(store)]) == ({}, ["a"])


def test_same_id_or_key_twice_in_one_call_is_a_conflict_too(store: Store) -> None:
    for pair in ([workflow("a"), workflow("a")], [workflow("a", key="k"), workflow("b", key="k")]):
        with pytest.raises(Conflict):
            store.executions.start(pair, "fail")
        assert store.reading.get(["a", "b"]) == {}


def test_id_of_another_name_is_never_given_out(store: Store) -> None:
    store.executions.start([workflow("a")])
    with pytest.raises(
        Conflict, match="'a' is the id of an execution of something else than `other`"
    ):
        store.executions.start([workflow("a", name="other")])
    assert store.executions.start([workflow("a")]) == [Started("a", created=False, name="main")]


def test_replaced_workflow_that_sleeps_is_woken_to_end_and_has_no_key_any_more(
    store: Store,
) -> None:
    assert outcome(store, turn(begun(store, "old", key="k"))) == "parked"
    assert store.executions.start([workflow("new", key="k")], "replace") == [
        Started("new", created=True)
    ]
    assert store.reading.get(["old"])["old"].cancel_requested_at == NOW
    assert sorted(row[0] for row in ready_rows(store)) == ["new", "old"]
    assert store.executions.start([workflow("later", key="k")])[0].id == "new"


def test_replaced_workflow_that_was_delayed_comes_at_once(store: Store) -> None:
    store.executions.start([workflow("old", key="k", delay_s=60.0)])
    store.executions.start([workflow("new", key="k")], "replace")
    assert set(claims(store)) == {"old", "new"}


def test_replaced_task_that_nobody_runs_ends_and_one_that_ended_stays_as_it_was(
    store: Store,
) -> None:
    task = NewExecution("old", TASK, "work", "default", key="k")
    store.executions.start([task])
    store.executions.start([task.replace(id="new")], "replace")
    assert (status(store, "old"), status(store, "new")) == ("cancelled", "pending")
    store.executions.cancel(["new"])
    ended = store.reading.get(["new"])
    store.executions.start([task.replace(id="newest")], "replace")
    assert (store.reading.get(["new"]), status(store, "newest")) == (ended, "pending")


def test_replace_does_not_touch_the_same_key_of_another_name(store: Store) -> None:
    store.executions.start([workflow("other", name="other", key="k")])
    store.executions.start([workflow("new", key="k")], "replace")
    assert store.reading.get(["other"])["other"].cancel_requested_at is None


def test_id_cannot_be_replaced_and_then_nobody_is_cancelled(store: Store) -> None:
    store.executions.start([workflow("a", key="k")])
    with pytest.raises(Conflict, match="an id is used once only"):
        store.executions.start([workflow("a", key="k")], "replace")
    assert store.reading.get(["a"])["a"].cancel_requested_at is None
    assert store.executions.start([workflow("b", key="k")])[0].id == "a"


def test_pages_go_by_time_and_id_whatever_the_ids_are(store: Store, clock: Clock) -> None:
    store.executions.start([workflow(id) for id in ("b", "z")])
    clock.forward(1)
    store.executions.start([NewExecution("a", WORKFLOW, "main", "default", version="1")])
    seen: list[str] = []
    before: tuple[int, str] | None = None
    while page := store.reading.find(None, None, before, 1):
        seen += [execution.id for execution in page]
        before = page[-1].created_at, page[-1].id
    assert seen == ["a", "z", "b"]
