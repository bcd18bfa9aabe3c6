"""What every store promises, one rule at a time, on every database; the clock is the test's."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rhythm.limits import TEXTS
from rhythm.store.access import Actor
from rhythm.store.attributes import with_attributes
from rhythm.store.interfaces.claims import Claim
from rhythm.store.interfaces.definitions import Definition
from rhythm.store.interfaces.executions import ExecutionStore, NewExecution, OutdatedError
from rhythm.store.interfaces.messages import MailAsked, NewSignal
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import (
    Committed,
    Done,
    Needed,
    NewTimer,
    NextEnded,
    NthUnfinished,
    TaskEnd,
    TurnCommit,
    Unfinished,
)
from rhythm.store.interfaces.workers import Beat
from rhythm.store.lifecycle import BLOCKED, CANCELLED, COMPLETED, FAILED, SUSPENDED, TASK, WORKFLOW
from tests.support.stores import Stores, ready_rows, rows

NOW = 1_800_000_000_000_000
TTL = 30.0


class Clock:
    def __init__(self) -> None:
        self.us = NOW

    def __call__(self) -> int:
        return self.us

    def forward(self, seconds: float) -> None:
        self.us += int(seconds * 1e6)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(stores: Stores, clock: Clock) -> Store:
    return stores.empty_store(clock)


def workflow(id: str = "w", **changes: Any) -> NewExecution:
    return NewExecution(id, WORKFLOW, "main", "default", version="1").replace(**changes)


def task(id: str, **changes: Any) -> NewExecution:
    parent, _, n = id.rpartition(".")
    new = NewExecution(
        id,
        TASK,
        "work",
        "default",
        parent_id=parent or None,
        child_no=int(n) if parent else 0,
        root_id=parent or id,
    )
    return new.replace(**changes)


def claims(
    store: Store, worker: str = "a", limit: int = 10, queues: tuple[str, ...] = ("default",)
) -> dict[str, Claim]:
    return {claim.id: claim for claim in store.claims.claim(worker, queues, limit, TTL)}


def begun(store: Store, id: str = "w", **changes: Any) -> Claim:
    """A workflow that has been started and claimed."""
    store.executions.start([workflow(id, **changes)])
    return claims(store)[id]


def turn(claim: Claim, seq: int = 0, end: str = "park", **changes: Any) -> TurnCommit:
    return TurnCommit(
        claim.id, seq, claim.fence, claim.wakes, end, "a", "turn", snapshot=b"s"
    ).replace(**changes)


def commit(store: Store, *turns: TurnCommit) -> Committed | list[Committed]:
    answers = store.turns.commit(turns, [])[0]
    return answers[0] if len(answers) == 1 else answers


def outcome(store: Store, turn: TurnCommit) -> str:
    return store.turns.commit([turn], [])[0][0].outcome


def end(
    store: Store, claim: Claim, status: int = COMPLETED, value: str = "1", **changes: Any
) -> bool:
    return (
        claim.id
        in store.turns.commit(
            [], [TaskEnd(claim.id, claim.fence, status, value, worker="a").replace(**changes)]
        )[1]
    )


def status(store: Store, id: str) -> str:
    return store.reading.get([id])[id].status


def running_task(store: Store, **changes: Any) -> Claim:
    """Task `w.1` of a parked workflow, claimed."""
    claim = begun(store)
    assert outcome(store, turn(claim, starts=(task("w.1", **changes),))) == "parked"
    return claims(store)["w.1"]


def send(store: Store, id: str, to: str = "w", limit: int = 10) -> str:
    return store.messages.signal(NewSignal(id, to, "go", json.dumps(id)), limit)


# schema and definitions


def test_migrations_run_once(store: Store) -> None:
    assert store.schema.version() == store.schema.migrations()[-1].number
    assert store.schema.migrate() == []


def test_the_version_registered_last_is_current_also_an_older_one(store: Store) -> None:
    old, new = (
        Definition("main", "1", "flow", "old", "{}", "f"),
        Definition("main", "2", "flow", "new", "{}", "f"),
    )
    for definition in (old, new, new):
        store.definitions.register([definition])
    assert (
        store.definitions.get("main"),
        store.definitions.get("main", "1"),
        store.definitions.get("none"),
    ) == (new, old, None)
    store.definitions.register([old, Definition("other", "1", "flow", "", "{}", "f")])
    assert [
        (listed.name, listed.version, listed.file) for listed in store.definitions.after("", 9)
    ] == [
        ("main", "1", "f"),
        ("other", "1", "f"),
    ]
    assert {
        name: listed.version
        for name, listed in store.definitions.current(["main", "other", "none"]).items()
    } == {
        "main": "1",
        "other": "1",
    }
    assert (store.definitions.program("main", "2"), store.definitions.program("main", "3")) == (
        "{}",
        None,
    )


# starting


def test_a_start_with_the_same_id_changes_nothing(store: Store) -> None:
    assert store.executions.start([workflow(inputs="1")])[0].created
    again = store.executions.start([workflow(inputs="2"), workflow("x")])
    assert [(s.id, s.created) for s in again] == [("w", False), ("x", True)]
    assert store.reading.get(["w"])["w"].inputs == "1"


def test_a_start_with_a_used_key_gives_the_one_that_has_it(store: Store) -> None:
    store.executions.start([workflow(key="k")])
    again = store.executions.start(
        [workflow("x", key="k"), workflow("y", key="other"), workflow("z", name="else", key="k")]
    )
    assert [(s.id, s.created) for s in again] == [("w", False), ("y", True), ("z", True)]
    assert [row[0] for row in ready_rows(store)] == ["w", "y", "z"]


def test_the_same_start_twice_in_one_batch_is_one(store: Store) -> None:
    assert [
        s.created
        for s in store.executions.start(
            [workflow(), workflow(), workflow("x", key="k"), workflow("y", key="k")]
        )
    ] == [
        True,
        False,
        True,
        False,
    ]


def test_text_comes_back_as_it_went_in(store: Store) -> None:
    inputs = '{"b": 1.0, "a":1e2,  "é": "\\u0000 💡 \'%s"}'
    store.executions.start([workflow(inputs=inputs)])
    assert store.reading.get(["w"])["w"].inputs == inputs


def test_a_delayed_start_is_free_when_it_is_due_and_not_before(store: Store, clock: Clock) -> None:
    store.executions.start([workflow(delay_s=5.0)])
    clock.forward(4.999999)
    assert store.maintenance.fire_timers(10) == (0, NOW + 5_000_000)
    assert send(store, "s") == "sent"
    assert claims(store) == {}
    clock.forward(0.000001)
    assert store.maintenance.fire_timers(10) == (1, None)
    assert list(claims(store)) == ["w"]


@pytest.mark.parametrize(
    "alike",
    [
        workflow(),
        workflow(timeout_s=60.0, delay_s=5.0, queue="mail", priority=3, attributes='{"a": 1}'),
        workflow(started_by="ann", authority='["x"]', contributors=("ann", "bob")),
        workflow(type=TASK, version="", max_attempts=4, options='{"retries": 3}'),
        workflow(type=TASK, version="", delay_s=1.5),
    ],
)
def test_starts_that_are_alike_store_what_the_same_starts_store_one_by_one(
    stores: Stores, clock: Clock, alike: NewExecution
) -> None:
    inputs = {f"w{i:03}": f'{{"n": {i}, "é": "\\u0001\\n\\" 💡 %s"}}' for i in range(300)}
    one_by_one = [alike.replace(id=id, inputs=text) for id, text in inputs.items()]

    def stored(start: Callable[[ExecutionStore], object]) -> list[Any]:
        store = stores.empty_store(clock)
        start(store.executions)
        tables = "executions", "workflow_execution_context", "ready", "execution_contributors"
        return [sorted(rows(store, f"SELECT * FROM {table}")) for table in tables]

    apart = stored(lambda executions: executions.start(one_by_one))
    assert stored(lambda executions: executions.start_alike(alike, inputs)) == apart
    assert [len(table) for table in apart][::2] == [300, 300]


def test_starts_that_are_alike_are_claimed_in_the_order_of_their_ids(
    store: Store, clock: Clock
) -> None:
    store.executions.start_alike(workflow(delay_s=5.0), {f"w{i}": "1" for i in range(3)})
    assert claims(store) == {}
    clock.forward(5.0)
    assert store.maintenance.fire_timers(10) == (3, None)
    assert list(claims(store)) == ["w0", "w1", "w2"]


def test_starts_on_a_version_that_is_not_the_current_one_start_nothing(store: Store) -> None:
    def start(alike: NewExecution, *ids: str) -> None:
        store.executions.start_alike(alike, dict.fromkeys(ids, "1"), if_current=True)

    with pytest.raises(OutdatedError):
        start(workflow(), "a")
    store.definitions.register([Definition("main", "1", "flow", "one", "{}")])
    start(workflow(), "b", "c")
    store.definitions.register([Definition("main", "2", "flow", "two", "{}")])
    for alike in (workflow(), workflow(contributors=("ann",))):
        with pytest.raises(OutdatedError):
            start(alike, "d", "e")
    start(workflow(version="2"), "f")
    store.definitions.register([Definition("main", "1", "flow", "one", "{}")])
    start(workflow(), "g")
    assert [row[0] for row in ready_rows(store)] == ["b", "c", "f", "g"]
    assert [*store.reading.get("abcdefg")] == ["b", "c", "f", "g"]


# claims


def test_claims_go_by_priority_then_by_age_then_by_id(store: Store, clock: Clock) -> None:
    store.executions.start([workflow("d"), workflow("c", priority=5)])
    clock.forward(1)
    store.executions.start([workflow("b"), workflow("a"), workflow("e", priority=5)])
    assert list(claims(store)) == ["c", "e", "d", "a", "b"]


def test_resumes_come_before_everything_else(store: Store) -> None:
    claim = begun(store)
    assert outcome(store, turn(claim)) == "parked"
    store.executions.start([workflow("x", priority=9)])
    send(store, "s")
    assert list(claims(store)) == ["w", "x"]


def test_a_claim_takes_only_its_queues_and_not_more_than_its_limit(store: Store) -> None:
    store.executions.start(
        [workflow(f"d{i}") for i in range(3)]
        + [workflow("m", queue="mail"), workflow("o", queue="other")]
    )
    assert list(claims(store, limit=2, queues=("mail", "default"))) == ["m", "d0"]
    assert list(claims(store)) == ["d1", "d2"]


def test_two_claimers_get_different_rows_and_rising_fences(
    store: Store, stores: Stores, clock: Clock
) -> None:
    store.executions.start([workflow(f"w{i}") for i in range(4)])
    first, second = claims(store, "a", 2), claims(stores.store(clock), "b", 9)
    assert (list(first), list(second)) == (["w0", "w1"], ["w2", "w3"])
    assert max(c.fence for c in first.values()) < min(c.fence for c in second.values())
    assert store.claims.claimed_by("b") == {id: claim.fence for id, claim in second.items()}


def test_extending_tells_the_wakes_of_what_is_still_held(store: Store, clock: Clock) -> None:
    claim, other = begun(store), begun(store, "x")
    send(store, "s")
    store.claims.release({"x": other.fence})
    clock.forward(TTL - 1)
    assert store.claims.extend({"w": claim.fence, "x": other.fence, "none": 1}, TTL) == {"w": 1}
    clock.forward(TTL - 1)
    assert store.maintenance.rescue(10, 3) == []


def test_a_released_claim_is_free_and_its_fence_is_worth_nothing(store: Store) -> None:
    claim = running_task(store)
    store.claims.release({"w.1": claim.fence - 1})
    assert store.claims.claimed_by("a") == {"w.1": claim.fence}
    store.claims.release({"w.1": claim.fence})
    assert store.claims.claimed_by("a") == {}
    assert not end(store, claim)
    again = claims(store)["w.1"]
    assert (again.attempt, again.fence > claim.fence) == (1, True)


def test_dropping_needs_the_fence(store: Store) -> None:
    claim = begun(store)
    store.claims.drop({"w": claim.fence + 1})
    assert ready_rows(store) == [("w", 1, 0)]
    store.claims.drop({"w": claim.fence})
    assert ready_rows(store) == []


# parking and waking


def test_a_wake_before_the_park_refuses_it(store: Store) -> None:
    claim = begun(store)
    send(store, "s")
    assert store.claims.park([claim]) == [Committed("w", "woken", 1)]
    assert store.claims.park([claim.__class__(**{**claim.__dict__, "wakes": 1})]) == [
        Committed("w", "parked")
    ]


def test_a_wake_by_what_has_ended_before_the_park_refuses_it(store: Store) -> None:
    claim = begun(store)
    assert outcome(store, turn(claim, end="own", starts=(task("w.1"),))) == "own"
    body = claims(store)["w.1"]
    assert store.turns.commit([], [TaskEnd("w.1", body.fence, COMPLETED, "1")])[1] == {"w.1"}
    assert store.claims.park([claim]) == [Committed("w", "woken", 1)]


def test_a_wake_after_the_park_makes_the_row_again(store: Store) -> None:
    claim = begun(store)
    assert store.claims.park([claim])[0].outcome == "parked"
    assert ready_rows(store) == []
    send(store, "s")
    again = claims(store)["w"]
    assert again.fence > claim.fence
    assert store.claims.park([claim])[0].outcome == "lost"


def test_many_wakes_of_one_who_sleeps_are_one(store: Store) -> None:
    store.claims.park([begun(store)])
    for i in range(3):
        send(store, f"s{i}")
    assert ready_rows(store) == [("w", 0, 0)]


def test_a_turn_that_would_park_is_committed_but_woken(store: Store) -> None:
    claim = begun(store)
    send(store, "s")
    assert commit(store, turn(claim)) == Committed("w", "woken", 1)
    assert store.turns.load(["w"])[0].seq == 1


def test_a_turn_that_goes_on_hears_of_wakes(store: Store) -> None:
    claim = begun(store)
    assert commit(store, turn(claim, end="own")) == Committed("w", "own", 0)
    send(store, "s")
    assert commit(store, turn(claim, 1, "own")) == Committed("w", "own", 1)
    assert commit(store, turn(claim, 2, "own", timers=(NewTimer(1, 1.0),))) == Committed(
        "w", "own", 1
    )


def test_a_yielded_workflow_can_be_claimed_by_others(store: Store) -> None:
    assert outcome(store, turn(begun(store), end="yield")) == "parked"
    assert list(claims(store, "b")) == ["w"]


# the guards of a commit


@pytest.mark.parametrize("how", ["own", "park", "finish"])
def test_a_turn_with_another_seq_is_lost_and_writes_nothing(store: Store, how: str) -> None:
    claim = begun(store)
    made = dict(starts=(task("w.1"),), timers=(NewTimer(2, 1.0),)) if how != "own" else {}
    assert outcome(store, turn(claim, 1, how, **made)) == "lost"
    assert (
        store.reading.history("w"),
        store.reading.children("w"),
        store.maintenance.fire_timers(9),
    ) == ([], [], (0, None))
    assert ready_rows(store) == [("w", 1, 0)]


@pytest.mark.parametrize("how", ["own", "park", "finish"])
def test_the_same_turn_twice_is_applied_once(store: Store, how: str) -> None:
    claim = begun(store)
    first = turn(claim, end=how, status=COMPLETED if how == "finish" else SUSPENDED)
    assert outcome(store, first) != "lost"
    assert outcome(store, first) == "lost"
    assert len(store.reading.history("w")) == 1


@pytest.mark.parametrize("how", ["own", "park"])
def test_after_a_rescue_the_old_owner_is_refused_and_the_new_one_is_not(
    store: Store, clock: Clock, how: str
) -> None:
    old = begun(store)
    clock.forward(TTL + 1)
    assert store.maintenance.rescue(10, 3) == ["w"]
    assert store.turns.load(["w"])[0].fence > old.fence
    assert outcome(store, turn(old, end=how)) == "lost"
    new = claims(store, "b")["w"]
    assert new.crashes == 1
    assert outcome(store, turn(old, end=how)) == "lost"
    assert outcome(store, turn(new, end=how)) != "lost"


def test_a_turn_under_an_older_fence_than_the_contexts_is_lost(store: Store) -> None:
    claim = begun(store)
    rows(store, f"UPDATE workflow_execution_context SET fence = {claim.fence + 1}")
    assert [outcome(store, turn(claim, end=how)) for how in ("own", "park", "finish")] == [
        "lost"
    ] * 3
    assert (store.reading.history("w"), ready_rows(store)) == ([], [("w", 1, 0)])


@pytest.mark.parametrize("how", ["park", "finish"])
def test_a_turn_of_one_who_gave_its_claim_back_is_lost(store: Store, how: str) -> None:
    old = begun(store)
    store.claims.release({"w": old.fence})
    assert outcome(store, turn(old, end=how)) == "lost"
    new = claims(store, "b")["w"]
    assert outcome(store, turn(old, end=how)) == "lost"
    assert (store.reading.history("w"), store.claims.claimed_by("b")) == ([], {"w": new.fence})


def test_a_commit_takes_one_turn_of_each_workflow(store: Store) -> None:
    claim = begun(store)
    with pytest.raises(ValueError, match="one turn of each workflow"):
        store.turns.commit([turn(claim, 0, "own"), turn(claim, 1, "own")], [])
    assert store.reading.history("w") == []


def test_one_lost_turn_takes_nothing_with_it(store: Store) -> None:
    good, bad = begun(store), begun(store, "x")
    answers = store.turns.commit([turn(bad, 7), turn(good, starts=(task("w.1"),))], [])[0]
    assert [answer.outcome for answer in answers] == ["lost", "parked"]
    assert status(store, "w.1") == "pending"


def test_a_turn_writes_the_ends_of_the_tasks_its_owner_ran(store: Store) -> None:
    claim = begun(store)
    done = (
        Done(1, "work", "default", "{}", COMPLETED, '"yes"', 1, 500),
        Done(2, "work", "default", "{}", FAILED, '"no"', 2, 0),
    )
    assert outcome(store, turn(claim, end="own", done=done)) == "own"
    rows = store.reading.children("w")
    assert [(r.id, r.status, r.result, r.error, r.attempt) for r in rows] == [
        ("w.1", "completed", '"yes"', None, 1),
        ("w.2", "failed", None, '"no"', 2),
    ]
    assert (rows[0].started_at, rows[0].finished_at) == (NOW - 500, NOW)
    assert [o.n for o in store.turns.outcomes([Needed("w", (1, 2, 3))])["w"]] == [1, 2]


def test_history_has_no_gaps_and_the_witness_tells_the_fence(store: Store) -> None:
    claim = begun(store)
    for seq in range(3):
        assert outcome(store, turn(claim, seq, "own")) == "own"
    assert outcome(store, turn(claim, 3, "finish", status=COMPLETED, value="7")) == "finished"
    assert [(t.seq, t.from_status, t.to_status, t.fence) for t in store.reading.history("w")] == [
        (1, "pending", "suspended", claim.fence),
        (2, "suspended", "suspended", claim.fence),
        (3, "suspended", "suspended", claim.fence),
        (4, "suspended", "completed", claim.fence),
    ]
    assert (store.turns.witness("w", 4), store.turns.witness("w", 5)) == (claim.fence, None)


def test_a_claim_brings_the_rows_of_what_it_claims(store: Store) -> None:
    parked = turn(begun(store, inputs='"mine"'), starts=(task("w.1", inputs='"its"'),))
    assert outcome(store, parked) == "parked"
    store.executions.start([workflow("x", inputs='"x"')])
    claimed = store.claims.claim("a", ["default"], 10, TTL)
    assert [claim.id for claim in claimed] == ["w.1", "x"]
    assert {id: task.inputs for id, task in claimed.tasks.items()} == {"w.1": '"its"'}
    (loaded,) = store.turns.load(["x"])
    assert claimed.workflows == {"x": loaded}
    assert loaded.inputs == '"x"'


def test_a_claim_brings_the_rows_of_no_other_claim(store: Store) -> None:
    store.executions.start([workflow("x"), task("t")])
    first = store.claims.claim("a", ["default"], 10, TTL)
    assert (list(first.workflows), list(first.tasks)) == (["x"], ["t"])
    none = store.claims.claim("a", ["default"], 10, TTL)
    assert (none, none.workflows, none.tasks) == ([], {}, {})
    store.executions.start([workflow("y")])
    last = store.claims.claim("a", ["default"], 10, TTL)
    assert (list(last.workflows), list(last.tasks)) == (["y"], [])


def test_whatever_stands_in_an_id_its_row_comes_with_the_claim(store: Store) -> None:
    ids = ["a,b", '"', "{}", "NULL", "\\", "a b", "'", "é", "[1]"]
    store.executions.start([workflow(id) for id in ids])
    store.executions.start([task(f"t {id}") for id in ids])
    claimed = store.claims.claim("a", ["default"], 100, TTL)
    assert {claim.id for claim in claimed} == {*ids, *(f"t {id}" for id in ids)}
    assert (sorted(claimed.workflows), sorted(claimed.tasks)) == (
        sorted(ids),
        sorted(f"t {id}" for id in ids),
    )


def test_what_does_not_exist_is_claimed_without_a_row(store: Store) -> None:
    for id, kind in (("gone", 0), ("gone.1", 1)):
        rows(
            store,
            "INSERT INTO ready (id, kind, queue, priority, order_key, state) "
            "VALUES (?, ?, 'default', 0, 0, 0)",
            (id, kind),
        )
    claimed = store.claims.claim("a", ["default"], 10, TTL)
    assert [claim.id for claim in claimed] == ["gone", "gone.1"]
    assert (claimed.workflows, claimed.tasks) == ({}, {})


def test_a_workflow_has_mail_until_it_has_consumed_all_of_it(store: Store) -> None:
    def has_mail(id: str = "w") -> bool:
        return store.turns.load([id])[0].has_mail

    store.executions.start([workflow("w"), workflow("x")])
    assert not has_mail()
    assert send(store, "one") == send(store, "two") == "sent"
    claimed = store.claims.claim("a", ["default"], 10, TTL)
    assert {id: row.has_mail for id, row in claimed.workflows.items()} == {"w": True, "x": False}
    held = {claim.id: claim for claim in claimed}["w"]
    assert outcome(store, turn(held, end="own", consumed=("one",))) == "own"
    assert has_mail()
    assert outcome(store, turn(held, 1, end="own", consumed=("two",))) == "own"
    assert not has_mail()


def test_a_turn_keeps_its_snapshot_unless_it_brings_a_new_one(store: Store) -> None:
    claim = begun(store)
    assert outcome(store, turn(claim, end="own", snapshot=b"\x00one", owned='[["x"]]')) == "own"
    assert outcome(store, turn(claim, 1, "park", snapshot=None, attributes='{"a": 1}')) == "parked"
    loaded = store.turns.load(["w", "none"])
    assert [(row.snapshot, row.owned, row.seq) for row in loaded] == [(b"\x00one", "[]", 2)]
    assert store.reading.get(["w"])["w"].attributes == '{"a":1}'


def test_attributes_of_every_turn_are_kept_also_of_the_last(store: Store) -> None:
    claim = begun(store, attributes='{"a":1,"b":1}')
    assert outcome(store, turn(claim, end="own", attributes='{"b":2}')) == "own"
    assert (
        outcome(store, turn(claim, 1, "finish", status=COMPLETED, attributes='{"c":"é"}'))
        == "finished"
    )
    assert store.reading.get(["w"])["w"].attributes == '{"a":1,"b":2,"c":"é"}'


def test_of_too_many_attributes_those_go_that_were_set_longest_ago() -> None:
    before = "{" + ",".join(f'"a{i}":{i}' for i in range(TEXTS.attributes)) + "}"
    merged = json.loads(with_attributes(before, '{"a7":8,"x":null}'))
    assert len(merged) == TEXTS.attributes
    assert (merged["a7"], merged["x"], "a0" in merged, "a1" in merged) == (8, None, False, True)
    large = json.loads(
        with_attributes('{"old":1}', json.dumps({f"b{i}": "é" * 2100 for i in range(4)}))
    )
    assert list(large) == [f"b{i}" for i in range(4)]


# ends


def test_the_end_of_a_task_wakes_its_parent(store: Store) -> None:
    claim = running_task(store)
    assert end(store, claim, value='"v"')
    assert not end(store, claim)
    assert (status(store, "w.1"), ready_rows(store)) == ("completed", [("w", 0, 0)])
    assert [(o.n, o.value) for o in store.turns.outcomes([Needed("w", (1,))])["w"]] == [(1, '"v"')]


def test_of_two_ends_of_a_task_in_one_commit_the_one_with_the_newest_fence_is_taken(
    store: Store,
) -> None:
    old = running_task(store)
    store.claims.release({"w.1": old.fence})
    new = claims(store)["w.1"]
    ends = [
        TaskEnd("w.1", new.fence, COMPLETED, '"new"'),
        TaskEnd("w.1", old.fence, COMPLETED, '"old"'),
    ]
    assert store.turns.commit([], ends)[1] == {"w.1"}
    assert store.reading.get(["w.1"])["w.1"].result == '"new"'


def test_an_end_and_the_turn_of_its_parent_in_one_commit(store: Store) -> None:
    claim = running_task(store)
    send(store, "s")
    parent = claims(store)["w"]
    answers, accepted = store.turns.commit(
        [turn(parent, 1)], [TaskEnd("w.1", claim.fence, COMPLETED, "1")]
    )
    assert (accepted, answers) == ({"w.1"}, [Committed("w", "woken", 1)])


def test_a_finished_child_workflow_wakes_its_parent(store: Store) -> None:
    parent = begun(store)
    assert (
        outcome(
            store, turn(parent, starts=(workflow("w.1", parent_id="w", child_no=1, root_id="w"),))
        )
        == "parked"
    )
    child = claims(store)["w.1"]
    assert outcome(store, turn(child, end="finish", status=COMPLETED, value="3")) == "finished"
    assert ready_rows(store) == [("w", 0, 0)]
    assert store.reading.get(["w.1"])["w.1"].result == "3"


def test_a_step_hears_of_the_child_that_ends_in_the_same_commit(store: Store) -> None:
    parent = begun(store)
    assert (
        outcome(
            store, turn(parent, end="own", starts=(workflow("w.1", parent_id="w", child_no=1),))
        )
        == "own"
    )
    child = claims(store)["w.1"]
    finished, went_on = store.turns.commit(
        [turn(child, end="finish", status=COMPLETED), turn(parent, 1, "own")], []
    )[0]
    assert (finished.outcome, went_on.outcome, went_on.wakes) == (
        "finished",
        "own",
        parent.wakes + 1,
    )


def test_a_step_beside_other_turns_is_lost_alone(store: Store) -> None:
    first, second = begun(store, "w"), begun(store, "v")
    answers = store.turns.commit(
        [turn(first, end="finish", status=COMPLETED), turn(second, 7, "own")], []
    )[0]
    assert {answer.id: answer.outcome for answer in answers} == {"w": "finished", "v": "lost"}
    assert (status(store, "w"), store.reading.history("v")) == ("completed", [])


def test_in_a_commit_of_many_turns_each_is_judged_by_itself(store: Store) -> None:
    ids = [f"w{n:02}" for n in range(60)]
    store.executions.start([workflow(id) for id in ids])
    held = claims(store, limit=60)
    assert {commit(store, turn(held[id], end="own")).outcome for id in ids} == {"own"}
    woken, again, replaced = set(ids[::7]), set(ids[::5]), set(ids[::11])
    for id in woken:
        send(store, f"to {id}", id)
    ends = {id: ("own", "park", "finish")[n % 3] for n, id in enumerate(ids)}
    turns = [
        turn(
            held[id],
            0 if id in again else 1,
            ends[id],
            fence=held[id].fence - (1 if id in replaced else 0),
            status=COMPLETED if ends[id] == "finish" else SUSPENDED,
            done=(Done(1, "work", "default", "null", COMPLETED, "1", 1, 1),),
        )
        for id in ids
    ]

    def expected(id: str) -> str:
        if id in again | replaced:
            return "lost"
        parks = "woken" if id in woken else "parked"
        return {"own": "own", "park": parks, "finish": "finished"}[ends[id]]

    answers = {answer.id: answer for answer in store.turns.commit(turns, [])[0]}
    assert {id: answer.outcome for id, answer in answers.items()} == {
        id: expected(id) for id in ids
    }
    assert {id: len(store.reading.history(id)) for id in ids} == {
        id: 1 if expected(id) == "lost" else 2 for id in ids
    }
    assert set(store.reading.get([f"{id}.1" for id in ids])) == {
        f"{id}.1" for id in ids if expected(id) != "lost"
    }
    assert {id for id in ids if status(store, id) == "completed"} == {
        id for id in ids if expected(id) == "finished"
    }
    assert {row[0] for row in ready_rows(store)} == {
        id for id in ids if expected(id) in ("lost", "own", "woken")
    }
    assert all(
        answers[id].wakes == held[id].wakes + (id in woken)
        for id in ids
        if expected(id) in ("own", "woken")
    )


def test_in_a_commit_of_many_ends_each_is_judged_by_itself(store: Store) -> None:
    ids = [f"t{n:02}" for n in range(60)]
    store.executions.start([task(id) for id in ids])
    held, lost = claims(store, limit=60), set(ids[::4])
    ends = [
        TaskEnd(id, held[id].fence - (1 if id in lost else 0), COMPLETED, "1", worker="a")
        for id in ids
    ]
    older = TaskEnd(ids[1], held[ids[1]].fence - 1, FAILED, "{}", worker="a")
    assert store.turns.commit([], [*ends, older])[1] == set(ids) - lost
    found = store.reading.get(ids)
    assert {id for id in ids if found[id].status == "completed"} == set(ids) - lost
    assert {row[0] for row in ready_rows(store)} == lost


def test_among_many_starts_those_that_exist_change_nothing(store: Store) -> None:
    ids = [f"w{n:02}" for n in range(60)]
    there = set(ids[::9])
    store.executions.start([workflow(id, inputs="1") for id in sorted(there)])
    started = store.executions.start([workflow(id, inputs="2") for id in ids])
    assert [(each.id, each.created) for each in started] == [(id, id not in there) for id in ids]
    found = store.reading.get(ids)
    assert {id for id in ids if found[id].inputs == "1"} == there
    assert sorted(row[0] for row in ready_rows(store)) == ids
    assert {each.seq for each in store.turns.load(ids)} == {0}


def test_a_child_workflow_that_a_turn_asks_to_end_is_woken(store: Store) -> None:
    parent = begun(store)
    children = tuple(workflow(f"w.{n}", parent_id="w", child_no=n, root_id="w") for n in (1, 2))
    assert outcome(store, turn(parent, end="own", starts=children)) == "own"
    held = claims(store)
    assert store.claims.park([held["w.1"]])[0].outcome == "parked"
    assert outcome(store, turn(parent, 1, "own", cancels=((1, 2),))) == "own"
    assert ready_rows(store) == [("w", 1, 0), ("w.1", 0, 0), ("w.2", 1, 1)]
    assert outcome(store, turn(parent, 2, "own", cancels=((1, 2),))) == "own"
    assert ready_rows(store) == [("w", 1, 0), ("w.1", 0, 0), ("w.2", 1, 1)]


def ended_by_hand(store: Store, id: str) -> None:
    """As if another had ended it in a way that left its row in `ready`."""
    rows(
        store,
        (
            f"UPDATE executions SET status = 5, result = '7', finished_at = 1, attempt = 1 "
            f"WHERE id = '{id}'"
        ),
    )


def test_a_task_that_has_ended_stays_as_it_ended(store: Store) -> None:
    claim = begun(store)
    assert outcome(store, turn(claim, starts=(task("w.1"), task("w.2", attempt=4)))) == "parked"
    held = claims(store)
    for id in held:
        ended_by_hand(store, id)
    assert not end(store, held["w.1"], FAILED, '"late"')
    end(store, held["w.2"], FAILED, '"late"', retry_s=1.0)
    assert store.executions.cancel(["w.1", "w.2"]) == {"w.1": False, "w.2": False}
    found = rows(
        store,
        (
            "SELECT status, result, error, finished_at, attempt FROM executions WHERE id > "
            "'w' ORDER BY id"
        ),
    )
    assert [tuple(row) for row in found] == [(5, "7", None, 1, 1)] * 2


def test_a_task_that_is_queued_since_its_workers_died_is_known_for_it(store: Store) -> None:
    """Not so one that has failed by itself as often."""
    starts = (task("w.1", attempt=2), task("w.2", attempt=2, failed='"no"'), task("w.3"))
    assert outcome(store, turn(begun(store), starts=starts)) == "parked"
    assert {id: (claim.attempt, claim.crashes) for id, claim in claims(store).items()} == {
        "w.1": (3, 2),
        "w.2": (3, 0),
        "w.3": (1, 0),
    }


@pytest.mark.parametrize("how", ["own", "park", "finish"])
def test_a_workflow_that_has_ended_takes_no_turn(store: Store, how: str) -> None:
    claim = begun(store)
    ended_by_hand(store, "w")
    answer = outcome(
        store,
        turn(
            claim, end=how, status=FAILED if how == "finish" else SUSPENDED, starts=(task("w.1"),)
        ),
    )
    assert (answer, store.reading.children("w")) == ("lost", [])
    store.turns.commit([turn(claim, end="own")], [])
    assert (status(store, "w"), store.reading.get(["w"])["w"].result) == ("completed", "7")


def test_a_failed_workflow_asks_its_children_to_end(store: Store) -> None:
    parent = begun(store)
    children = (workflow("w.1", parent_id="w", child_no=1, root_id="w", delay_s=60.0), task("w.2"))
    assert (
        outcome(store, turn(parent, end="own", starts=children, timers=(NewTimer(3, 1.0),)))
        == "own"
    )
    assert (
        outcome(store, turn(parent, 1, "finish", status=FAILED, value='{"code": "E"}'))
        == "finished"
    )
    assert [child.cancel_requested_at for child in store.reading.children("w")] == [NOW, NOW]
    assert store.maintenance.fire_timers(9) == (0, None)
    assert [(id, state) for id, state, _ in ready_rows(store)] == [("w.1", 0), ("w.2", 0)]


def ended_before_its_children(store: Store) -> None:
    """Workflow `w` has completed; its task `w.1` is queued and its child workflow `w.2` waits for a
    timer."""
    parent = begun(store)
    children = (task("w.1"), workflow("w.2", parent_id="w", child_no=2, root_id="w"))
    assert outcome(store, turn(parent, end="own", starts=children)) == "own"
    assert (
        outcome(store, turn(claims(store, limit=9)["w.2"], timers=(NewTimer(1, 5.0),))) == "parked"
    )
    store.claims.release({"w.1": store.claims.claimed_by("a")["w.1"]})
    assert outcome(store, turn(parent, 1, "finish", status=COMPLETED, value="7")) == "finished"


def test_children_go_on_when_their_parent_has_completed_and_their_ends_change_nothing_of_it(
    store: Store, clock: Clock
) -> None:
    ended_before_its_children(store)
    assert [child.cancel_requested_at for child in store.reading.children("w")] == [None, None]
    before, told = store.reading.get(["w"])["w"], store.reading.history("w")
    assert end(store, claims(store)["w.1"])
    clock.forward(5)
    assert store.maintenance.fire_timers(9) == (1, None)
    late = claims(store)
    assert list(late) == ["w", "w.2"]
    assert [loaded.status for loaded in store.turns.load(["w"])] == [COMPLETED]
    assert outcome(store, turn(late["w"], 2, "own")) == outcome(store, turn(late["w"], 2)) == "lost"
    store.claims.drop({"w": late["w"].fence})
    assert outcome(store, turn(late["w.2"], 1, "finish", status=COMPLETED)) == "finished"
    assert (store.reading.get(["w"])["w"], store.reading.history("w")) == (before, told)
    store.claims.drop({"w": claims(store)["w"].fence})
    assert ready_rows(store) == []


def test_a_blocked_workflow_keeps_its_reason_and_its_children_go_on(store: Store) -> None:
    parent, reason = begun(store), '{"code": "Blocked"}'
    children = (workflow("w.1", parent_id="w", child_no=1, root_id="w"), task("w.2"))
    assert (
        outcome(store, turn(parent, end="own", starts=children, timers=(NewTimer(3, 1.0),)))
        == "own"
    )
    assert (
        outcome(store, turn(parent, 1, "finish", status=BLOCKED, value=reason, cause="blocked"))
        == "finished"
    )
    ended, told = store.reading.get(["w"])["w"], store.reading.history("w")[-1]
    assert (ended.status, ended.result, ended.error) == ("blocked", None, reason)
    assert (told.cause, told.error) == ("blocked", reason)
    assert [child.cancel_requested_at for child in store.reading.children("w")] == [None, None]
    assert rows(store, "SELECT n FROM timer_tasks") == []


def test_a_blocked_child_decides_all_of_many(store: Store) -> None:
    claim, needed = begun(store), Needed("w", (1, 2), whole=True, fails=True)
    children = [workflow(f"w.{n}", parent_id="w", child_no=n, root_id="w") for n in (1, 2)]
    assert outcome(store, turn(claim, starts=tuple(children))) == "parked"
    assert store.turns.outcomes([needed]) == {"w": []}
    assert (
        outcome(
            store,
            turn(claims(store)["w.2"], end="finish", status=BLOCKED, value='{"code": "Blocked"}'),
        )
        == "finished"
    )
    assert [(o.n, o.status, o.value) for o in store.turns.outcomes([needed])["w"]] == [
        (2, BLOCKED, '{"code": "Blocked"}')
    ]


def test_a_wake_that_came_too_late_dies_with_its_owner(store: Store, clock: Clock) -> None:
    ended_before_its_children(store)
    before, told = store.reading.get(["w"])["w"], store.reading.history("w")
    assert end(store, claims(store)["w.1"])
    assert list(claims(store, "b")) == ["w"]
    clock.forward(TTL + 1)
    assert store.maintenance.rescue(10, 1) == ["w"]
    assert (store.reading.get(["w"])["w"], store.reading.history("w"), ready_rows(store)) == (
        before,
        told,
        [],
    )
    assert store.reading.get(["w.2"])["w.2"].cancel_requested_at is None


def test_a_task_is_tried_again_when_it_is_due_and_its_old_fence_is_refused(
    store: Store, clock: Clock
) -> None:
    claim = running_task(store, max_attempts=3)
    assert end(store, claim, FAILED, '"e"', retry_s=5.0)
    assert not end(store, claim)
    clock.forward(4.9)
    assert store.maintenance.fire_timers(10)[0] == 0
    assert claims(store) == {}
    clock.forward(0.1)
    assert store.maintenance.fire_timers(10)[0] == 1
    assert claims(store)["w.1"].attempt == 2
    assert [(t.seq, t.cause, t.error) for t in store.reading.history("w.1")] == [
        (1, "attempt failed", '"e"')
    ]


def test_a_rescued_task_does_not_take_the_end_of_its_old_attempt(
    store: Store, clock: Clock
) -> None:
    old = running_task(store)
    clock.forward(TTL + 1)
    assert store.maintenance.rescue(10, 3) == ["w.1"]
    assert not end(store, old)
    assert (status(store, "w.1"), ready_rows(store)) == ("pending", [("w.1", 0, 0)])


def test_an_attempt_that_does_not_count_is_given_back(store: Store, clock: Clock) -> None:
    claim = running_task(store)
    assert end(store, claim, FAILED, '"e"', retry_s=5.0, counts=False)
    clock.forward(5)
    store.maintenance.fire_timers(10)
    assert claims(store)["w.1"].attempt == 1
    assert store.reading.history("w.1") == []


def test_all_of_many_is_decided_when_the_last_has_ended_or_one_has_failed(store: Store) -> None:
    claim = begun(store)
    assert outcome(store, turn(claim, starts=tuple(task(f"w.{n}") for n in (1, 2, 3)))) == "parked"
    tasks = claims(store)
    eager, patient = (
        Needed("w", (1, 2, 3), whole=True, fails=True),
        Needed("w", (1, 2, 3), whole=True),
    )
    assert end(store, tasks["w.1"])
    assert store.turns.outcomes([eager]) == {"w": []}
    assert end(store, tasks["w.3"], FAILED)
    assert sorted(o.n for o in store.turns.outcomes([eager])["w"]) == [1, 3]
    assert store.turns.outcomes([patient]) == {"w": []}
    assert end(store, tasks["w.2"])
    assert sorted(o.n for o in store.turns.outcomes([patient])["w"]) == [1, 2, 3]


def test_two_groups_of_one_workflow_are_decided_apart(store: Store) -> None:
    claim = begun(store)
    starts = tuple(task(f"w.{n}") for n in (1, 2, 3, 4))
    assert outcome(store, turn(claim, starts=starts)) == "parked"
    tasks = claims(store)
    groups = [Needed("w", (), whole=False), *(Needed("w", n, whole=True) for n in ((1, 2), (3, 4)))]
    assert end(store, tasks["w.1"])
    assert store.turns.outcomes(groups) == {"w": []}
    assert end(store, tasks["w.3"])
    assert end(store, tasks["w.4"])
    assert sorted(o.n for o in store.turns.outcomes(groups)["w"]) == [3, 4]


def test_the_nth_child_that_has_not_ended_is_found_in_its_range(store: Store) -> None:
    claim = begun(store)
    starts = tuple(task(f"w.{n}") for n in range(1, 8))
    assert outcome(store, turn(claim, starts=starts)) == "parked"
    tasks = claims(store)
    for n in (1, 3, 4):
        assert end(store, tasks[f"w.{n}"])
    asked = [NthUnfinished("w", 1, 6, nth) for nth in (1, 2, 3, 4)]
    assert [found.n for found in store.turns.nth_unfinished(asked)] == [2, 5, 6, None]
    assert store.turns.nth_unfinished([NthUnfinished("none", 1, 6, 1)]) == [Unfinished(None, False)]
    assert end(store, tasks["w.5"], FAILED)
    asked = [NthUnfinished("w", *numbers, 1) for numbers in ((1, 4), (1, 5), (5, 5))]
    found = store.turns.nth_unfinished(asked)
    assert found == [Unfinished(2, False), Unfinished(2, True), Unfinished(None, True)]


def test_the_first_to_end_are_read_in_the_order_of_ends(store: Store, clock: Clock) -> None:
    claim = begun(store)
    starts = tuple(task(f"w.{n}") for n in range(1, 7))
    timers = (NewTimer(7, 1.0), NewTimer(8, 1000.0))
    assert outcome(store, turn(claim, starts=starts, timers=timers)) == "parked"
    tasks = claims(store)
    for n in (5, 2, 6, 1):
        clock.forward(1)
        assert end(store, tasks[f"w.{n}"])
    clock.forward(1)
    store.maintenance.fire_timers(10)

    def first(*ranges: tuple[int, int], limit: int = 9) -> list[int]:
        found = store.turns.next_ended([NextEnded("w", ranges, limit), NextEnded("v", [(1, 9)], 9)])
        assert found["v"] == []
        return [outcome.n for outcome in found["w"]]

    assert first((1, 9)) == [5, 2, 6, 1, 7]
    assert first((1, 9), limit=2) == [5, 2]
    assert first((1, 4), (6, 8)) == [2, 6, 1, 7]
    assert first((3, 4)) == []
    (found,) = store.turns.next_ended([NextEnded("w", [(5, 5)], 1)])["w"]
    assert found == store.turns.outcomes([Needed("w", (5,))])["w"][0]


# rescue


def test_only_expired_claims_and_those_of_dead_workers_are_rescued(
    store: Store, clock: Clock
) -> None:
    store.executions.start([workflow("x"), workflow("y")])
    store.workers.beat(Beat("a", "host", 1, ("default",), 4, 0, False, "1"), {}, TTL)
    store.workers.beat(
        Beat("b", "host", 2, ("default",), 4, 0, False, "1", dead_after_s=10.0), {}, TTL
    )
    claims(store, "a", 1)
    clock.forward(10)
    claims(store, "b", 1)
    store.workers.beat(Beat("a", "host", 1, ("default",), 4, 1, False, "1"), {}, TTL)
    assert (store.maintenance.rescue(10, 3), store.maintenance.rescue(10, 3, dead=True)) == ([], [])
    clock.forward(0.1)
    assert (store.maintenance.rescue(10, 3), store.maintenance.rescue(10, 3, dead=True)) == (
        [],
        ["y"],
    )
    clock.forward(TTL - 10.1)
    assert store.maintenance.rescue(10, 3) == []
    clock.forward(0.000001)
    assert store.maintenance.rescue(10, 3) == ["x"]
    assert store.maintenance.rescue(10, 3) == []


def test_a_workflow_that_kills_its_workers_in_one_turn_fails_and_wakes_its_parent(
    store: Store, clock: Clock
) -> None:
    parent = begun(store)
    assert (
        outcome(
            store, turn(parent, starts=(workflow("w.1", parent_id="w", child_no=1, root_id="w"),))
        )
        == "parked"
    )
    for crashes in range(3):
        assert claims(store)["w.1"].crashes == crashes
        clock.forward(TTL + 1)
        assert store.maintenance.rescue(10, 3) == ["w.1"]
    failed = store.reading.get(["w.1"])["w.1"]
    assert (failed.status, json.loads(failed.error or "{}")["code"]) == ("failed", "Crashed")
    assert [(t.cause, t.seq) for t in store.reading.history("w.1")] == [
        ("crash loop", store.turns.load(["w.1"])[0].seq)
    ]
    assert ready_rows(store) == [("w", 0, 0)]


def test_crashes_of_different_turns_are_not_added_up(store: Store, clock: Clock) -> None:
    store.executions.start([workflow()])
    for seq in range(4):
        assert outcome(store, turn(claims(store)["w"], seq, "own")) == "own"
        clock.forward(TTL + 1)
        assert store.maintenance.rescue(10, 2) == ["w"]
    assert claims(store)["w"].crashes == 1


@pytest.mark.parametrize("max_attempts", [1, 3, 11])
def test_a_task_may_kill_as_many_workers_as_the_limit_says(
    store: Store, clock: Clock, max_attempts: int
) -> None:
    running_task(store, max_attempts=max_attempts)
    for times in (1, 2):
        clock.forward(TTL + 1)
        assert store.maintenance.rescue(10, 3) == ["w.1"]
        claim = claims(store)["w.1"]
        assert (claim.attempt, claim.crashes) == (times + 1, times)
    clock.forward(TTL + 1)
    assert store.maintenance.rescue(10, 3) == ["w.1"]
    assert (status(store, "w.1"), ready_rows(store)) == ("failed", [("w", 0, 0)])
    assert crashes_told(store, "w.1") == (3, "its worker died 3 times; it is not tried again")


def test_a_task_that_failed_by_itself_is_not_told_to_have_killed_its_workers(
    store: Store, clock: Clock
) -> None:
    claim = running_task(store, max_attempts=3)
    for _ in range(2):
        assert end(store, claim, FAILED, '"no"', retry_s=1.0)
        clock.forward(2)
        store.maintenance.fire_timers(10)
        claim = claims(store)["w.1"]
    assert (claim.attempt, claim.crashes) == (3, 0)
    clock.forward(TTL + 1)
    assert store.maintenance.rescue(10, 3) == ["w.1"]
    claim = claims(store)["w.1"]
    assert (claim.attempt, claim.crashes) == (4, 1)
    clock.forward(TTL + 1)
    assert store.maintenance.rescue(10, 2) == ["w.1"]
    assert crashes_told(store, "w.1") == (2, "its worker died 2 times; it is not tried again")


def crashes_told(store: Store, id: str) -> tuple[int, str]:
    error = json.loads(store.reading.get([id])[id].error or "{}")
    return error["data"]["crashes"], error["message"]


# timers


def test_a_timer_never_fires_early_and_only_once(store: Store, clock: Clock) -> None:
    assert (
        outcome(
            store, turn(begun(store), timers=(NewTimer(1, 2.5), NewTimer(2, None, NOW + 9_000_000)))
        )
        == "parked"
    )
    clock.forward(2.499999)
    assert store.maintenance.fire_timers(10) == (0, NOW + 2_500_000)
    assert store.turns.outcomes([Needed("w", (1,))])["w"] == []
    clock.forward(0.000001)
    assert store.maintenance.fire_timers(10) == (1, NOW + 9_000_000)
    assert [
        (o.n, o.status, o.ended_at, o.type)
        for o in store.turns.outcomes([Needed("w", (1, 2))])["w"]
    ] == [(1, COMPLETED, clock.us, None)]
    assert store.maintenance.fire_timers(10)[0] == 0
    assert ready_rows(store) == [("w", 0, 0)]


def test_what_is_due_later_stays_when_something_is_due_now(store: Store, clock: Clock) -> None:
    claim = begun(store)
    store.executions.start([workflow("later", delay_s=2.0), workflow("limited", timeout_s=2.0)])
    assert outcome(store, turn(claim, timers=(NewTimer(1, 1.0), NewTimer(2, 2.0)))) == "parked"
    clock.forward(1)
    assert store.maintenance.fire_timers(10)[0] == 1
    assert [o.n for o in store.turns.outcomes([Needed("w", (1, 2))])["w"]] == [1]
    assert (ready_rows(store)[0][:2], store.turns.load(["limited"])[0].timed_out) == (
        ("later", 2),
        False,
    )
    clock.forward(1)
    assert store.maintenance.fire_timers(10)[0] == 3


def test_a_workflow_whose_time_is_over_is_woken_and_told(store: Store, clock: Clock) -> None:
    store.claims.park([begun(store, timeout_s=5.0)])
    assert store.maintenance.fire_timers(10) == (0, NOW + 5_000_000)
    clock.forward(5)
    assert not ready_rows(store)
    assert store.maintenance.fire_timers(10)[0] == 1
    assert ready_rows(store) == [("w", 0, 0)]
    assert store.turns.load(["w"])[0].timed_out


def test_a_task_that_nobody_runs_in_time_fails(store: Store, clock: Clock) -> None:
    assert outcome(store, turn(begun(store), starts=(task("w.1", timeout_s=5.0),))) == "parked"
    clock.forward(5)
    assert store.maintenance.fire_timers(10) == (1, None)
    assert (status(store, "w.1"), ready_rows(store)) == ("failed", [("w", 0, 0)])


def test_the_time_of_a_delayed_execution_begins_when_it_may_begin(
    store: Store, clock: Clock
) -> None:
    store.executions.start(
        [workflow(delay_s=2.0, timeout_s=1.0), task("t", delay_s=2.0, timeout_s=1.0)]
    )
    clock.forward(2)
    assert store.maintenance.fire_timers(10) == (2, NOW + 3_000_000)
    assert (store.turns.load(["w"])[0].timed_out, status(store, "t")) == (False, "pending")
    clock.forward(1)
    assert store.maintenance.fire_timers(10) == (2, None)
    assert (store.turns.load(["w"])[0].timed_out, status(store, "t")) == (True, "failed")


@pytest.mark.parametrize("let_go", ["release", "flag", "cancel"])
def test_the_time_of_what_is_held_back_begins_when_it_is_let_go(
    store: Store, clock: Clock, let_go: str
) -> None:
    claim = begun(store)
    held = workflow("w.1", parent_id="w", child_no=1, root_id="w", held=True, timeout_s=5.0)
    assert outcome(store, turn(claim, end="own", starts=(held,))) == "own"
    clock.forward(60)
    assert store.maintenance.fire_timers(10) == (0, None)
    if let_go == "cancel":
        store.executions.cancel(["w.1"])
    else:
        outcome(
            store,
            turn(claim, 1, "own", **{"releases" if let_go == "release" else "cancels": ((1, 1),)}),
        )
    assert store.maintenance.fire_timers(10) == (0, NOW + 65_000_000)
    clock.forward(5)
    assert store.maintenance.fire_timers(10) == (1, None)
    assert store.turns.load(["w.1"])[0].timed_out


def test_the_time_of_a_promoted_task_begins_at_once(store: Store, clock: Clock) -> None:
    claim = begun(store)
    assert (
        outcome(
            store, turn(claim, starts=(task("w.1", timeout_s=5.0),), promoted=(1,), claim_ttl_s=TTL)
        )
        == "parked"
    )
    assert store.maintenance.fire_timers(10) == (0, NOW + 5_000_000)


# signals


def test_signals_are_read_in_the_order_of_sending_until_they_are_consumed(store: Store) -> None:
    claim = begun(store)
    for id in ("c", "a", "b"):
        assert send(store, id) == "sent"
    assert [(m.id, m.payload, m.received_at) for m in store.messages.mail(["w", "none"])["w"]] == [
        ("c", '"c"', NOW),
        ("a", '"a"', NOW),
        ("b", '"b"', NOW),
    ]
    assert outcome(store, turn(claim, end="own", consumed=("c", "b"))) == "own"
    assert [m.id for m in store.messages.mail(["w"])["w"]] == ["a"]


def test_the_first_signals_are_read_of_a_name_or_of_all(store: Store) -> None:
    claim = begun(store)
    for n, name in enumerate("abaabb"):
        assert store.messages.signal(NewSignal(f"{name}{n}", "w", name, str(n)), 100) == "sent"

    def first(name: str | None, limit: int) -> list[str]:
        boxes = store.messages.first_mail(
            [MailAsked("w", name, limit), MailAsked("none", None, limit)]
        )
        return [mail.id for mail in boxes.get("w", ())]

    assert first(None, 4) == ["a0", "b1", "a2", "a3"]
    assert first("b", 2) == ["b1", "b4"]
    assert first("c", 2) == []
    assert outcome(store, turn(claim, end="own", consumed=("b1", "a0"))) == "own"
    assert (first(None, 2), first("b", 9)) == (["a2", "a3"], ["b4", "b5"])


def test_a_signal_can_be_consumed_only_once(store: Store) -> None:
    claim = begun(store)
    send(store, "s")
    assert outcome(store, turn(claim, end="own", consumed=("s",))) == "own"
    with pytest.raises(AssertionError):
        store.turns.commit([turn(claim, 1, "own", consumed=("s",))], [])
    assert store.turns.load(["w"])[0].seq == 1


def test_what_becomes_of_a_signal(store: Store) -> None:
    claim = begun(store)
    assert [
        send(store, "a"),
        send(store, "a"),
        send(store, "b", limit=1),
        send(store, "c", "none"),
    ] == [
        "sent",
        "duplicate",
        "full",
        "missing",
    ]
    assert ready_rows(store) == [("w", 1, 1)]
    assert outcome(store, turn(claim, end="finish", status=COMPLETED)) == "finished"
    assert (send(store, "d"), ready_rows(store)) == ("late", [])


def test_a_signal_that_was_received_is_a_duplicate_whatever_came_after_it(store: Store) -> None:
    claim = begun(store)
    assert (send(store, "a", limit=1), send(store, "a", limit=1), send(store, "b", limit=1)) == (
        "sent",
        "duplicate",
        "full",
    )
    assert outcome(store, turn(claim, end="finish", status=COMPLETED)) == "finished"
    assert (send(store, "a"), send(store, "b"), ready_rows(store)) == ("duplicate", "late", [])


def test_a_turn_sends_signals_to_those_who_are_there(store: Store) -> None:
    claim, other = begun(store), begun(store, "x")
    store.claims.park([other])
    send(store, "first", "x")
    sent = (
        NewSignal("1", "x", "n", "1"),
        NewSignal("2", "none", "n", "2"),
        NewSignal("3", "x", "n", "3"),
        NewSignal("4", "w", "n", "4"),
    )
    assert commit(store, turn(claim, signals=sent)) == Committed("w", "woken", 1)
    boxes = store.messages.mail(["x", "w", "none"])
    assert {id: [m.id for m in box] for id, box in boxes.items()} == {
        "x": ["first", "1", "3"],
        "w": ["4"],
    }
    assert [row[0] for row in ready_rows(store)] == ["w", "x"]


def test_a_signal_of_a_turn_to_one_that_has_ended_is_dropped(store: Store) -> None:
    sender, receiver = begun(store), begun(store, "x")
    assert outcome(store, turn(receiver, end="finish", status=COMPLETED)) == "finished"
    assert outcome(store, turn(sender, signals=(NewSignal("late", "x", "n", "1"),))) == "parked"
    assert (store.messages.mail(["x"]), ready_rows(store)) == ({}, [])


# cancel and pause


def test_an_acknowledged_cancel_wins_over_the_result(store: Store) -> None:
    claim = begun(store)
    assert store.executions.cancel(["w", "none"]) == {"w": True}
    assert store.turns.load(["w"])[0].cancel_requested
    assert outcome(store, turn(claim, end="finish", status=COMPLETED, value="1")) == "finished"
    ended = store.reading.get(["w"])["w"]
    assert (ended.status, ended.result, json.loads(ended.error or "{}")["code"]) == (
        "cancelled",
        None,
        "Cancelled",
    )
    assert store.reading.history("w")[-1].error == ended.error
    assert (store.executions.cancel(["w"]), ready_rows(store)) == ({"w": False}, [])


def test_a_cancelled_workflow_is_woken_also_before_its_delayed_start(store: Store) -> None:
    store.executions.start([workflow(delay_s=60.0)])
    store.claims.park([begun(store, "x")])
    assert store.executions.cancel(["w", "x"]) == {"w": True, "x": True}
    assert sorted(claims(store)) == ["w", "x"]


def test_a_cancelled_task_that_nobody_runs_ends_at_once(store: Store) -> None:
    assert outcome(store, turn(begun(store), starts=(task("w.1"),))) == "parked"
    assert store.executions.cancel(["w.1"]) == {"w.1": True}
    assert (status(store, "w.1"), ready_rows(store)) == ("cancelled", [("w", 0, 0)])


def test_a_cancelled_task_that_runs_may_still_complete_but_is_not_tried_again(store: Store) -> None:
    claim = begun(store)
    assert (
        outcome(store, turn(claim, starts=(task("w.1"), task("w.2", max_attempts=5)))) == "parked"
    )
    tasks = claims(store)
    assert store.executions.cancel(["w.1", "w.2"]) == {"w.1": True, "w.2": True}
    assert store.turns.cancelled(["w", "w.1", "w.2", "nobody"]) == {"w.1", "w.2"}
    assert end(store, tasks["w.1"])
    assert end(store, tasks["w.2"], FAILED, retry_s=1.0)
    assert (status(store, "w.1"), status(store, "w.2")) == ("completed", "cancelled")


def test_the_sweep_ends_tasks_that_a_turn_asked_to_end(store: Store) -> None:
    claim = begun(store)
    assert outcome(store, turn(claim, end="own", starts=(task("w.1"), task("w.2")))) == "own"
    held = store.claims.claim("b", ["default"], 1, TTL)[0]
    assert outcome(store, turn(claim, 1, "park", cancels=((1, 2),))) == "parked"
    assert store.maintenance.end_cancelled_tasks(10) == ["w.2"]
    assert (held.id, status(store, "w.1"), status(store, "w.2")) == ("w.1", "running", "cancelled")
    assert ready_rows(store) == [("w", 0, 0), ("w.1", 1, 0)]
    assert store.maintenance.end_cancelled_tasks(10) == []


def test_pausing_wakes_and_is_told_to_whoever_loads(store: Store) -> None:
    claim = begun(store)
    assert store.people.pause(["none"]) == {}
    assert store.people.pause(["w"], reason="because", actor=Actor("me")) == {"w": True}
    assert (store.turns.load(["w"])[0].paused, ready_rows(store)) == (True, [("w", 1, 1)])
    assert store.people.resume(["w"]) == {"w": True}
    assert not store.turns.load(["w"])[0].paused
    assert outcome(store, turn(claim, end="finish", status=FAILED, value="{}")) == "finished"
    assert (store.people.pause(["w"]), ready_rows(store)) == ({"w": False}, [])


@pytest.mark.parametrize("end", ["finish", "own"])
def test_a_resume_of_which_the_last_turn_did_not_know_is_done_with_it(
    store: Store, end: str
) -> None:
    """Its owner had looked before, but may have seen what came with it: there is no other turn
    that could say so."""
    claim = begun(store)
    store.people.pause(["w"])
    store.people.resume(["w"])
    outcome(store, turn(claim, end=end, status=COMPLETED if end == "finish" else SUSPENDED))
    assert [request.executed_at is not None for request in store.people.resumes("w")] == [
        end == "finish"
    ]


# groups that hold back


def test_what_is_held_back_begins_with_its_release(store: Store, clock: Clock) -> None:
    claim = begun(store)
    starts = (
        task("w.1"),
        task("w.2", held=True),
        workflow("w.3", parent_id="w", child_no=3, root_id="w", held=True),
    )
    timers = (NewTimer(4, 5.0, held=True), NewTimer(5, None, NOW + 60_000_000, held=True))
    assert outcome(store, turn(claim, end="own", starts=starts, timers=timers)) == "own"
    assert (list(claims(store)), store.maintenance.fire_timers(9)) == (["w.1"], (0, None))
    clock.forward(10)
    assert outcome(store, turn(claim, 1, "own", releases=((2, 4),))) == "own"
    assert (sorted(claims(store)), store.maintenance.fire_timers(9)) == (
        ["w.2", "w.3"],
        (0, NOW + 15_000_000),
    )
    clock.forward(10)
    assert outcome(store, turn(claim, 2, "own", releases=((2, 5),))) == "own"
    assert store.maintenance.fire_timers(9) == (1, NOW + 60_000_000)


def test_executions_that_are_held_back_begin_by_themselves(store: Store) -> None:
    claim = begun(store)
    starts = tuple(task(f"w.{n}", held=True) for n in (1, 2, 3))
    timers = (NewTimer(4, 0.0, held=True),)
    assert outcome(store, turn(claim, end="own", starts=starts, timers=timers)) == "own"
    assert outcome(store, turn(claim, 1, "own", begins=((2, 4),))) == "own"
    assert (sorted(claims(store)), store.maintenance.fire_timers(9)) == (["w.2", "w.3"], (0, None))
    assert outcome(store, turn(claim, 2, "own", begins=((1, 3),))) == "own"
    assert sorted(claims(store)) == ["w.1"]


def test_a_child_that_is_held_back_finds_its_signals_when_it_is_released(store: Store) -> None:
    claim = begun(store)
    child = workflow("w.1", parent_id="w", child_no=1, root_id="w", held=True)
    assert outcome(store, turn(claim, end="own", starts=(child,))) == "own"
    sent = NewSignal("t", "w.1", "go", "1")
    assert (send(store, "s", "w.1"), store.people.pause(["w.1"])) == ("sent", {"w.1": True})
    assert outcome(store, turn(claim, 1, "own", signals=(sent,))) == "own"
    assert claims(store) == {}
    assert outcome(store, turn(claim, 2, "own", releases=((1, 1),))) == "own"
    assert (list(claims(store)), [m.id for m in store.messages.mail(["w.1"])["w.1"]]) == (
        ["w.1"],
        ["s", "t"],
    )


def test_a_cancelled_child_that_is_held_back_takes_the_turn_that_ends_it(store: Store) -> None:
    claim = begun(store)
    held = [workflow(f"w.{n}", parent_id="w", child_no=n, root_id="w", held=True) for n in (1, 2)]
    assert outcome(store, turn(claim, end="own", starts=(*held, task("w.3", held=True)))) == "own"
    assert store.executions.cancel(["w.1", "w.3"]) == {"w.1": True, "w.3": True}
    assert outcome(store, turn(claim, 1, "own", cancels=((2, 2),), releases=((1, 3),))) == "own"
    assert (sorted(claims(store)), status(store, "w.3")) == (["w.1", "w.2"], "cancelled")


def test_a_promoted_task_is_born_claimed_with_a_fence_of_its_own(
    store: Store, clock: Clock
) -> None:
    claim = begun(store)
    starts = (task("w.1", attempt=1), task("w.2"))
    answer = store.turns.commit([turn(claim, starts=starts, promoted=(1,), claim_ttl_s=TTL)], [])[
        0
    ][0]
    assert answer.outcome == "parked"
    assert answer.promoted[1] > claim.fence
    assert store.claims.claimed_by("a") == {"w.1": answer.promoted[1]}
    assert [(id, claim.attempt) for id, claim in claims(store, "b").items()] == [("w.2", 1)]
    clock.forward(TTL - 1)
    assert store.maintenance.rescue(10, 3) == []
    assert end(store, Claim("w.1", TASK, "default", answer.promoted[1], 0, 1, 0))
    assert store.reading.get(["w.1"])["w.1"].attempt == 1


# reading and pruning


def test_lists_show_roots_newest_first_by_name_and_status(store: Store, clock: Clock) -> None:
    for id in ("a", "b", "c"):
        store.executions.start([workflow(id, name="x" if id == "b" else "main")])
        clock.forward(1)
    claim = claims(store)["b"]
    assert outcome(store, turn(claim, end="finish", status=COMPLETED)) == "finished"
    assert [e.id for e in store.reading.find(None, None, None, 10)] == ["c", "b", "a"]
    assert [e.id for e in store.reading.find("main", None, None, 1)] == ["c"]
    assert [e.id for e in store.reading.find(None, None, (NOW + 2_000_000, "c"), 10)] == ["b", "a"]
    assert [e.id for e in store.reading.find(None, "completed", None, 10)] == ["b"]
    assert [e.id for e in store.reading.find(None, "running", None, 10)] == ["c", "a"]


def test_children_are_listed_by_number(store: Store) -> None:
    assert (
        outcome(store, turn(begun(store), starts=tuple(task(f"w.{n}") for n in (10, 2, 1))))
        == "parked"
    )
    store.executions.start([workflow("w2")])
    assert [child.id for child in store.reading.children("w")] == ["w.1", "w.2", "w.10"]


def test_pruning_takes_what_ended_long_ago_with_everything_below_it(
    store: Store, clock: Clock
) -> None:
    claim = begun(store)
    send(store, "s")
    assert (
        outcome(store, turn(claim, end="own", starts=(task("w.1"),), timers=(NewTimer(2, 1.0),)))
        == "own"
    )
    assert end(store, claims(store)["w.1"])
    assert outcome(store, turn(claim, 1, "finish", status=CANCELLED, value="{}")) == "finished"
    store.executions.start([workflow("w2")])
    clock.forward(60)
    assert store.maintenance.prune(60.0, 10) == 0
    clock.forward(1)
    assert store.maintenance.prune(60.0, 10) == 1
    assert (
        list(store.reading.get(["w", "w.1", "w2"])),
        store.reading.history("w"),
        store.messages.mail(["w"]),
    ) == (["w2"], [], {})
    assert [row[0] for row in ready_rows(store)] == ["w2"]


def test_pruning_waits_for_what_goes_on_below(store: Store, clock: Clock) -> None:
    ended_before_its_children(store)
    clock.forward(100)
    assert (store.maintenance.prune(60.0, 10), len(store.reading.children("w"))) == (0, 2)
    assert end(store, claims(store)["w.1"])
    store.maintenance.fire_timers(9)
    assert store.maintenance.prune(60.0, 10) == 0
    assert outcome(store, turn(claims(store)["w.2"], 1, "finish", status=COMPLETED)) == "finished"
    assert (
        store.maintenance.prune(60.0, 10),
        store.reading.get(["w", "w.1", "w.2"]),
        ready_rows(store),
    ) == (1, {}, [])


def test_pruning_waits_for_an_execution_that_was_made_from_another(
    store: Store, clock: Clock
) -> None:
    assert outcome(store, turn(begun(store), end="finish", status=FAILED, value="{}")) == "finished"
    again = begun(store, "x", retry_of="w")
    clock.forward(100)
    assert store.maintenance.prune(60.0, 10) == 0
    assert outcome(store, turn(again, end="finish", status=COMPLETED)) == "finished"
    assert (store.maintenance.prune(60.0, 10), list(store.reading.get(["w", "x"]))) == (1, ["x"])


def test_pruning_takes_the_oldest_first_and_not_more_than_its_limit(
    store: Store, clock: Clock
) -> None:
    for id in ("c", "a", "b"):
        assert outcome(store, turn(begun(store, id), end="finish", status=COMPLETED)) == "finished"
        clock.forward(1)
    clock.forward(100)
    assert (store.maintenance.prune(60.0, 2), list(store.reading.get(["a", "b", "c"]))) == (
        2,
        ["b"],
    )


# what the sweep asks


def test_parked_are_those_that_nobody_looks_at_and_that_are_not_paused(store: Store) -> None:
    ids = ("a", "b", "c", "d", "e", "free")
    store.executions.start([workflow(id) for id in ids[:5]])
    held = claims(store)
    children = (workflow("e.1", parent_id="e", child_no=1, root_id="e", held=True), task("e.2"))
    assert outcome(store, turn(held["a"], end="finish", status=COMPLETED)) == "finished"
    assert outcome(store, turn(held["e"], starts=children)) == "parked"
    store.claims.park([held["b"], held["c"]])
    store.people.pause(["c"])
    store.claims.park([claims(store)["c"]])
    store.executions.start([workflow("free")])
    assert (
        store.maintenance.parked("", 9),
        store.maintenance.parked("", 1),
        store.maintenance.parked("b", 9),
        store.maintenance.parked("e", 9),
    ) == (["b", "e"], ["b"], ["e"], [])


def test_only_what_is_still_parked_at_that_turn_is_mended(store: Store) -> None:
    ids = ("a", "b", "c", "d", "e")
    store.executions.start([workflow(id) for id in ids])
    held = claims(store)
    for id in ids[:4]:
        assert outcome(store, turn(held[id], timers=(NewTimer(1, 60.0),))) == "parked"
    send(store, "s", "b")
    store.people.pause(["c"])
    store.claims.park([claims(store)["c"]])
    stuck = {"a": 1, "b": 1, "c": 1, "d": 2, "e": 0, "none": 0}
    timers = [(id, 2) for id in stuck]
    assert store.maintenance.without_rows([*timers, ("a", 1)]) == timers
    assert store.maintenance.mend(stuck, timers) == ["a"]
    assert [
        (o.n, o.status, o.ended_at, o.type)
        for o in store.turns.outcomes([Needed("a", (1, 2))])["a"]
    ] == [(2, COMPLETED, NOW, None)]
    assert [id for id in ids if store.turns.outcomes([Needed(id, (2,))])[id]] == ["a"]
    assert "a" in claims(store)


# leases


def test_a_lease_is_held_by_one_until_it_expires(
    store: Store, stores: Stores, clock: Clock
) -> None:
    other = stores.store(clock)
    assert (
        store.workers.lease("sweeper", "a", 10.0),
        other.workers.lease("sweeper", "b", 10.0),
        other.workers.lease("pruner", "b", 10.0),
    ) == (True, False, True)
    clock.forward(9)
    assert (
        store.workers.lease("sweeper", "a", 10.0),
        store.workers.lease("pruner", "a", 10.0),
    ) == (True, False)
    clock.forward(9.999999)
    assert not other.workers.lease("sweeper", "b", 10.0)
    clock.forward(0.000001)
    assert (
        other.workers.lease("sweeper", "b", 10.0),
        store.workers.lease("sweeper", "a", 10.0),
    ) == (True, False)
    assert rows(store, "SELECT holder, fence FROM leases WHERE name = 'sweeper'") == [("b", 2)]


# what is due


def test_due_is_told_of_a_delayed_start_of_timers_and_of_delayed_children(
    store: Store, clock: Clock
) -> None:
    store.executions.start([workflow("later", delay_s=5.0)])
    assert store.reading.due("later") == {0: NOW + 5_000_000}
    claim = begun(store)
    assert store.reading.due("w") == {}
    made = dict(
        starts=(task("w.1", max_attempts=2), task("w.2", delay_s=9.0)),
        timers=(NewTimer(3, 7.0), NewTimer(4, 1.0)),
    )
    assert outcome(store, turn(claim, **made)) == "parked"
    assert store.reading.due("w") == {2: NOW + 9_000_000, 3: NOW + 7_000_000, 4: NOW + 1_000_000}
    assert end(store, claims(store)["w.1"], FAILED, retry_s=3.0)
    clock.forward(1.0)
    store.maintenance.fire_timers(10)
    assert store.reading.due("w") == {1: NOW + 3_000_000, 2: NOW + 9_000_000, 3: NOW + 7_000_000}


def test_pause_keeps_its_reason_and_who_said_so_until_the_resume(store: Store) -> None:
    store.executions.start([workflow()])
    assert store.people.pause(["w"], reason="bank is down", actor=Actor("ada"))
    paused = store.reading.get(["w"])["w"]
    assert (paused.paused_reason, paused.paused_by) == ("bank is down", "ada")
    assert store.reading.find(None, None, None, 1) == [paused]
    assert store.people.resume(["w"])
    assert (
        store.reading.get(["w"])["w"].paused_at,
        store.reading.get(["w"])["w"].paused_reason,
    ) == (None, None)


def test_a_claim_that_is_given_back_for_a_while_is_taken_again_after_it(
    store: Store, clock: Clock
) -> None:
    claim = begun(store)
    store.claims.release({"w": claim.fence}, 5.0)
    assert claims(store) == {}
    assert store.claims.extend({"w": claim.fence}, TTL) == {}
    clock.forward(4.9)
    store.maintenance.fire_timers(9)
    assert claims(store) == {}
    clock.forward(0.1)
    store.maintenance.fire_timers(9)
    assert list(claims(store)) == ["w"]


def test_statements_of_a_workflow_are_told_once(store: Store) -> None:
    store.executions.start([workflow(), workflow("other")])
    for seq, statement in enumerate((5, 3, 3, 5), 1):
        rows(
            store,
            "INSERT INTO history (execution_id, seq, fence, worker, from_status, to_status, cause, "
            "statement, at) VALUES ('w', ?, 1, 'a', 0, 1, 'turn', ?, 1)",
            [seq, statement],
        )
    rows(store, "UPDATE history SET to_status = 5 WHERE seq = 4")  # the end: it waits nowhere
    assert store.turns.statements("w") == [5, 3]
    assert store.turns.statements("other") == store.turns.statements("none") == []


def test_overview_counts_what_is_live_and_what_has_just_begun_up_to_a_limit(
    store: Store, clock: Clock
) -> None:
    store.executions.start([workflow().replace(id=f"old{n}") for n in range(2)])
    clock.forward(61.0)
    store.executions.start([workflow().replace(id=f"w{n}", queue="mail") for n in range(3)])
    store.people.pause(["w0"])
    store.workers.pause_queue("fax", True, Actor("ada"))

    def counted(most: int) -> dict[tuple[str, str], int]:
        return {(one.what, one.name): one.n for one in store.operating.overview(60_000_000, most)}

    assert counted(100) == {
        ("now", ""): 0,
        ("live", "0"): 4,
        ("live", "2"): 1,
        ("started", ""): 3,
        ("approvals", ""): 0,
        ("paused queue", "fax"): 0,
        ("queue", "default"): 2,
        ("queue", "mail"): 3,
    }
    assert sum(n for (what, _), n in counted(2).items() if what == "live") == 2
    assert counted(2)["started", ""] == counted(2)["queue", "mail"] == 2
    at = {one.name: one.at for one in store.operating.overview(1, 9) if one.what == "queue"}
    assert at == {"default": NOW, "mail": NOW + 61_000_000}


def test_failures_are_the_newest_roots_that_failed(store: Store, clock: Clock) -> None:
    assert store.operating.failures(5, 100) == []
    for n in range(4):
        store.executions.start([workflow().replace(id=f"w{n}")])
        clock.forward(1.0)
        store.executions.terminate([f"w{n}"], Actor("ada"))
    assert store.operating.failures(5, 100) == []  # they were cancelled
    counts = {(one.what, one.name): one.n for one in store.operating.overview(2_500_000, 100)}
    assert counts["ended", "7"] == 3
