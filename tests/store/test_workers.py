"""Many workers on one database: beats, the claims of the dead, paused queues, and what tasks are;
the clock is the test's."""

from __future__ import annotations

import pytest

from rhythm.engine.doctor import examine
from rhythm.store.access import Actor
from rhythm.store.interfaces.claims import Claim
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.maintenance import FORGOTTEN_S, MaintenanceDue, Recovered
from rhythm.store.interfaces.messages import NewSignal
from rhythm.store.interfaces.operating import Silent
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import TaskEnd, TurnCommit
from rhythm.store.interfaces.workers import Beat, Declaration, Queue, SeenWorker
from rhythm.store.lifecycle import TASK, WORKFLOW
from rhythm.store.sqlite.store import SqliteStore
from tests.support.stores import Stores, ready_rows, rows

NOW = 1_800_000_000_000_000
TTL = 30.0
DEAD = 20.0


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


def beat(worker: str = "a", **changes: object) -> Beat:
    return Beat(
        worker, "host", 7, ("default", "mail"), 4, 2, False, "1.0", dead_after_s=DEAD
    ).replace(**changes)


def start(store: Store, *ids: str, queue: str = "default", type: int = WORKFLOW) -> None:
    store.executions.start([NewExecution(id, type, "main", queue) for id in ids])


def claims(store: Store, worker: str = "a", *queues: str, limit: int = 10) -> dict[str, Claim]:
    return {
        claim.id: claim
        for claim in store.claims.claim(worker, queues or ("default", "mail"), limit, TTL)
    }


def fences(held: dict[str, Claim]) -> dict[str, int]:
    return {id: claim.fence for id, claim in held.items()}


def expiry(store: Store) -> dict[str, int]:
    return dict(rows(store, "SELECT id, claim_expires_at FROM ready WHERE state = 1"))


def turn(claim: Claim, end: str, seq: int = 0) -> TurnCommit:
    return TurnCommit(claim.id, seq, claim.fence, claim.wakes, end, "a", "turn", snapshot=b"s")


# beats


def test_a_beat_tells_everything_that_the_worker_has_and_nothing_of_others(store: Store) -> None:
    start(store, "x", "y", "z")
    (x,), (y,) = claims(store, limit=1).values(), claims(store, limit=1).values()
    claims(store, "b", limit=1)
    assert store.messages.signal(NewSignal("s", "y", "go", "1"), 10) == "sent"
    assert store.workers.beat(beat(), {}, TTL) == {"x": (x.fence, 0), "y": (y.fence, 1)}
    assert store.workers.beat(beat("c"), {}, TTL) == {}


def test_a_beat_prolongs_the_claims_it_names_and_no_other(store: Store, clock: Clock) -> None:
    start(store, "x", "y")
    held = fences(claims(store))
    clock.forward(10)
    assert store.workers.beat(beat(), {"x": held["x"]}, TTL) == {
        "x": (held["x"], 0),
        "y": (held["y"], 0),
    }
    assert expiry(store) == {"x": NOW + 40_000_000, "y": NOW + 30_000_000}


def test_a_beat_with_another_fence_prolongs_nothing_and_tells_the_fence_that_is_right(
    store: Store, clock: Clock
) -> None:
    start(store, "x")
    old = fences(claims(store))
    store.claims.release(old)
    new = fences(claims(store))
    clock.forward(10)
    assert store.workers.beat(beat(), old, TTL) == {"x": (new["x"], 0)}
    assert expiry(store) == {"x": NOW + 30_000_000}


def test_a_late_beat_of_a_rescued_worker_gets_nothing_back(store: Store, clock: Clock) -> None:
    start(store, "x", "y")
    store.workers.beat(beat(), {}, TTL)
    held = fences(claims(store))
    clock.forward(DEAD + 1)
    assert store.maintenance.rescue(10, 3, dead=True) == ["x", "y"]
    assert store.workers.beat(beat(), held, TTL) == {}
    assert ready_rows(store) == [("x", 0, 0), ("y", 0, 0)]
    taken = fences(claims(store, "b", limit=1))
    assert store.workers.beat(beat(), held, TTL) == {}
    assert store.workers.beat(beat("b"), {}, TTL) == {"x": (taken["x"], 0)}


def test_a_beat_never_makes_a_row_of_what_has_ended(store: Store) -> None:
    start(store, "t", type=TASK)
    (held,) = claims(store).values()
    store.turns.commit([], [TaskEnd("t", held.fence, 5, "1")])
    assert store.workers.beat(beat(), {"t": held.fence}, TTL) == {}
    assert ready_rows(store) == []


def test_a_late_beat_keeps_what_has_expired_and_nobody_has_taken(
    store: Store, clock: Clock
) -> None:
    start(store, "x")
    held = fences(claims(store))
    clock.forward(TTL + 5)
    assert store.workers.beat(beat(), held, TTL) == {"x": (held["x"], 0)}
    assert store.maintenance.rescue(10, 3, dead=True) == []


