"""Events and those who wait for them: what both databases promise, and the one function that says
who takes what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rhythm.store.events import (
    EVENTS_PAGE,
    FIRST_EVENTS,
    Event,
    Wait,
    _at_path,
    _same,
    key_of,
    keys_of,
    matches,
)
from rhythm.store.interfaces.messages import NewEvent, NewWait
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import Needed
from rhythm.store.lifecycle import CANCELLED, COMPLETED, EVENT, FAILED
from rhythm.store.postgres import exchange as postgres
from rhythm.store.sqlite import exchange as sqlite
from tests.store.test_conformance import NOW, Clock, begun, claims, outcome, turn, workflow
from tests.support.counting import counting
from tests.support.stores import Stores, ready_rows, rows


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(stores: Stores, clock: Clock) -> Store:
    return stores.empty_store(clock)


def publish(store: Store, id: str = "e1", type: str = "paid", data: Any = None) -> str:
    return store.messages.publish(NewEvent(id, type, json.dumps(data)))


def waits(*numbers: int, **changes: Any) -> tuple[NewWait, ...]:
    return tuple(NewWait(n, "paid", "{}").replace(**changes) for n in numbers)


def parked(store: Store, id: str = "w", *numbers: int, **changes: Any) -> None:
    """A workflow that waits for events of type `paid`."""
    assert (
        outcome(store, turn(begun(store, id), waits=waits(*numbers or (1,), **changes))) == "parked"
    )


def ended(store: Store, id: str = "w", *numbers: int) -> list[tuple[int, int, Any]]:
    """Number, status and event id of the waits that have ended."""
    found = store.turns.outcomes([Needed(id, numbers or (1,))])[id]
    assert all((o.type, o.name) == (EVENT, "paid") for o in found)
    return [
        (o.n, o.status, (json.loads(o.value) or {}).get("id"))
        for o in sorted(found, key=lambda o: o.n)
    ]


def test_an_event_wakes_one_who_sleeps_and_ends_its_wait(store: Store, clock: Clock) -> None:
    parked(store)
    clock.forward(1)
    assert publish(store, data={"n": 1}) == "published"
    assert ready_rows(store) == [("w", 0, 0)]
    (found,) = store.turns.outcomes([Needed("w", (1,))])["w"]
    assert (found.n, found.status, found.ended_at) == (1, COMPLETED, NOW + 1_000_000)
    assert json.loads(found.value) == {"id": "e1", "data": {"n": 1}, "at": NOW + 1_000_000}


def test_an_event_that_came_before_the_wait_ends_it_and_the_turn_does_not_park(
    store: Store,
) -> None:
    claim = begun(store)
    publish(store)
    assert outcome(store, turn(claim, waits=waits(1))) == "woken"
    assert ended(store) == [(1, COMPLETED, "e1")]


def test_an_event_from_before_the_start_is_not_for_it(store: Store, clock: Clock) -> None:
    publish(store)
    clock.forward(0.000001)
    parked(store)
    assert ended(store) == []
    publish(store, "e2")
    assert ended(store) == [(1, COMPLETED, "e2")]


def test_an_event_wakes_nobody_who_waits_for_another(store: Store) -> None:
    parked(store, "a", type="other")
    parked(store, "b", wanted='{"n": 2}')
    publish(store, data={"n": 1})
    assert ready_rows(store) == []
    publish(store, "e2", data={"n": 2})
    assert [row[0] for row in ready_rows(store)] == ["b"]
    assert ended(store, "b") == [(1, COMPLETED, "e2")]


def test_an_event_is_for_everyone_who_waits_but_each_sees_it_once(store: Store) -> None:
    parked(store, "a", 1, 2)
    parked(store, "b", 1)
    publish(store)
    assert (ended(store, "a", 1, 2), ended(store, "b")) == (
        [(1, COMPLETED, "e1")],
        [(1, COMPLETED, "e1")],
    )
    publish(store, "e2")
    assert ended(store, "a", 1, 2) == [(1, COMPLETED, "e1"), (2, COMPLETED, "e2")]


def test_what_was_seen_is_not_found_again(store: Store) -> None:
    claim = begun(store)
    publish(store)
    assert outcome(store, turn(claim, end="own", waits=waits(1))) == "own"
    assert outcome(store, turn(claim, 1, "own", waits=waits(2))) == "own"
    assert ended(store, "w", 1, 2) == [(1, COMPLETED, "e1")]


def test_the_same_event_twice_is_one(store: Store) -> None:
    parked(store, "w", 1, 2)
    assert (publish(store), publish(store), publish(store, type="else")) == (
        "published",
        "duplicate",
        "duplicate",
    )
    assert ended(store, "w", 1, 2) == [(1, COMPLETED, "e1")]


def test_the_one_that_is_looked_for_is_found_behind_many_others(store: Store) -> None:
    claim = begun(store)
    events = tuple(
        NewEvent(f"e{i}", "paid", json.dumps({"n": i})) for i in range(2 * EVENTS_PAGE + 10)
    )
    other = begun(store, "publisher")
    store.turns.commit([turn(other, events=events)], [])
    wanted = (
        *waits(1, wanted='{"n": 405}'),
        *waits(2, wanted='{"n": 3}'),
        *waits(3, wanted='{"n": -1}'),
    )
    assert outcome(store, turn(claim, waits=wanted)) == "woken"
    assert ended(store, "w", 1, 2, 3) == [(1, COMPLETED, "e405"), (2, COMPLETED, "e3")]


def test_a_turn_publishes_to_another_of_the_same_commit_and_to_itself(store: Store) -> None:
    first, second = begun(store, "a"), begun(store, "b")
    answers, _ = store.turns.commit(
        [
            turn(first, waits=waits(1)),
            turn(second, waits=waits(1), events=(NewEvent("e1", "paid", "1"),)),
        ],
        [],
    )
    assert ended(store, "a") == ended(store, "b") == [(1, COMPLETED, "e1")]
    assert [row[0] for row in ready_rows(store)] == ["a", "b"]
    assert answers[1].outcome == "woken"


def test_of_a_lost_turn_nothing_is_published_and_nobody_waits(store: Store) -> None:
    claim = begun(store)
    assert (
        outcome(store, turn(claim, seq=5, waits=waits(1), events=(NewEvent("e1", "paid", "1"),)))
        == "lost"
    )
    assert publish(store) == "published"
    assert ended(store) == []


def test_events_and_children_of_one_turn_keep_their_order(store: Store) -> None:
    """The one that was published before the child was started is not for it; the one after it
    is."""
    events = (NewEvent("before", "paid", "1"), NewEvent("after", "paid", "2", later_us=1))
    child = workflow("w.1", parent_id="w", child_no=1, root_id="w", later_us=1)
    store.turns.commit([turn(begun(store), starts=(child,), events=events)], [])
    assert outcome(store, turn(claims(store)["w.1"], waits=waits(1))) == "woken"
    assert ended(store, "w.1") == [(1, COMPLETED, "after")]


def test_a_wait_whose_time_is_over_takes_no_event_any_more(store: Store, clock: Clock) -> None:
    parked(store, timeout_s=5.0)
    assert store.maintenance.fire_timers(9) == (0, NOW + 5_000_000)
    clock.forward(5)
    assert store.maintenance.fire_timers(9) == (1, None)
    assert ready_rows(store) == [("w", 0, 0)]
    publish(store)
    assert ended(store) == [(1, FAILED, None)]


def test_an_event_that_came_in_time_is_not_timed_out(store: Store, clock: Clock) -> None:
    parked(store, timeout_s=5.0)
    publish(store)
    clock.forward(9)
    assert store.maintenance.fire_timers(9) == (0, None)
    assert ended(store) == [(1, COMPLETED, "e1")]


def test_a_cancelled_wait_takes_no_event_and_leaves_it_to_others(store: Store) -> None:
    claim = begun(store)
    assert outcome(store, turn(claim, end="own", waits=waits(1, 2, timeout_s=5.0))) == "own"
    assert outcome(store, turn(claim, 1, cancels=((1, 1),))) == "parked"
    publish(store)
    assert ended(store, "w", 1, 2) == [(1, CANCELLED, None), (2, COMPLETED, "e1")]


def test_a_wait_that_is_held_back_looks_when_it_is_released_and_its_time_runs_from_then(
    store: Store, clock: Clock
) -> None:
    claim = begun(store)
    assert (
        outcome(store, turn(claim, end="own", waits=waits(1, 2, held=True, timeout_s=5.0))) == "own"
    )
    clock.forward(60)
    publish(store)
    assert (ended(store, "w", 1, 2), store.maintenance.fire_timers(9)) == ([], (0, None))
    assert outcome(store, turn(claim, 1, releases=((1, 2),))) == "woken"
    assert ended(store, "w", 1, 2) == [(1, COMPLETED, "e1")]
    assert store.maintenance.fire_timers(9) == (0, NOW + 65_000_000)


def test_one_who_has_ended_is_not_woken(store: Store) -> None:
    claim = begun(store)
    assert outcome(store, turn(claim, end="own", waits=waits(1, timeout_s=5.0))) == "own"
    assert outcome(store, turn(claim, 1, "finish", status=COMPLETED)) == "finished"
    publish(store)
    assert (ready_rows(store), store.maintenance.fire_timers(9)) == ([], (0, None))


def test_pruning_takes_old_events_that_nobody_holds(store: Store, clock: Clock) -> None:
    publish(store, "free")
    clock.forward(1)
    parked(store)
    publish(store, "taken")
    clock.forward(100)
    assert store.maintenance.prune_events(50, 10) == 1
    assert (publish(store, "taken"), publish(store, "free")) == ("duplicate", "published")
    assert ended(store) == [(1, COMPLETED, "taken")]


def test_each_takes_the_oldest_since_it_started() -> None:
    events = [Event(f"e{n}", "paid", n, "1", NOW + n) for n in (3, 1, 2)]
    waits = [
        Wait("a", 1, "paid", "{}", NOW),
        Wait("b", 1, "paid", "{}", NOW + 2),
        Wait("b", 2, "paid", "{}", NOW + 2),
    ]
    found = [
        (match.wait.execution_id, match.wait.n, match.event.id)
        for match in matches(waits, events, {("a", "e1")})
    ]
    assert found == [("a", 1, "e2"), ("b", 1, "e2"), ("b", 2, "e3")]


@pytest.mark.parametrize(
    ("wanted", "data", "fits"),
    [
        ({}, None, True),
        ({"id": 7}, {"id": 7, "more": 1}, True),
        ({"id": 7}, {"id": 8}, False),
        ({"order.id": 7}, {"order": {"id": 7.0}}, True),
        ({"order.id": 7}, {"order": [7]}, False),
        ({"id": 1}, {"id": True}, False),
        ({"id": [1, {"a": 0}]}, {"id": [1, {"a": False}]}, False),
        ({"id": [1, {"a": 0}]}, {"id": [1, {"a": 0}]}, True),
        ({"id": None}, {}, True),
        ({"id": None}, "text", True),
        ({"id": 1}, "text", False),
    ],
)
def test_what_fits_a_wait(wanted: Any, data: Any, fits: bool) -> None:
    found = matches(
        [Wait("w", 1, "paid", json.dumps(wanted), NOW)],
        [Event("e", "paid", 1, json.dumps(data), NOW)],
    )
    assert bool(found) == fits


def test_an_event_is_kept_for_its_time_and_found_until_then(store: Store, clock: Clock) -> None:
    claim = begun(store)
    publish(store)
    clock.forward(10)
    publish(store, "e2")
    assert (store.maintenance.prune_events(10.0, 10), publish(store)) == (0, "duplicate")
    clock.forward(0.001)
    assert (store.maintenance.prune_events(10.0, 10), store.maintenance.prune_events(10.0, 10)) == (
        1,
        0,
    )
    assert outcome(store, turn(claim, waits=waits(1))) == "woken"
    assert ended(store) == [(1, COMPLETED, "e2")]


def test_events_are_forgotten_in_batches_the_oldest_first(store: Store, clock: Clock) -> None:
    for n in range(5):
        publish(store, f"e{n}")
        clock.forward(1)
    assert [store.maintenance.prune_events(0.5, 2) for _ in range(3)] == [2, 2, 1]
    assert publish(store, "e4") == "published"


def test_an_event_that_somebody_has_taken_is_kept_until_its_end(store: Store, clock: Clock) -> None:
    parked(store)
    publish(store)
    clock.forward(100)
    assert (store.maintenance.prune_events(10.0, 10), ended(store)) == (0, [(1, COMPLETED, "e1")])
    assert outcome(store, turn(claims(store)["w"], 1, end="finish", status=COMPLETED)) == "finished"
    assert store.maintenance.prune_events(10.0, 10) == 1


def test_a_workflow_that_takes_events_in_a_loop_does_not_keep_them(
    store: Store, clock: Clock
) -> None:
    parked(store)
    publish(store)
    assert outcome(store, turn(claims(store)["w"], 1, settled=(1,), waits=waits(2))) == "parked"
    publish(store, "e2")
    clock.forward(100)
    assert store.maintenance.prune_events(10.0, 10) == 1
    assert rows(store, "SELECT n, event_id FROM event_waits") == [(2, "e2")]
    assert (ended(store, "w", 2), publish(store)) == ([(2, COMPLETED, "e2")], "published")


def test_an_event_that_one_execution_has_not_read_is_kept_though_another_has(
    store: Store, clock: Clock
) -> None:
    parked(store, "a")
    parked(store, "b")
    publish(store)
    assert outcome(store, turn(claims(store)["a"], 1, settled=(1,))) == "parked"
    clock.forward(100)
    assert (store.maintenance.prune_events(10.0, 10), ended(store, "b")) == (
        0,
        [(1, COMPLETED, "e1")],
    )


def test_pruning_of_executions_leaves_events_alone(store: Store, clock: Clock) -> None:
    publish(store)
    clock.forward(100)
    store.maintenance.prune(10.0, 10)
    assert publish(store) == "duplicate"


# keys

NAMES = st.sampled_from(["a", "b", "a.b", "", "."])
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 0.0, -0.0, 1, 1.0, 2**53 + 1, 10**400, 1e308]),
    st.text("ab1", max_size=2),
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=5,
)


@given(st.dictionaries(NAMES, VALUES, max_size=3), VALUES)
def test_whoever_fits_an_event_is_found_by_one_of_its_keys(
    wanted: dict[str, Any], data: Any
) -> None:
    text = json.dumps(wanted)
    if all(_same(_at_path(data, path), value) for path, value in json.loads(text).items()):
        assert key_of(text) in keys_of(data)


@given(st.dictionaries(NAMES, VALUES, max_size=3))
def test_what_wants_the_values_of_an_event_itself_is_found(data: dict[str, Any]) -> None:
    wanted = json.dumps({name: value for name, value in data.items() if "." not in name})
    assert key_of(wanted) in keys_of(data)


def test_an_event_reads_only_waits_that_may_want_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(50):
        wait = NewWait(1, "paid", json.dumps({"order.id": i} if i else {"vip": None}))
        assert outcome(store, turn(begun(store, f"w{i}"), waits=(wait,))) == "parked"
    read = list[int]()

    def spied(waits: list[Wait], *more: Any) -> Any:
        read.append(len(waits))
        return matches(waits, *more)

    for module in (sqlite, postgres):
        monkeypatch.setattr(module, "matches", spied)
    assert (
        store.messages.publish(NewEvent("e", "paid", '{"order": {"id": 7.0}, "n": 1}'))
        == "published"
    )
    assert set(read) == {2}, "that of w0, which only reading it tells, and that of w7"
    assert [row[0] for row in ready_rows(store)] == ["w0", "w7"]


def test_an_event_that_comes_later_with_an_earlier_time_is_found(store: Store) -> None:
    """The events of one turn are some microseconds apart, and may be ahead of the clock."""
    parked(store)
    store.messages.publish(NewEvent("first", "paid", "1", later_us=5))
    store.messages.publish(NewEvent("second", "paid", "2"))
    assert ended(store) == [(1, COMPLETED, "first")]
    claim = claims(store)["w"]
    assert outcome(store, turn(claim, seq=1, waits=waits(2))) == "woken"
    assert ended(store, "w", 2) == [(2, COMPLETED, "second")]


def test_a_loop_of_waits_reads_no_event_again(store: Store, clock: Clock) -> None:
    """However many it has taken, the next one is found among a few."""
    parked(store)
    for n in range(50):
        publish(store, f"e{n:02}")
    clock.forward(1)
    read = list[int]()
    for n in range(2, 50):
        claim = claims(store)["w"]
        with counting(store) as asked:
            assert outcome(store, turn(claim, seq=n - 1, waits=waits(n))) == "woken"
        read.append(asked.rows)
        store.claims.release({claim.id: claim.fence})
        assert ended(store, "w", n) == [(n, COMPLETED, f"e{n - 1:02}")]
    assert max(read[:-FIRST_EVENTS]) <= read[0] + 1
