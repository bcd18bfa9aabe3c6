"""What a store keeps of an execution that failed, and how it stores its retry, on every
database."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from rhythm.errors import NotRetryable, RetryTooLarge
from rhythm.limits import Limits
from rhythm.record import Record
from rhythm.store.interfaces.executions import (
    Family,
    Reach,
    Retry,
    Started,
    StoredSignal,
    StoredTimer,
)
from rhythm.store.interfaces.messages import NewSignal
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import UNREAD_ERROR, Done, Needed, NewTimer
from rhythm.store.lifecycle import COMPLETED, FAILED, PENDING, SUSPENDED
from tests.store.test_conformance import NOW, Clock, begun, claims, outcome, status, task, turn
from tests.support.stores import Stores, ready_rows

ANY = Reach(1000, 1_000_000)
LARGE = json.dumps("x" * 100_000)
OWNED = '[[9,"work",null,{}]]'


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(stores: Stores, clock: Clock) -> Store:
    return stores.empty_store(clock)


def failed(store: Store, clock: Clock, end: int = FAILED) -> None:
    """Workflow `w` with a timer, three tasks, a signal and a task without a row, ended after its
    third turn."""
    claim = begun(store, timeout_s=60.0)
    store.messages.signal(NewSignal("s", "w", "go", "1"), 10)
    done = (Done(1, "work", "default", "{}", FAILED, '"no"', 2, 0, '{"retries":1}'),)
    first = turn(
        claim,
        end="own",
        done=done,
        starts=(task("w.2"),),
        timers=(NewTimer(3, 5.0),),
        owned=OWNED,
        consumed=("s",),
    )
    assert outcome(store, first) == "own"
    step = turn(
        claim,
        1,
        "own",
        done=(Done(4, "work", "default", "{}", FAILED, '"no"', 1, 0, '{"retries":9}'),),
        owned=OWNED,
    )
    assert outcome(store, step) == "own"
    clock.forward(1)
    assert (
        outcome(store, turn(claim, 2, "finish", status=end, value="1", snapshot=None, owned=None))
        == "finished"
    )


def family_of(store: Store, id: str = "w") -> Family:
    """What a retry would be made of."""
    seen: list[Family] = []

    def look(family: Family) -> Family:
        seen.append(family)
        raise NotRetryable("only looking")

    with pytest.raises(NotRetryable):
        store.executions.retry(id, look)
    return seen[0]


def test_failed_workflow_keeps_what_a_retry_needs(store: Store, clock: Clock) -> None:
    failed(store, clock)
    family = family_of(store)
    root, done, queued, stepped = family.executions
    assert (root.id, root.status, root.seq, root.snapshot, root.owned, root.timeout_us) == (
        "w",
        FAILED,
        3,
        b"s",
        OWNED,
        60_000_000,
    )
    assert (done.id, done.status, done.source, done.error, done.attempt) == (
        "w.1",
        FAILED,
        "w.1",
        '"no"',
        2,
    )
    assert (queued.id, queued.status, queued.cancel_requested_at, queued.snapshot) == (
        "w.2",
        PENDING,
        NOW + 1_000_000,
        None,
    )
    assert (stepped.id, stepped.source) == ("w.4", "w.4")
    assert family.timers == (
        StoredTimer("w", 3, 5_000_000, None, NOW + 5_000_000, None, NOW + 1_000_000),
    )
    assert family.signals == (StoredSignal("s", "w", 1, "go", NOW, 1, "s"),)


def test_timers_of_a_failed_workflow_never_fire(store: Store, clock: Clock) -> None:
    failed(store, clock)
    clock.forward(60)
    store.maintenance.fire_timers(10)
    assert family_of(store).timers[0].fired_at is None


def test_timers_of_a_completed_workflow_are_gone(store: Store, clock: Clock) -> None:
    failed(store, clock, COMPLETED)
    assert family_of(store).timers == ()


def renewed(family: Family) -> Family:
    """A retry by hand: a suspended workflow with a task to run, one that is held back, one that is
    done, timers and a signal."""
    root, done, _, _ = family.executions
    plain = dict(
        root_id="v",
        created_at=None,
        started_at=None,
        finished_at=None,
        error=None,
        status=PENDING,
        fence=None,
    )
    new = root.replace(**plain).replace(
        id="v", status=SUSPENDED, retry_of="w", awaiting='{"n":1}', statement=4
    )
    copied = done.replace(id="v.1", parent_id="v", root_id="v", ends_alike=True)
    again, held = (
        done.replace(**plain, id=f"v.{n}", parent_id="v", child_no=n, attempt=0, held=n == 5)
        for n in (4, 5)
    )
    inner = root.replace(
        id="v.6",
        parent_id="v",
        child_no=6,
        root_id="v",
        snapshot=None,
        owned="[]",
        awaiting="null",
        statement=0,
        ends_alike=True,
    )
    (old,) = family.timers
    timers = (
        old.replace(execution_id="v", fired_at=old.fire_at, cancelled_at=None),
        StoredTimer("v", 8, 2_000_000, None, None, None, None, True),
    )
    signals = (family.signals[0].replace(id="t", execution_id="v", consumed_seq=None),)
    return Family((new, copied, again, held, inner), timers, signals)


def test_retry_is_stored_whole_and_what_is_not_held_back_can_be_claimed(
    store: Store, clock: Clock
) -> None:
    failed(store, clock)
    before = store.reading.get(["w", "w.1", "w.2"])
    assert store.executions.retry("w", renewed) == Started("v", created=True)
    assert store.reading.get(["w", "w.1", "w.2"]) == before
    assert {child.id: child.status for child in store.reading.children("v")} == {
        "v.1": "failed",
        "v.4": "pending",
        "v.5": "pending",
        "v.6": "failed",
    }
    assert {row[0] for row in ready_rows(store)} >= {"v", "v.4"}
    assert not {row[0] for row in ready_rows(store)} & {"v.1", "v.5", "v.6"}
    (loaded,) = store.turns.load(["v"])
    assert (loaded.seq, loaded.snapshot, loaded.owned, loaded.status, loaded.retry_of) == (
        1,
        b"s",
        OWNED,
        SUSPENDED,
        "w",
    )
    assert [
        (step.cause, step.from_status, step.to_status) for step in store.reading.history("v")
    ] == [("retry", "pending", "suspended")]
    assert [(mail.id, mail.payload) for mail in store.messages.mail(["v"])["v"]] == [("t", "1")]
    assert [(step.to_status, step.error) for step in store.reading.history("v.6")] == [
        ("failed", "1")
    ]
    new = store.reading.get(["v", "v.1", "v.4", "v.6"])
    assert {id: (row.inputs, row.result, row.error) for id, row in new.items()} == {
        "v": ("null", None, None),
        "v.1": ("{}", None, '"no"'),
        "v.4": ("{}", None, None),
        "v.6": ("null", None, "1"),
    }
    claimed = store.claims.claim("a", ["default"], 10, 30.0)
    assert claimed.tasks["v.4"].options == '{"retries":1}'
    assert store.reading.get(["v"])["v"].awaiting == '{"n":1}'


def test_timer_that_begins_anew_fires_after_its_whole_delay(store: Store, clock: Clock) -> None:
    failed(store, clock)
    clock.forward(100)
    store.executions.retry("w", renewed)
    assert store.maintenance.fire_timers(10)[1] == NOW + 103_000_000
    timers = (
        {timer.n: timer for timer in family_of(store, "v").timers}
        if store.executions.cancel(["v"])
        else {}
    )
    assert (timers[3].fired_at, timers[8].fire_at) == (NOW + 5_000_000, NOW + 103_000_000)


def test_retried_execution_takes_turns_like_any_other(store: Store, clock: Clock) -> None:
    failed(store, clock)
    store.executions.retry("w", renewed)
    claim = claims(store)["v"]
    assert outcome(store, turn(claim, 1, "finish", status=COMPLETED)) == "finished"
    assert status(store, "v") == "completed"


def test_while_a_retry_has_not_ended_it_is_the_only_one(store: Store, clock: Clock) -> None:
    failed(store, clock)
    store.executions.retry("w", renewed)
    assert store.executions.retry("w", renewed) == Started("v", created=False)
    assert store.executions.retry("nobody", renewed) is None


def test_retries_of_an_execution_are_known_oldest_first_with_their_status(
    store: Store, clock: Clock
) -> None:
    failed(store, clock)
    assert (store.executions.retries("w"), store.executions.family("w", ANY).retries) == ([], ())
    store.executions.retry("w", renewed)
    assert store.executions.retries("w") == [Retry("v", SUSPENDED)]
    assert outcome(store, turn(claims(store)["v"], 1, "finish", status=COMPLETED)) == "finished"
    clock.forward(1)
    begun(store, "a", retry_of="w")
    assert store.executions.retries("w") == [Retry("v", COMPLETED), Retry("a", PENDING)]


def test_family_is_what_a_retry_would_be_made_of(store: Store, clock: Clock) -> None:
    failed(store, clock)
    store.executions.retry("w", renewed)
    assert outcome(store, turn(claims(store)["v"], 1, "finish", status=COMPLETED)) == "finished"
    assert store.executions.family("w", ANY) == family_of(store)
    assert store.executions.family("w", ANY).retries == (Retry("v", COMPLETED),)
    assert store.executions.family("nobody", ANY) == Family(())


def large(store: Store, clock: Clock, end: int = FAILED) -> None:
    """Workflow `w` that failed, below it a task whose inputs, result or error are large, with a
    large signal in its mailbox."""
    claim = begun(store)
    store.messages.signal(NewSignal("s", "w", "go", LARGE), 10)
    done = (Done(1, "work", "default", LARGE, end, LARGE, 1, 0, "{}"),)
    assert (
        outcome(store, turn(claim, end="own", done=done, starts=(task("w.2", inputs=LARGE),)))
        == "own"
    )
    assert (
        outcome(
            store, turn(claim, 1, "finish", status=FAILED, value="1", snapshot=None, owned=None)
        )
        == "finished"
    )


def size_of(rows: Iterable[Record]) -> int:
    return sum(
        len(value)
        for row in rows
        for value in (getattr(row, name) for name in row._fields)
        if isinstance(value, str | bytes)
    )


@pytest.mark.parametrize("end", [COMPLETED, FAILED])
def test_what_is_large_is_not_read_for_a_retry_and_is_in_it(
    store: Store, clock: Clock, end: int
) -> None:
    large(store, clock, end)
    family = family_of(store)
    assert size_of(family.executions) + size_of(family.signals) < 1000
    store.executions.retry("w", lambda family: copies(family, "v"))
    assert [
        row.replace(id="", parent_id="", root_id="") for row in store.reading.children("v")
    ] == [row.replace(id="", parent_id="", root_id="") for row in store.reading.children("w")]
    assert [mail.payload for mail in store.messages.mail(["v"])["v"]] == [LARGE]


def copies(family: Family, id: str) -> Family:
    """A retry by hand that has everything as it was."""
    rows = (
        row.replace(id=id + row.id[1:], parent_id=row.parent_id and id, root_id=id, ends_alike=True)
        for row in family.executions
    )
    first, *others = (row.replace(awaiting="null") for row in rows)
    signals = tuple(
        signal.replace(id=f"{id}{signal.id}", execution_id=id) for signal in family.signals
    )
    return Family((first.replace(retry_of="w"), *others), (), signals)


@pytest.mark.parametrize("limits", [Limits(retry_rows=5), Limits(retry_bytes=len(OWNED))])
def test_retry_that_would_read_too_much_is_refused_before_it_is_read(
    store: Store, clock: Clock, limits: Limits
) -> None:
    """Below `w` are three; with it, a timer and a signal these are six rows."""
    failed(store, clock)
    store.limits = limits
    read: list[Family] = []
    with pytest.raises(
        RetryTooLarge,
        match=(
            r"more below it than a retry may read .*: retry it from the start \(`rhythm retry "
            r"w --from"
        ),
    ):
        store.executions.retry("w", lambda family: read.append(family) or family)
    with pytest.raises(RetryTooLarge):
        store.executions.family("w", Reach(limits.retry_rows, limits.retry_bytes))
    assert (read, store.executions.retries("w")) == ([], [])
    store.limits = limits.replace(retry_rows=6, retry_bytes=len(OWNED) + 1)
    assert store.executions.retry("w", renewed) == Started("v", created=True)


def test_retry_from_the_start_reads_nothing_but_the_execution_itself(
    store: Store, clock: Clock
) -> None:
    failed(store, clock)
    store.limits = Limits(retry_rows=3)
    read: list[Family] = []

    def again(family: Family) -> Family:
        read.append(family)
        (root,) = family.executions
        return Family(
            (
                root.replace(
                    id="v",
                    root_id="v",
                    status=PENDING,
                    retry_of="w",
                    finished_at=None,
                    owned="[]",
                    awaiting="null",
                ),
            )
        )

    assert store.executions.retry("w", again, whole=False) == Started("v", created=True)


def test_outcomes_for_those_who_look_are_short(store: Store) -> None:
    claim = begun(store)
    short = '{"code":"Timeout","message":"","data":null}'
    ends = ((COMPLETED, LARGE), (FAILED, LARGE), (FAILED, short))
    done = tuple(
        Done(n, "work", "default", "{}", status, value, 1, 0, "{}")
        for n, (status, value) in enumerate(ends, 1)
    )
    assert outcome(store, turn(claim, end="own", done=done, timers=(NewTimer(4, 0.0),))) == "own"
    store.maintenance.fire_timers(10)
    whole = {row.n: row for row in store.turns.outcomes([Needed("w", (1, 2, 3, 4))])["w"]}
    brief = {
        row.n: row for row in store.turns.outcomes([Needed("w", (1, 2, 3, 4))], brief=True)["w"]
    }
    assert {n: row.value for n, row in brief.items()} == {
        1: "null",
        2: UNREAD_ERROR,
        3: short,
        4: "null",
    }
    assert {n: row.replace(value=whole[n].value) for n, row in brief.items()} == whole