def test_workers_are_told_as_they_last_said_it(store: Store, clock: Clock) -> None:
    start(store, "x", "y")
    store.workers.beat(beat("b", queues=()), {}, TTL)
    store.workers.beat(beat(), {}, TTL)
    claims(store)
    clock.forward(5)
    store.workers.beat(beat(running=3, draining=True, pid=2**40), {}, TTL)
    clock.forward(1)
    seen = SeenWorker(
        "a",
        "host",
        2**40,
        ("default", "mail"),
        4,
        3,
        True,
        "1.0",
        NOW,
        NOW + 5_000_000,
        2,
        clock.us,
        dead_after_s=DEAD,
    )
    other = SeenWorker(
        "b", "host", 7, (), 4, 2, False, "1.0", NOW, NOW, 0, clock.us, dead_after_s=DEAD
    )
    assert store.workers.seen() == [seen, other]
    store.workers.leave("a")
    store.workers.leave("nobody")
    assert store.workers.seen() == [other]


# rescue


def test_the_doctor_gives_the_claims_of_who_has_left_as_long_as_any_others(
    store: Store, clock: Clock
) -> None:
    """Until a rescue takes them back: a worker may leave without having given them back."""
    store.workers.beat(beat(), {}, TTL)
    start(store, "t", type=TASK)
    assert claims(store)
    store.workers.leave("a")
    assert [each.rule for each in examine(store, 60.0)] == []
    clock.forward(61)
    assert "claims_taken_back" in [each.rule for each in examine(store, 60.0)]


def test_claims_of_a_silent_worker_are_taken_long_before_they_expire(
    store: Store, clock: Clock
) -> None:
    start(store, "x", "y")
    for worker in ("a", "b"):
        store.workers.beat(beat(worker), {}, TTL)
        claims(store, worker, limit=1)
    clock.forward(DEAD)
    assert store.maintenance.rescue(10, 3, dead=True) == []
    store.workers.beat(beat("b"), {}, TTL)
    clock.forward(0.000001)
    assert store.maintenance.rescue(10, 3) == []
    assert store.maintenance.rescue(10, 3, dead=True) == ["x"]
    assert store.maintenance.rescue(10, 3, dead=True) == []
    assert list(claims(store, "c")) == ["x"]


def test_a_worker_is_dead_when_it_says_so_whoever_asks(store: Store, clock: Clock) -> None:
    """It knows that time, and begins nothing beyond it; that of another may be shorter."""
    start(store, "x", "y")
    for worker, dead_after_s in (("a", 60.0), ("b", 3.0)):
        store.workers.beat(beat(worker, dead_after_s=dead_after_s), {}, TTL)
        store.claims.claim(worker, ["default"], 1, 300.0)
    clock.forward(3.5)
    assert [queue.workers for queue in store.workers.queues() if queue.name == "mail"] == [1]
    assert store.operating.health().silent == (Silent("b", 1, NOW),)
    assert (store.maintenance.due(), store.maintenance.due(dead=True)) == (
        MaintenanceDue(False, False, False),
        MaintenanceDue(True, False, False),
    )
    assert store.recover(10, 3, dead=True).rescued == ("y",)
    clock.forward(56.5)
    assert (store.maintenance.due(dead=True).lost, store.maintenance.rescue(10, 3, dead=True)) == (
        False,
        [],
    )
    clock.forward(0.000001)
    assert (store.maintenance.due(dead=True).lost, store.maintenance.rescue(10, 3, dead=True)) == (
        True,
        ["x"],
    )


@pytest.mark.parametrize("gone", ["never beat", "left"])
def test_a_worker_without_a_row_is_judged_by_its_claims_alone(
    store: Store, clock: Clock, gone: str
) -> None:
    start(store, "x")
    if gone == "left":
        store.workers.beat(beat(), {}, TTL)
        store.workers.leave("a")
    claims(store)
    clock.forward(TTL)
    assert store.maintenance.rescue(10, 3, dead=True) == []
    clock.forward(0.000001)
    assert store.maintenance.rescue(10, 3, dead=True) == ["x"]


def test_an_expired_claim_is_taken_although_its_worker_lives(store: Store, clock: Clock) -> None:
    start(store, "x")
    claims(store)
    clock.forward(TTL + 1)
    store.workers.beat(beat(), {}, TTL)
    assert store.maintenance.rescue(10, 3, dead=True) == ["x"]


def test_of_two_rescuers_one_takes_each_claim(stores: Stores, store: Store, clock: Clock) -> None:
    start(store, "x", "y", "z")
    store.workers.beat(beat(), {}, TTL)
    claims(store)
    clock.forward(DEAD + 1)
    other = stores.store(clock)
    assert sorted(
        store.maintenance.rescue(2, 3, dead=True) + other.maintenance.rescue(2, 3, dead=True)
    ) == ["x", "y", "z"]
    assert store.maintenance.rescue(10, 3, dead=True) == []


