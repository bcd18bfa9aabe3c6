"""What only a server with many connections can show: real interleavings, deadlocks, lost
connections."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import cast

import psycopg
import pytest

from rhythm.errors import StoreError
from rhythm.store.interfaces.claims import Claim, Claimed
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.interfaces.messages import NewEvent, NewSignal, NewWait
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import Committed, Needed, NewTimer, TaskEnd, TurnCommit
from rhythm.store.interfaces.workers import Beat, Declaration
from rhythm.store.lifecycle import COMPLETED, TASK, WORKFLOW
from rhythm.store.postgres import connection as sessions
from rhythm.store.postgres.rows import LockedRow
from rhythm.store.postgres.store import PostgresStore
from tests.support.postgres import Schemas
from tests.support.stores import ready_rows

TTL = 30.0
BEAT = Beat("a", "host", 1, ("default",), 4, 0, False, "1")


@pytest.fixture
def store(schemas: Schemas) -> PostgresStore:
    return schemas.empty_store()


@pytest.fixture
def direct(schemas: Schemas) -> PostgresStore:
    return schemas.direct_store()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


@pytest.fixture
def session(schemas: Schemas) -> Iterator[psycopg.Connection]:
    """A transaction of somebody else, by hand."""
    with psycopg.connect(schemas.url, options=f"-c search_path={schemas.name}") as connection:
        yield connection


def start(store: Store, *ids: str) -> None:
    store.executions.start([NewExecution(id, WORKFLOW, "main", "default") for id in ids])


def claim(store: Store, worker: str = "a", limit: int = 100) -> dict[str, Claim]:
    return {claim.id: claim for claim in store.claims.claim(worker, ["default"], limit, TTL)}


def parking(claim: Claim, seq: int = 0, **changes: object) -> TurnCommit:
    return TurnCommit(
        claim.id, seq, claim.fence, claim.wakes, "park", "a", "turn", snapshot=b"s"
    ).replace(**changes)


@contextmanager
def blocked(
    schemas: Schemas, pool: ThreadPoolExecutor, work: Callable[[], object], waiters: int = 1
) -> Iterator[Future[object]]:
    """Work that waits for a lock of ours while the body of this runs, as one of so many waiters."""
    future = pool.submit(work)
    waiting = b"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    while not future.done() and (schemas.admin.execute(waiting).fetchone() or (0,))[0] < waiters:
        threading.Event().wait(0.005)
    assert not future.done(), future.result()
    yield future


def test_a_claim_goes_around_rows_that_another_is_taking(
    store: PostgresStore, session: psycopg.Connection
) -> None:
    start(store, "x", "y")
    session.execute("SELECT 1 FROM ready WHERE id = 'x' FOR UPDATE")
    assert list(claim(store)) == ["y"]


def test_many_claimers_never_get_the_same_row(
    schemas: Schemas, store: PostgresStore, pool: ThreadPoolExecutor
) -> None:
    start(store, *(f"w{i}" for i in range(300)))
    workers = [schemas.store() for _ in range(6)]

    def take(worker: PostgresStore) -> list[str]:
        taken: list[str] = []
        while got := claim(worker, "a", 7):
            taken += got
        return taken

    taken = [id for ids in pool.map(take, workers) for id in ids]
    assert (len(taken), len(set(taken))) == (300, 300)


@contextmanager
def held_up(schemas: Schemas) -> Iterator[None]:
    """Until the end of this, whoever claims waits: the statement has begun, and has locked no
    row."""
    admin = schemas.admin
    admin.execute(
        """
        SELECT pg_advisory_lock(1);
        CREATE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF current_query() LIKE '%SKIP LOCKED%' THEN PERFORM pg_advisory_xact_lock(1); END IF;
          RETURN NULL; END $$;
        CREATE TRIGGER held_up BEFORE UPDATE ON ready FOR EACH STATEMENT EXECUTE FUNCTION hold_up()
        """
    )
    try:
        yield
    finally:
        admin.execute("SELECT pg_advisory_unlock(1)")
        admin.execute("DROP FUNCTION hold_up CASCADE")


def test_what_a_claim_brings_is_newer_than_the_wakes_that_it_has_counted(
    schemas: Schemas, store: PostgresStore, pool: ThreadPoolExecutor
) -> None:
    """A wake of a row that is free is not counted: whoever claims the row must see its cause."""
    start(store, "w")
    with (
        held_up(schemas),
        blocked(schemas, pool, lambda: store.claims.claim("a", ["default"], 1, TTL)) as answer,
    ):
        assert store.messages.signal(NewSignal("s", "w", "go", "1"), 10) == "sent"
    claimed = cast(Claimed, answer.result())
    assert [(each.id, each.wakes) for each in claimed] == [("w", 0)]
    assert claimed.workflows["w"].has_mail


def test_a_park_that_waits_for_a_wake_is_refused(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    start(store, "w")
    held = claim(store)["w"]
    session.execute("UPDATE ready SET wakes = wakes + 1 WHERE id = 'w'")
    with blocked(
        schemas, pool, lambda: store.turns.commit([parking(held)], [])[0][0].outcome
    ) as answer:
        session.commit()
        assert answer.result() == "woken"


def test_a_park_without_a_turn_that_waits_for_a_wake_is_refused(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    start(store, "w")
    held = claim(store)["w"]
    session.execute("UPDATE ready SET wakes = wakes + 1 WHERE id = 'w'")
    with blocked(schemas, pool, lambda: store.claims.park([held])) as answer:
        session.commit()
        assert answer.result() == [Committed("w", "woken", 1)]


@pytest.mark.parametrize(
    ("ask", "left"), [("extend", [1, 0, 1]), ("release", [0, 0, 0]), ("drop", [0])]
)
def test_what_waits_for_a_rescue_finds_that_claim_lost_and_no_other(
    schemas: Schemas,
    store: PostgresStore,
    session: psycopg.Connection,
    pool: ThreadPoolExecutor,
    ask: str,
    left: list[int],
) -> None:
    start(store, "v", "w", "x")
    fences = {id: claim.fence for id, claim in claim(store).items()}
    session.execute(
        "UPDATE ready SET state = 0, claimed_by = NULL, claim_expires_at = NULL, fence = "
        "NULL WHERE id = 'w'"
    )
    with blocked(
        schemas,
        pool,
        lambda: (
            store.claims.extend(fences, TTL)
            if ask == "extend"
            else getattr(store.claims, ask)(fences)
        ),
    ) as answer:
        session.commit()
        assert answer.result() == ({"v": 0, "x": 0} if ask == "extend" else None)
    assert [state for _, state, _ in ready_rows(store)] == left


def test_a_wake_that_waits_for_a_park_makes_the_row_again(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    start(store, "w")
    claim(store)
    session.execute("DELETE FROM ready WHERE id = 'w'")
    with blocked(
        schemas, pool, lambda: store.messages.signal(NewSignal("s", "w", "go", "1"), 10)
    ) as answer:
        session.commit()
        assert answer.result() == "sent"
    assert ready_rows(store) == [("w", 0, 0)]


def child(store: PostgresStore, ttl_s: float) -> dict[str, int]:
    """`w.1`, claimed by `a` for so long: whoever fails it waits for its parent first."""
    store.executions.start(
        [NewExecution("w.1", WORKFLOW, "main", "default", parent_id="w", child_no=1, root_id="w")]
    )
    return {claim.id: claim.fence for claim in store.claims.claim("a", ["default"], 1, ttl_s)}


@pytest.mark.parametrize(
    "change", ["claim_expires_at = now_us() + 60000000", "fence = nextval('fences')"]
)
def test_a_rescuer_with_an_old_list_leaves_what_was_extended_or_claimed_anew_alone(
    schemas: Schemas,
    store: PostgresStore,
    session: psycopg.Connection,
    pool: ThreadPoolExecutor,
    change: str,
) -> None:
    child(store, -1.0)
    start(store, "w")
    session.execute("SELECT 1 FROM ready WHERE id = 'w' FOR UPDATE")
    with blocked(schemas, pool, lambda: store.maintenance.rescue(10, 1)) as answer:
        session.execute(f"UPDATE ready SET {change} WHERE id = 'w.1'".encode())
        session.commit()
        assert answer.result() == []


def test_a_rescuer_leaves_what_others_have_locked_for_the_next_time(
    store: PostgresStore, session: psycopg.Connection
) -> None:
    start(store, "v", "w", "x")
    store.claims.claim("a", ["default"], 3, -1.0)
    session.execute("SELECT 1 FROM ready WHERE id = 'w' FOR UPDATE")
    assert store.maintenance.rescue(10, 3) == ["v", "x"]
    assert store.maintenance.rescue(10, 3) == []
    session.rollback()
    assert store.maintenance.rescue(10, 3) == ["w"]


@pytest.mark.parametrize("service", ["rescue", "sweep", "timers"])
def test_a_service_does_not_wait_long_and_keeps_its_session(
    store: PostgresStore, session: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    monkeypatch.setattr(sessions, "IMPATIENT", "1ms")
    if service == "rescue":
        child(store, -1.0)
    start(store, "w")
    if service == "sweep":
        store.executions.start(
            [NewExecution("w.1", TASK, "main", "default", parent_id="w", child_no=1, root_id="w")]
        )
        session.execute("UPDATE executions SET cancel_requested_at = 1 WHERE id = 'w.1'")
    if service == "timers":
        session.execute("INSERT INTO timer_tasks (execution_id, n, fire_at) VALUES ('w', 1, 0)")
    session.commit()
    session.execute("SELECT 1 FROM ready WHERE id = 'w' FOR UPDATE")
    lock = store.rows.lock

    def hurried(ids: Iterable[str | None]) -> dict[str, LockedRow]:
        assert store.db.query(b"SELECT current_setting('lock_timeout')").fetchall() == [("1ms",)]
        return lock(ids)

    monkeypatch.setattr(store.rows, "lock", hurried)
    passes = {
        "rescue": lambda: store.maintenance.rescue(10, 1),
        "sweep": lambda: store.maintenance.end_cancelled_tasks(10),
        "timers": lambda: store.maintenance.fire_timers(10)[0],
    }
    with pytest.raises(
        StoreError, match="another transaction has held for too long what this one needs"
    ) as told:
        passes[service]()
    assert (type(told.value), store.era) == (StoreError, 0)
    session.rollback()
    assert passes[service]()


def dead(schemas: Schemas, store: PostgresStore, *ids: str) -> dict[str, int]:
    """The claims of worker `a`, which has beaten once, long ago."""
    start(store, *ids)
    silent(schemas, store)
    return {id: claim.fence for id, claim in claim(store).items()}


def silent(schemas: Schemas, store: PostgresStore) -> None:
    store.workers.beat(BEAT, {}, TTL)
    schemas.admin.execute(f"UPDATE {schemas.name}.worker_heartbeats SET beat_at = 0".encode())


def test_a_rescuer_does_not_rob_a_worker_that_has_beaten_meanwhile(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    silent(schemas, store)
    held = child(store, TTL)
    start(store, "w")
    session.execute("SELECT 1 FROM ready WHERE id = 'w' FOR UPDATE")
    with blocked(schemas, pool, lambda: store.maintenance.rescue(10, 1, dead=True)) as answer:
        assert schemas.store().workers.beat(BEAT, {}, TTL) == {"w.1": (held["w.1"], 0)}
        session.commit()
        assert answer.result() == []
    assert store.claims.claimed_by("a") == held


def test_a_rescuer_with_an_old_list_leaves_the_newer_claim_of_a_dead_worker_alone(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    silent(schemas, store)
    child(store, TTL)
    start(store, "w")
    session.execute("SELECT 1 FROM ready WHERE id = 'w' FOR UPDATE")
    with blocked(schemas, pool, lambda: store.maintenance.rescue(10, 1, dead=True)) as answer:
        session.execute("UPDATE ready SET fence = nextval('fences') WHERE id = 'w.1'")
        session.commit()
        assert answer.result() == []


def test_two_rescuers_of_one_worker_take_its_claims_once(
    schemas: Schemas, store: PostgresStore, pool: ThreadPoolExecutor
) -> None:
    dead(schemas, store, *(f"w{i:02}" for i in range(50)))
    passes = [
        pool.submit(store.maintenance.rescue, 10, 3, True)
        for store in [schemas.store(), schemas.store()]
        for _ in range(10)
    ]
    taken = sorted(id for each in passes for id in each.result()) + sorted(
        store.maintenance.rescue(100, 3, dead=True)
    )
    assert sorted(taken) == [f"w{i:02}" for i in range(50)]


def test_a_beat_waits_for_no_lock_and_prolongs_the_other_claims(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection
) -> None:
    held = dead(schemas, store, "v", "w", "x")
    session.execute("SELECT 1 FROM ready WHERE id = 'w' FOR UPDATE")
    mine = store.workers.beat(BEAT, held, 10 * TTL)
    assert (mine, mine.not_extended) == ({id: (fence, 0) for id, fence in held.items()}, {"w"})
    assert prolonged(schemas) == ["v", "x"]
    (seen,) = store.workers.seen()
    assert seen.now - seen.beat_at < 1e9
    session.rollback()
    assert store.workers.beat(BEAT, held, 10 * TTL).not_extended == frozenset()
    assert prolonged(schemas) == ["v", "w", "x"]


def prolonged(schemas: Schemas) -> list[str]:
    """Whose claims last longer than they did when they were claimed."""
    text = (
        f"SELECT id FROM {schemas.name}.ready WHERE claim_expires_at > "
        f"{schemas.name}.now_us() + 2 * {TTL} * 1000000 ORDER BY id"
    )
    return [row[0] for row in schemas.admin.execute(text.encode()).fetchall()]


def test_a_beat_tells_what_is_being_rescued_until_it_is(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection
) -> None:
    held = dead(schemas, store, "v", "w", "x", "y")
    known = {id: fence for id, fence in held.items() if id != "y"}
    session.execute(
        "UPDATE ready SET state = 0, claimed_by = NULL, claim_expires_at = NULL, fence = "
        "NULL WHERE id = 'w'"
    )
    assert store.workers.beat(BEAT, known, TTL) == {id: (held[id], 0) for id in "vwxy"}
    session.commit()
    mine = store.workers.beat(BEAT, known, TTL)
    assert (mine, mine.not_extended) == ({id: (held[id], 0) for id in "vxy"}, frozenset())
    assert [state for _, state, _ in ready_rows(store)] == [1, 0, 1, 1]


def test_a_claim_does_not_wait_for_a_pause_and_heeds_it_once_it_is_committed(
    store: PostgresStore, session: psycopg.Connection
) -> None:
    start(store, "v", "w")
    session.execute(
        "INSERT INTO queues (name, paused_at, paused_by, paused_reason) VALUES "
        "('default', 1, '', '')"
    )
    assert list(claim(store, limit=1)) == ["v"]
    session.commit()
    assert list(claim(store, limit=1)) == []


def test_a_claim_locks_no_row_of_a_paused_queue(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    start(store, "w")
    store.workers.pause_queue("default", True)
    store.claims.claim("a", ["default"], 1, TTL)
    assert session.execute("SELECT xmax::text FROM ready WHERE id = 'w'").fetchone() == ("0",)


def test_workers_that_declare_at_once_lock_in_the_order_of_names(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    first, second = (Declaration(name, "default", 1, None, "null", False) for name in ("a", "b"))
    store.workers.declare([first, second])
    session.execute("UPDATE task_declarations SET retries = 2 WHERE name = 'a'")
    with blocked(
        schemas,
        pool,
        lambda: store.workers.declare([second.replace(retries=3), first.replace(retries=3)]),
    ) as answer:
        session.execute("SELECT 1 FROM task_declarations WHERE name = 'b' FOR UPDATE NOWAIT")
        session.commit()
        answer.result()
    assert [declaration.retries for declaration in store.workers.declared()] == [3, 3]


def test_declaring_what_is_declared_locks_nothing(
    store: PostgresStore, session: psycopg.Connection
) -> None:
    same = [Declaration(name, "default", 1, None, "null", False) for name in ("a", "b")]
    store.workers.declare(same)
    store.workers.declare(same)
    assert session.execute("SELECT DISTINCT xmax::text FROM task_declarations").fetchall() == [
        ("0",)
    ]


def test_a_task_that_was_delayed_anew_meanwhile_is_not_freed(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    store.executions.start([NewExecution("t", TASK, "work", "default", delay_s=1e-6)])
    session.execute("UPDATE ready SET due_at = now_us() + 60000000 WHERE id = 't'")
    with blocked(schemas, pool, lambda: store.maintenance.fire_timers(10)[0]) as answer:
        session.commit()
        assert answer.result() == 0
    assert ready_rows(store) == [("t", 2, 0)]


def test_an_acknowledged_cancel_is_seen_by_the_finish_that_waited_for_it(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    start(store, "w")
    held = claim(store)["w"]
    session.execute("UPDATE ready SET wakes = wakes + 1 WHERE id = 'w'")
    finish = parking(held, end="finish", status=COMPLETED)
    with blocked(schemas, pool, lambda: store.turns.commit([finish], [])) as answer:
        session.execute("UPDATE executions SET cancel_requested_at = now_us() WHERE id = 'w'")
        session.commit()
        answer.result()
    assert store.reading.get(["w"])["w"].status == "cancelled"


def test_a_task_that_ended_while_its_time_ran_out_stays_as_it_ended(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    store.executions.start([NewExecution("t", TASK, "work", "default", timeout_s=0.0)])
    claim(store)
    session.execute("DELETE FROM ready WHERE id = 't'")
    with blocked(schemas, pool, lambda: store.maintenance.fire_timers(10)) as answer:
        session.execute(
            "UPDATE executions SET status = 5, result = '1', finished_at = now_us() WHERE id = 't'"
        )
        session.commit()
        answer.result()
    ended = store.reading.get(["t"])["t"]
    assert (ended.status, ended.result) == ("completed", "1")


def test_a_timer_that_another_has_fired_is_not_fired_again(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    start(store, "w")
    store.turns.commit([parking(claim(store)["w"], end="own", timers=(NewTimer(1, 0.0),))], [])
    session.execute("UPDATE ready SET wakes = wakes + 1 WHERE id = 'w'")
    with blocked(schemas, pool, lambda: store.maintenance.fire_timers(10)[0]) as answer:
        session.execute("UPDATE timer_tasks SET fired_at = 1")
        session.commit()
        assert answer.result() == 0


def test_signals_sent_at_once_are_numbered_without_gaps(
    schemas: Schemas, store: PostgresStore, pool: ThreadPoolExecutor
) -> None:
    start(store, "w")
    senders = [schemas.store() for _ in range(6)]

    def send(i: int) -> str:
        return senders[i % 6].messages.signal(NewSignal(f"s{i}", "w", "go", "1"), 1000)

    assert set(pool.map(send, range(60))) == {"sent"}
    numbers = store.db.autocommit(
        lambda: store.db.query(b"SELECT n FROM workflow_signals ORDER BY n").fetchall()
    )
    assert [n for (n,) in numbers] == list(range(1, 61))


def test_a_signal_waits_for_the_release_of_one_that_was_held_back_and_wakes_it(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    store.executions.start([NewExecution("w", WORKFLOW, "main", "default", held=True)])
    session.execute("UPDATE executions SET held = false WHERE id = 'w'")
    with blocked(
        schemas, pool, lambda: store.messages.signal(NewSignal("s", "w", "go", "1"), 10)
    ) as answer:
        session.commit()
        assert answer.result() == "sent"
    assert ready_rows(store) == [("w", 0, 0)]


def test_a_flush_that_waits_for_one_row_has_locked_no_later_one(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    """It parks `p2` and, by the end of a task, wakes `p1`: whoever has `p1` may go on to take
    `p2`."""
    start(store, "p2")
    held = claim(store)
    start(store, "p1")
    held |= claim(store)
    child = NewExecution("p1.1", TASK, "t", "default", parent_id="p1", child_no=1, root_id="p1")
    store.turns.commit([parking(held["p1"], end="own", starts=(child,))], [])
    body = claim(store)["p1.1"]
    session.execute("SELECT 1 FROM ready WHERE id = 'p1' FOR UPDATE")
    flush = ([parking(held["p2"])], [TaskEnd(body.id, body.fence, COMPLETED, "1")])
    with blocked(schemas, pool, lambda: store.turns.commit(*flush)) as answer:
        for later in ("p1.1", "p2"):
            session.execute("SELECT 1 FROM ready WHERE id = %s FOR UPDATE NOWAIT", [later])
        session.commit()
        assert answer.result() == ([Committed("p2", "parked")], {"p1.1"})


def test_a_flush_waits_for_an_earlier_sending_of_the_same_turn(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    """Its answer was lost, and the server is still at it: the second must not count too."""
    start(store, "w")
    held = claim(store)["w"]
    session.execute("UPDATE workflow_execution_context SET seq = 1 WHERE execution_id = 'w'")
    turn = parking(held, timers=(NewTimer(1, 3600.0),))
    with blocked(schemas, pool, lambda: store.turns.commit([turn], [])) as answer:
        session.commit()
        assert answer.result()[0] == [Committed("w", "lost")]
    assert store.turns.load(["w"])[0].seq == 1
    assert session.execute("SELECT count(*) FROM timer_tasks").fetchall() == [(0,)]


def test_of_many_that_want_a_lease_at_once_one_gets_it(
    schemas: Schemas, store: PostgresStore, pool: ThreadPoolExecutor
) -> None:
    many = [schemas.store() for _ in range(6)]
    for name in ("a", "b", "c"):
        got = list(
            pool.map(lambda i, name=name: many[i].workers.lease(name, f"holder {i}", TTL), range(6))
        )
        assert sorted(got) == [False] * 5 + [True]


def test_a_wait_that_is_registered_while_an_event_is_published_finds_it(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    start(store, "w")
    held = claim(store)["w"]
    session.execute("INSERT INTO event_types VALUES ('paid', 1)")
    session.execute("INSERT INTO events SELECT 'e', 'paid', 1, 'null', created_at FROM executions")
    with blocked(
        schemas,
        pool,
        lambda: (
            store.turns.commit([parking(held, waits=(NewWait(1, "paid", "{}"),))], [])[0][0].outcome
        ),
    ) as answer:
        session.commit()
        assert answer.result() == "woken"


def test_an_event_that_is_published_while_a_wait_is_registered_ends_it(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    start(store, "w")
    store.turns.commit([parking(claim(store)["w"])], [])
    session.execute("INSERT INTO event_types VALUES ('paid', 0)")
    session.execute(
        "INSERT INTO event_waits (execution_id, n, type, wanted, since, held) VALUES "
        "('w', 1, 'paid', '{}', 0, false)"
    )
    with blocked(
        schemas, pool, lambda: store.messages.publish(NewEvent("e", "paid", "1"))
    ) as answer:
        session.commit()
        assert answer.result() == "published"
    assert ready_rows(store) == [("w", 0, 0)]


def test_an_event_goes_to_the_next_wait_when_the_first_is_cancelled_meanwhile(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    start(store, "w")
    store.turns.commit(
        [parking(claim(store)["w"], waits=(NewWait(1, "paid", "{}"), NewWait(2, "paid", "{}")))], []
    )
    session.execute("UPDATE event_waits SET status = 7, ended_at = 1 WHERE n = 1")
    with blocked(
        schemas, pool, lambda: store.messages.publish(NewEvent("e", "paid", "1"))
    ) as answer:
        session.commit()
        assert answer.result() == "published"
    assert [(o.n, o.status) for o in store.turns.outcomes([Needed("w", (2,))])["w"]] == [
        (2, COMPLETED)
    ]


def test_a_child_that_a_turn_makes_while_its_parent_is_terminated_ends_too(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    start(store, "w")
    store.turns.commit([parking(claim(store)["w"])], [])
    session.execute("UPDATE workflow_execution_context SET updated_at = 1")
    session.execute(
        "INSERT INTO executions (id, type, name, version, queue, priority, status, "
        "parent_id, child_no, root_id, attempt, max_attempts, "
        "options, attributes, inputs, created_at) VALUES ('w.1', 0, 't', '', 'q', 0, 0, "
        "'w', 1, 'w', 0, 1, '{}', '{}', 'null', 1)"
    )
    session.execute(
        "INSERT INTO workflow_execution_context (execution_id, seq, fence, format, statement, "
        "owned, awaiting, updated_at) VALUES ('w.1', 0, 0, 1, 0, '[]', 'null', 1)"
    )
    with blocked(schemas, pool, lambda: store.executions.terminate(["w"])) as answer:
        session.commit()
        assert answer.result() == {"w": True}
    assert {execution.status for execution in store.reading.get(["w", "w.1"]).values()} == {
        "cancelled"
    }


def test_an_event_that_is_taken_while_it_is_to_be_forgotten_stays(
    schemas: Schemas, store: PostgresStore, session: psycopg.Connection, pool: ThreadPoolExecutor
) -> None:
    store.messages.publish(NewEvent("e", "paid", "1"))
    session.execute("UPDATE event_types SET n = n")
    session.execute(
        "INSERT INTO event_waits (execution_id, n, type, wanted, since, held, status, event_id, "
        "ended_at) VALUES ('w', 1, 'paid', '{}', 0, false, 5, 'e', 1)"
    )
    with blocked(schemas, pool, lambda: store.maintenance.prune_events(-1.0, 10)) as answer:
        session.commit()
        assert answer.result() == 0
    assert store.messages.publish(NewEvent("e", "paid", "1")) == "duplicate"


def test_publishers_and_waiters_of_many_types_all_succeed(
    schemas: Schemas, store: PostgresStore, pool: ThreadPoolExecutor
) -> None:
    """Every workflow waits for every event, and publishes one: whatever meets, nobody misses
    any."""
    count = 6
    start(store, *(f"w{i}" for i in range(count)))
    held = claim(store)
    waits = tuple(NewWait(n, f"t{n}", "{}") for n in range(count))

    def both(i: int) -> None:
        mine = schemas.store()
        mine.turns.commit(
            [parking(held[f"w{i}"], end="own", waits=waits if i % 2 else waits[::-1])], []
        )
        mine.turns.commit(
            [parking(held[f"w{i}"], 1, end="own", events=(NewEvent(f"e{i}", f"t{i}", "1"),))], []
        )

    list(pool.map(both, range(count)))
    found = store.turns.outcomes([Needed(id, tuple(range(count))) for id in held])
    assert {id: sorted(o.n for o in outcomes) for id, outcomes in found.items()} == {
        id: list(range(count)) for id in held
    }


def test_flushes_that_park_and_wake_crosswise_all_succeed(
    schemas: Schemas, store: PostgresStore, pool: ThreadPoolExecutor
) -> None:
    """Two workers, each parking workflows whose children the other one ends, in opposite orders."""
    start(store, *(f"w{i}" for i in range(20)))
    stores = [schemas.store(), schemas.store()]
    for _ in range(5):
        _crosswise(store, stores, pool)
    assert all(store.turns.load([f"w{i}"])[0].seq == 10 for i in range(20))


def _crosswise(store: PostgresStore, stores: list[PostgresStore], pool: ThreadPoolExecutor) -> None:
    held = claim(store)
    assert len(held) == 20
    seqs = {row.id: row.seq for row in store.turns.load(list(held))}
    tasks = {
        id: NewExecution(
            f"{id}.{seqs[id]}", TASK, "t", "default", parent_id=id, child_no=seqs[id], root_id=id
        )
        for id in held
    }
    store.turns.commit(
        [parking(c, seqs[id], end="own", starts=(tasks[id],)) for id, c in held.items()], []
    )
    bodies = claim(store)
    ids = sorted(held)

    def flush(side: int) -> None:
        turns = [parking(held[id], seqs[id] + 1) for id in ids[side::2]]
        ends = [
            TaskEnd(tasks[id].id, bodies[tasks[id].id].fence, COMPLETED, "1")
            for id in ids[1 - side :: 2]
        ]
        stores[side].turns.commit(turns[:: 1 - 2 * side], ends)

    list(pool.map(flush, (0, 1)))
    store.claims.release(store.claims.claimed_by("a"))


def test_one_of_many_that_start_together_migrates(
    schemas: Schemas, pool: ThreadPoolExecutor
) -> None:
    name = f"{schemas.name}_new"
    many = [PostgresStore(schemas.through, name, access=schemas.access) for _ in range(6)]
    try:
        assert [store.schema.version() for store in many] == [0] * 6
        ran = list(pool.map(lambda store: store.schema.migrate(), many))
        assert sorted(name for names in ran for name in names) == [
            migration.name for migration in many[0].schema.migrations()
        ]
        assert many[0].schema.version() == many[0].schema.migrations()[-1].number
    finally:
        schemas.admin.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())
        for each in many:
            each.close()


def test_a_broken_connection_is_a_store_error_once_and_opened_again(
    schemas: Schemas, direct: PostgresStore
) -> None:
    start(direct, "w")
    pid = direct.db.autocommit(lambda: direct.db.query(b"SELECT pg_backend_pid()").fetchall())[0][0]
    schemas.admin.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    with pytest.raises(StoreError):
        direct.reading.get(["w"])
    assert direct.reading.get(["w"])["w"].status == "pending"


@pytest.mark.parametrize(
    ("setting", "value", "problem"),
    [
        ("default_transaction_read_only", "on", "read-only"),
        ("statement_timeout", "1ms", "statement timeout"),
    ],
)
def test_a_session_that_cannot_do_its_work_is_a_store_error_once_and_opened_again(
    direct: PostgresStore, session: psycopg.Connection, setting: str, value: str, problem: str
) -> None:
    """Such as after a failover, when the connection leads to the server that may only be read from
    then on."""
    start(direct, "w")
    session.execute("SELECT 1 FROM ready WHERE id = 'w' FOR UPDATE")
    direct.db.autocommit(lambda: direct.db.set(setting, value))
    with pytest.raises(StoreError, match=problem):
        direct.executions.cancel(["w"])
    session.rollback()
    assert direct.executions.cancel(["w"]) == {"w": True}


def test_a_lock_that_others_hold_for_too_long_is_no_lost_database(
    direct: PostgresStore, session: psycopg.Connection
) -> None:
    start(direct, "w")
    session.execute("SELECT 1 FROM ready WHERE id = 'w' FOR UPDATE")
    direct.db.autocommit(lambda: direct.db.set("lock_timeout", "1ms"))
    for _ in range(2):
        with pytest.raises(
            StoreError, match="another transaction has held for too long what this one needs"
        ) as told:
            direct.executions.cancel(["w"])
    assert (type(told.value), direct.era) == (StoreError, 0)
    session.rollback()
    assert direct.executions.cancel(["w"]) == {"w": True}


def test_a_process_that_is_frozen_in_a_transaction_loses_it_soon_and_transactions_of_users_last(
    direct: PostgresStore,
) -> None:
    bound = b"SELECT current_setting('idle_in_transaction_session_timeout')"
    assert direct.db.transaction(lambda: direct.db.query(bound).fetchall()) == [("10s",)]
    with direct.spare.connection() as lent:
        assert lent.execute(bound).fetchall() == [("0",)]


def test_calls_that_wait_for_a_lock_keep_nobody_else_waiting(
    schemas: Schemas,
    store: PostgresStore,
    session: psycopg.Connection,
    pool: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many: the one whose lock they wait for may be the next to call, and could not let go
    of it."""
    monkeypatch.setattr(sessions, "PATIENCE_S", 0.01)
    start(store, "w", "x")
    session.execute("SELECT 1 FROM ready WHERE id = 'w' FOR UPDATE")
    waiting = [pool.submit(store.executions.cancel, ["w"]) for _ in range(sessions.SESSIONS + 1)]
    while len(
        schemas.admin.execute(
            b"SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        ).fetchall()
    ) < len(waiting):
        assert not any(future.done() for future in waiting)
    assert store.executions.cancel(["x"]) == {"x": True}
    session.rollback()
    assert [future.result() for future in waiting] == [{"w": True}] * len(waiting)
    assert len(store.db._idle) == sessions.SESSIONS


def test_of_several_sessions_that_break_together_one_is_a_store_error(
    schemas: Schemas, direct: PostgresStore, pool: ThreadPoolExecutor
) -> None:
    together = threading.Barrier(2)
    list(pool.map(lambda _: direct.db.autocommit(lambda: together.wait(120)), range(2)))
    assert len(direct.db._idle) == 2
    for idle in direct.db._idle:
        schemas.admin.execute("SELECT pg_terminate_backend(%s, 5000)", [idle.info.backend_pid])
    with pytest.raises(StoreError):
        direct.reading.get(["w"])
    assert list(
        pool.map(lambda _: direct.db.autocommit(lambda: together.wait(120) >= 0), range(2))
    ) == [
        True,
        True,
    ]


def test_a_server_that_is_not_there_is_a_store_error() -> None:
    store = PostgresStore("postgresql://nobody@127.0.0.1:1/none?connect_timeout=1")
    with pytest.raises(StoreError):
        store.schema.version()


def test_times_are_the_databases_without_a_clock_of_the_test(
    schemas: Schemas, store: PostgresStore
) -> None:
    start(store, "w")
    row = schemas.admin.execute(
        "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    ).fetchone()
    assert row
    assert 0 <= row[0] - store.reading.get(["w"])["w"].created_at < 60_000_000


def test_a_timer_of_the_databases_clock_does_not_fire_early(store: PostgresStore) -> None:
    start(store, "w")
    store.turns.commit(
        [parking(claim(store)["w"], timers=(NewTimer(1, 3600.0), NewTimer(2, 0.0)))], []
    )
    assert store.maintenance.fire_timers(10)[0] == 1