def test_recovering_rescues_and_ends_cancelled_tasks(store: Store, clock: Clock) -> None:
    assert store.recover(10, 3, dead=True) == Recovered()
    start(store, "t", "u", type=TASK)
    store.workers.beat(beat(), {}, TTL)
    held = claims(store)
    store.executions.cancel(["t"])
    clock.forward(DEAD + 1)
    assert store.recover(10, 3) == Recovered()
    assert store.recover(10, 3, dead=True).rescued == ("t", "u")
    assert store.recover(10, 3, dead=True) == Recovered((), ("t",))
    assert (store.reading.get(["t"])["t"].status, store.reading.get(["u"])["u"].status) == (
        "cancelled",
        "pending",
    )
    assert held.keys() == {"t", "u"}


def test_workers_of_long_ago_are_forgotten_unless_they_have_claims(
    store: Store, clock: Clock
) -> None:
    start(store, "x")
    for worker in ("a", "b", "c"):
        store.workers.beat(beat(worker), {}, TTL)
    claims(store)
    clock.forward(FORGOTTEN_S)
    store.workers.beat(beat("c"), {}, TTL)
    store.claims.extend(store.claims.claimed_by("a"), TTL)
    store.recover(10, 3)
    assert [seen.worker for seen in store.workers.seen()] == ["a", "b", "c"]
    clock.forward(1)
    store.recover(10, 3)
    assert [seen.worker for seen in store.workers.seen()] == ["a", "c"]
    clock.forward(TTL)
    assert store.recover(10, 3).rescued == ("x",)
    store.recover(10, 3)
    assert [seen.worker for seen in store.workers.seen()] == ["c"]


def test_no_more_workers_are_forgotten_at_once_than_the_limit(store: Store, clock: Clock) -> None:
    for number in range(5):
        store.workers.beat(beat(f"w{number}"), {}, TTL)
    clock.forward(FORGOTTEN_S + 1)
    store.recover(2, 3)
    assert len(store.workers.seen()) == 3


# paused queues


def test_nothing_of_a_paused_queue_is_claimed_until_it_is_resumed(
    store: Store, clock: Clock
) -> None:
    start(store, "x", "y")
    clock.forward(1)
    start(store, "t", type=TASK)
    start(store, "m", queue="mail")
    assert store.workers.pause_queue("default", True, Actor("ops"), "too hot")
    assert list(claims(store)) == ["m"]
    assert store.workers.paused_queues() == {"default"}
    assert store.workers.pause_queue("default", False)
    assert (list(claims(store)), store.workers.paused_queues()) == (["x", "y", "t"], frozenset())


def test_pausing_what_is_paused_changes_nothing(store: Store, clock: Clock) -> None:
    assert not store.workers.pause_queue("mail", False)
    assert store.workers.pause_queue("mail", True, Actor("ops"), "first")
    clock.forward(5)
    assert not store.workers.pause_queue("mail", True, Actor("other"), "second")
    assert store.workers.queues() == [
        Queue("mail", 0, None, 0, 0, 0, NOW, "ops", "first", 0, clock.us)
    ]
    assert store.workers.pause_queue("mail", False)
    assert store.workers.queues() == []


def test_the_queue_of_resumes_cannot_be_paused(store: Store) -> None:
    with pytest.raises(
        ValueError,
        match="queue `system` cannot be paused: the workflows of all queues go on through it",
    ):
        store.workers.pause_queue("system", True)
    assert (store.workers.paused_queues(), store.workers.pause_queue("system", False)) == (
        frozenset(),
        False,
    )


def test_a_workflow_that_has_begun_goes_on_while_its_queue_is_paused(store: Store) -> None:
    start(store, "w")
    assert store.turns.commit([turn(claims(store)["w"], "park")], [])[0][0].outcome == "parked"
    store.workers.pause_queue("default", True)
    store.messages.signal(NewSignal("s", "w", "go", "1"), 10)
    assert list(claims(store)) == ["w"]


@pytest.mark.parametrize("how", ["release", "yield", "rescue"])
def test_a_workflow_whose_claim_is_given_back_is_held_by_a_pause_only_if_it_has_not_begun(
    store: Store, clock: Clock, how: str
) -> None:
    start(store, "begun", "fresh")
    held = claims(store)
    assert store.turns.commit([turn(held["begun"], "own")], [])[0][0].outcome == "own"
    store.workers.pause_queue("default", True)
    if how == "yield":
        store.turns.commit([turn(held["begun"], "yield", 1)], [])
    if how != "rescue":
        store.claims.release(fences(held))
    clock.forward(TTL + 1)
    store.maintenance.rescue(10, 3)
    assert list(claims(store)) == ["begun"]
    store.workers.pause_queue("default", False)
    assert list(claims(store)) == ["fresh"]


def test_what_is_claimed_of_a_queue_that_is_paused_then_may_be_ended(store: Store) -> None:
    start(store, "t", type=TASK)
    (held,) = claims(store).values()
    store.workers.pause_queue("default", True)
    assert store.turns.commit([], [TaskEnd("t", held.fence, 5, "1")])[1] == {"t"}


# queues


def test_queues_tell_what_waits_what_is_paused_and_who_serves(store: Store, clock: Clock) -> None:
    assert store.workers.queues() == []
    store.executions.start(
        [
            NewExecution(id, TASK, "work", "mail", delay_s=delay_s)
            for id, delay_s in (("a", 0), ("b", 0), ("c", 0), ("d", 60))
        ]
    )
    store.claims.claim("x", ["mail"], 1, 1.0)
    store.workers.beat(beat("x", queues=("mail", "mail", "idle")), {}, TTL)
    clock.forward(2)
    store.workers.beat(beat("y", queues=("mail",)), {}, TTL)
    store.workers.beat(beat("z", queues=("mail", "other"), draining=True), {}, TTL)
    store.workers.pause_queue("off", True, Actor("me"), "why")
    mail = Queue("mail", 2, NOW, 1, 1, 1, workers=2)
    off = Queue("off", 0, None, 0, 0, 0, clock.us, "me", "why")
    served = [
        Queue("idle", 0, None, 0, 0, workers=1),
        mail,
        off,
        Queue("system", 0, None, 0, 0, workers=2),
    ]
    served = [queue.replace(now=clock.us) for queue in served]
    assert store.workers.queues() == served
    assert store.operating.health().queues == tuple(served)
    clock.forward(DEAD - 1)
    assert {queue.name: queue.workers for queue in store.workers.queues()} == {
        "mail": 1,
        "off": 0,
        "system": 1,
    }


def test_health_tells_of_workers_that_have_claims_and_are_silent(
    store: Store, clock: Clock
) -> None:
    start(store, "x", "y", "z")
    for worker in ("a", "b", "c"):
        claims(store, worker, limit=1)
    store.workers.beat(beat("a"), {}, TTL)
    store.workers.beat(beat("idle"), {}, TTL)
    clock.forward(31)
    store.workers.beat(beat("b"), {}, TTL)
    assert store.operating.health().silent == (Silent("a", 1, NOW), Silent("c", 1, None))


# declarations

CHARGE = Declaration("charge", "money", 3, 2.5, '{"first_s": 1}', True)
MAIL = Declaration("mail", "default", 0, None, "null", False)


def declared_at(store: Store) -> dict[str, int]:
    return dict(rows(store, "SELECT name, declared_at FROM task_declarations"))


def test_what_a_task_is_comes_back_as_it_was_declared(store: Store) -> None:
    store.workers.declare([])
    assert store.workers.declared() == []
    store.workers.declare([MAIL, CHARGE])
    assert store.workers.declared() == [CHARGE, MAIL]
    assert [type(each.transactional) for each in store.workers.declared()] == [bool, bool]


@pytest.mark.parametrize(
    "changes",
    [
        dict(queue="x"),
        dict(retries=4),
        dict(timeout_s=None),
        dict(timeout_s=9.0),
        dict(backoff="1"),
        dict(transactional=False),
    ],
)
def test_the_last_to_declare_a_task_is_right(
    store: Store, clock: Clock, changes: dict[str, object]
) -> None:
    store.workers.declare([CHARGE, MAIL])
    clock.forward(1)
    store.workers.declare([CHARGE, CHARGE.replace(**changes), MAIL])
    assert store.workers.declared() == [CHARGE.replace(**changes), MAIL]
    assert declared_at(store) == {"charge": clock.us, "mail": NOW}


def test_declaring_the_same_writes_nothing(store: Store, clock: Clock) -> None:
    store.workers.declare([CHARGE, MAIL])
    clock.forward(1)
    before = rows(store, "SELECT * FROM task_declarations")
    store.workers.declare([CHARGE, MAIL])
    assert rows(store, "SELECT * FROM task_declarations") == before


# the same database once more


def test_a_sibling_sees_the_same_database_and_outlives_the_other(
    store: Store, clock: Clock
) -> None:
    start(store, "w")
    sibling = store.sibling()
    assert list(claims(sibling)) == ["w"]
    clock.forward(TTL + 1)
    assert store.maintenance.rescue(10, 3) == ["w"]
    sibling.close()
    assert list(claims(store)) == ["w"]


def test_a_database_in_memory_is_its_own_sibling() -> None:
    store = SqliteStore(":memory:")
    assert store.sibling() is store
    store.close()
