"""How a process hears that another has left something to claim: after the commit, soon, and at
nobody's cost."""

from __future__ import annotations

import logging
import os
import queue
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rhythm.store.interfaces.claims import SYSTEM_QUEUE
from rhythm.store.interfaces.executions import Family, NewExecution
from rhythm.store.interfaces.messages import NewEvent, NewSignal, NewWait
from rhythm.store.interfaces.store import Listening, Store
from rhythm.store.interfaces.turns import NewTimer, TaskEnd, TurnCommit
from rhythm.store.lifecycle import COMPLETED, FAILED, TASK, WORKFLOW
from rhythm.store.postgres import hints
from rhythm.store.postgres.connecting import Access, connected
from rhythm.store.postgres.connection import Hints
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.postgres.wire import BoundStatement, Wire
from rhythm.store.sqlite.session import clock_us
from rhythm.store.sqlite.store import SqliteStore
from tests.support.full_way import short_ways
from tests.support.postgres import Schemas
from tests.support.stores import KINDS, SqliteFiles, Stores

SOON_S = 120.0  # for a thread that has everything it needs
TTL = 30.0


class Ear:
    """Everything that was heard, in order."""

    def __init__(self) -> None:
        self.heard: list[frozenset[str]] = []
        self.changed = threading.Condition()

    def __call__(self, queues: frozenset[str]) -> None:
        with self.changed:
            self.heard.append(queues)
            self.changed.notify_all()

    def until(self, done: Callable[[list[frozenset[str]]], bool]) -> list[frozenset[str]]:
        """What was heard until this is true of it; from then on it hears anew."""
        with self.changed:
            assert self.changed.wait_for(lambda: done(self.heard), SOON_S), self.heard
            heard, self.heard = self.heard, []
            return heard


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    if request.param == "sqlite":
        files = SqliteFiles(tmp_path)
        yield files
        files.close()
    else:
        yield request.getfixturevalue("schemas")


@pytest.fixture
def listening() -> Iterator[Callable[[Store, Ear], Listening]]:
    """Begins to listen, and has looked for everything once."""
    begun: list[Listening] = []

    def begin(store: Store, ear: Ear) -> Listening:
        begun.append(store.listen(ear))
        ear.until(lambda heard: frozenset() in heard)
        return begun[-1]

    yield begin
    for each in begun:
        each.close()


Listen = Callable[[Store, Ear], Listening]


def two(stores: Stores) -> tuple[Store, Store]:
    if isinstance(stores, SqliteFiles):
        return stores.empty_store(clock_us), stores.store(clock_us)
    return stores.empty_store(), stores.store()


def until(done: Callable[[], Any]) -> None:
    """For what only the server or another thread can tell."""
    limit = time.monotonic() + SOON_S
    while not done():
        assert time.monotonic() < limit
        threading.Event().wait(0.005)


def new(id: str, queue: str = "default", **changes: Any) -> NewExecution:
    return NewExecution(id, WORKFLOW, "main", queue).replace(**changes)


def test_a_listener_looks_for_everything_first_and_hears_of_a_start(
    stores: Stores, listening: Listen
) -> None:
    store, other = two(stores)
    ear = Ear()
    listening(store, ear)
    other.executions.start([new("w", "mail")])
    heard = ear.until(bool)
    assert heard[0] in (frozenset(), {"mail"})
    assert [claim.id for claim in store.claims.claim("a", ["mail"], 1, TTL)] == ["w"]


def test_who_has_closed_hears_nothing_more(stores: Stores, listening: Listen) -> None:
    store, other = two(stores)
    deaf, ear = Ear(), Ear()
    listening(store, deaf).close()
    listening(store, ear)
    other.executions.start([new("w")])
    ear.until(bool)
    assert deaf.heard == []


def test_a_database_in_memory_has_nobody_to_hear_of() -> None:
    store = SqliteStore(":memory:")
    listening = store.listen(lambda queues: None)
    assert listening.problem == ""
    listening.close()
    store.close()


# PostgreSQL


@pytest.fixture
def told(schemas: Schemas) -> PostgresStore:
    """A store of which one sees what it tells."""
    return schemas.empty_store()


@pytest.fixture
def says(
    told: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[], object]], set[str]]:
    """The queues that a call tells of, once it has returned."""
    queues: set[str] = set()
    monkeypatch.setattr(
        told._notifier, "announce", lambda *hints: queues.update(*(each.freed for each in hints))
    )

    def saying(work: Callable[[], object]) -> set[str]:
        queues.clear()
        work()
        return set(queues)

    return saying


Says = Callable[[Callable[[], object]], set[str]]


def claim(store: Store, id: str) -> tuple[int, int]:
    """Fence and wakes."""
    found = {claim.id: claim for claim in store.claims.claim("a", ["default", "mail"], 100, TTL)}
    return found[id].fence, found[id].wakes


def parked(store: Store, id: str, seq: int = 0, **changes: Any) -> TurnCommit:
    fence, wakes = claim(store, id)
    turn = TurnCommit(id, seq, fence, wakes, "park", "a", "turn", snapshot=b"s").replace(**changes)
    store.turns.commit([turn], [])
    return turn


def test_starts_are_told_unless_they_are_delayed_or_there_already(
    told: PostgresStore, says: Says
) -> None:
    assert says(
        lambda: told.executions.start([new("w"), new("x", "mail"), new("y", "later", delay_s=60)])
    ) == {"default", "mail"}
    assert says(lambda: told.executions.start([new("w")])) == set()


def test_turns_tell_of_what_they_leave_to_others(told: PostgresStore, says: Says) -> None:
    told.executions.start([new("w")])
    child = NewExecution("w.1", TASK, "work", "mail", parent_id="w", child_no=1, root_id="w")
    assert says(lambda: parked(told, "w", starts=(child,))) == {"mail"}
    fence, _ = claim(told, "w.1")
    assert says(lambda: told.turns.commit([], [TaskEnd("w.1", fence, COMPLETED, "1")])) == {
        SYSTEM_QUEUE
    }
    assert says(lambda: parked(told, "w", 1, end="yield")) == {SYSTEM_QUEUE}
    assert says(lambda: parked(told, "w", 2)) == set()


def test_whatever_wakes_from_outside_is_told_and_what_wakes_nobody_is_not(
    told: PostgresStore, says: Says
) -> None:
    told.executions.start([new(id) for id in ("w", "x", "y")])
    for id, waits in (("w", ()), ("x", (NewWait(1, "paid", "{}"),)), ("y", ())):
        found = {claim.id: claim for claim in told.claims.claim("a", ["default"], 1, TTL)}[id]
        told.turns.commit(
            [
                TurnCommit(
                    id, 0, found.fence, found.wakes, "park", "a", "turn", snapshot=b"s", waits=waits
                )
            ],
            [],
        )
    assert says(lambda: told.messages.signal(NewSignal("s", "w", "go", "1"), 10)) == {SYSTEM_QUEUE}
    assert says(lambda: told.messages.signal(NewSignal("s", "w", "go", "1"), 10)) == set()
    assert says(lambda: told.messages.signal(NewSignal("t", "w", "go", "1"), 10)) == set(), (
        "it is free already"
    )
    assert says(lambda: told.messages.publish(NewEvent("e", "paid", "{}"))) == {SYSTEM_QUEUE}
    assert says(lambda: told.messages.publish(NewEvent("f", "paid", "{}"))) == set()
    assert says(lambda: told.people.pause(["y"])) == {SYSTEM_QUEUE}
    fence, _ = claim(told, "y")
    assert says(lambda: told.executions.cancel(["y"])) == set(), "whoever holds it looks by itself"
    assert says(lambda: told.claims.release({"y": fence}, 60)) == set()
    assert says(lambda: told.executions.cancel(["y"])) == {SYSTEM_QUEUE}, (
        "it was delayed, and is free"
    )


def test_what_comes_due_is_told(told: PostgresStore, says: Says) -> None:
    told.executions.start([new("w"), new("later", "mail", delay_s=1e-6)])
    assert says(lambda: parked(told, "w", timers=(NewTimer(1, 0.0),))) == set()
    assert says(lambda: told.maintenance.fire_timers(10)) == {SYSTEM_QUEUE, "mail"}


def test_what_is_given_back_or_taken_back_is_told(told: PostgresStore, says: Says) -> None:
    told.executions.start([new("w"), NewExecution("t", TASK, "work", "mail")])
    fences = {
        claim.id: claim.fence for claim in told.claims.claim("a", ["default", "mail"], 10, 0.0)
    }
    assert says(lambda: told.maintenance.rescue(10, 3)) == {"default", "mail"}
    fences = {
        claim.id: claim.fence for claim in told.claims.claim("a", ["default", "mail"], 10, TTL)
    }
    assert says(lambda: told.claims.release(fences)) == {"default", "mail"}


def test_a_queue_that_is_resumed_is_told(told: PostgresStore, says: Says) -> None:
    assert says(lambda: told.workers.pause_queue("mail", True)) == set()
    assert says(lambda: told.workers.pause_queue("mail", False)) == {"mail"}


def test_a_sibling_reaches_the_database_in_the_same_way(told: PostgresStore) -> None:
    store = PostgresStore(
        told.db.url,
        told.db.schema,
        access=Access(pooled=True, notify=False, listen_url="postgresql:///x"),
    )
    assert store.sibling().db.access == store.db.access


def test_a_retry_and_a_lost_wake_are_told(told: PostgresStore, says: Says) -> None:
    told.executions.start([new("w"), new("x")])
    fences = {claim.id: claim for claim in told.claims.claim("a", ["default"], 10, TTL)}
    ends = {"w": dict(end="finish", status=FAILED), "x": dict(end="park")}
    for id, changes in ends.items():
        told.turns.commit(
            [
                TurnCommit(
                    id, 0, fences[id].fence, fences[id].wakes, "park", "a", "t", snapshot=b"s"
                ).replace(**changes)
            ],
            [],
        )

    def again(family: Family) -> Family:
        return Family(
            (
                family.executions[0].replace(
                    id="again",
                    status=0,
                    retry_of="w",
                    root_id="again",
                    finished_at=None,
                    error=None,
                    awaiting="null",
                ),
            )
        )

    assert says(lambda: told.executions.retry("w", again)) == {"default"}
    assert says(lambda: told.maintenance.mend({"x": 1}, [])) == {SYSTEM_QUEUE}


def test_nothing_is_heard_before_the_commit(schemas: Schemas, listening: Listen) -> None:
    """Of a start in the caller's own transaction: the hint goes out with it, or not at all."""
    store, ear = schemas.empty_store(), Ear()
    listening(store, ear)
    with psycopg.connect(schemas.url) as connection:
        store.within(connection).executions.start([new("undone", "never")])
        connection.rollback()
        store.within(connection).executions.start([new("w", "mail")])
        schemas.store().executions.start([new("x", "other")])
        assert ear.until(lambda heard: {"other"} in heard)[-1] == {"other"}
        connection.commit()
    assert ear.until(bool) == [{"mail"}]


def test_hints_of_one_moment_are_one(
    schemas: Schemas, listening: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints, "MIN_INTERVAL_S", 0.2)
    store, other, ear = schemas.empty_store(), schemas.store(), Ear()
    listening(store, ear)
    for n in range(50):
        other.executions.start([new(f"w{n}", f"queue-{n % 5}")])
    other.close()
    heard = ear.until(lambda heard: len(frozenset().union(*heard)) == 5)
    assert len(heard) < 10


def test_many_queues_are_all_of_them(schemas: Schemas, listening: Listen) -> None:
    store, ear = schemas.empty_store(), Ear()
    listening(store, ear)
    schemas.store().executions.start([new(f"w{n}", f"{'q' * 150}{n}") for n in range(60)])
    assert ear.until(bool) == [frozenset()]


def test_who_closes_at_once_is_heard(schemas: Schemas, listening: Listen) -> None:
    """A short script that starts one workflow and ends."""
    store, other, ear = schemas.empty_store(), schemas.store(), Ear()
    listening(store, ear)
    other.executions.start([new("w", "mail")])
    other.close()
    assert other._notifier._thread is None
    assert ear.until(bool) == [{"mail"}]


def by_the_thread(hints: Hints) -> list[BoundStatement]:
    """As after a hint that was sent a moment ago."""
    return []


def test_a_notifier_that_cannot_tell_stops_nobody_and_tells_later(
    schemas: Schemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints, "RETRY_S", (0.001, 0.01))
    monkeypatch.setattr(hints, "FLUSH_S", 0.05)
    store, other, ear = schemas.empty_store(), schemas.store(), Ear()
    connect, tried = other._notifier._connect, threading.Event()

    def refuse() -> Any:
        tried.set()
        raise psycopg.OperationalError("the queue is full")

    monkeypatch.setattr(other._notifier, "_connect", refuse)
    monkeypatch.setattr(other._notifier, "statements", by_the_thread)
    listening = store.listen(ear)
    ear.until(bool)  # what is told before it hears is not heard
    other.executions.start([new("w", "mail")])
    assert tried.wait(SOON_S)
    other.executions.start([new("x", "more")])
    monkeypatch.setattr(other._notifier, "_connect", connect)
    assert ear.until(lambda heard: {"mail", "more"} in heard)
    listening.close()


def test_a_notifier_that_hangs_stops_nobody(
    schemas: Schemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints, "FLUSH_S", 0.05)
    store, hangs, asked = schemas.empty_store(), threading.Event(), threading.Event()

    def hang() -> Any:
        asked.set()
        hangs.wait(SOON_S)
        raise psycopg.OperationalError("it hung")

    monkeypatch.setattr(store._notifier, "_connect", hang)
    monkeypatch.setattr(store._notifier, "statements", by_the_thread)
    store.executions.start([new("w")])
    assert asked.wait(SOON_S)
    store.executions.start([new("x")])
    store.close()
    assert store._notifier._thread is not None
    hangs.set()


def test_a_listener_that_is_stuck_stops_nobody(schemas: Schemas) -> None:
    store, goes_on = schemas.empty_store(), threading.Event()
    stuck = schemas.store().listen(lambda queues: goes_on.wait(SOON_S) and None)
    store.executions.start([new("w")])
    assert [claim.id for claim in store.claims.claim("a", ["default"], 1, TTL)] == ["w"]
    goes_on.set()
    stuck.close()


@pytest.mark.parametrize("hint", ["{", "5", "[[1]]", "null", "[" * 7000])
def test_a_hint_that_nobody_of_us_has_sent_deafens_nobody(
    schemas: Schemas, listening: Listen, caplog: pytest.LogCaptureFixture, hint: str
) -> None:
    """Whoever may connect to the database may send one. It means that everything is looked for."""
    store, ear = schemas.empty_store(), Ear()
    began = listening(store, ear)
    until(lambda: began.hears_all)
    schemas.admin.execute("SELECT pg_notify(%s, %s)", (hints.channel_of(schemas.name), hint))
    assert ear.until(bool) == [frozenset()]
    assert began.hears_all
    assert caplog.records == []


def test_no_more_is_kept_to_be_told_than_a_hint_can_name(
    schemas: Schemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be no connection for hints for hours."""
    notifier = schemas.empty_store()._notifier
    monkeypatch.setattr(hints, "FLUSH_S", 0.05)
    monkeypatch.setattr(notifier, "_connect", lambda: 1 / 0)
    monkeypatch.setattr(notifier, "_run", lambda: None)
    for n in range(0, 10 * hints.NAMES, 7):
        notifier.notify(Hints(set(), {f"w{i}" for i in range(n, n + 10)}))
        [waiting] = notifier._pending.values()
        upto = n + 10
        assert len(waiting) == min(upto, hints.NAMES + 1)
        assert hints.written(waiting) == (
            "" if upto > hints.NAMES else hints.written(f"w{i}" for i in range(upto))
        )


def test_after_a_lost_connection_everything_is_looked_for(
    schemas: Schemas, caplog: pytest.LogCaptureFixture
) -> None:
    """What was told meanwhile is lost."""
    store, ear = schemas.empty_store(), Ear()
    listening = store.listen(ear)
    ear.until(bool)
    find = (
        f"SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%{schemas.name}%' AND "
        f"state = 'idle'"
    )
    until(lambda: schemas.admin.execute(find.encode()).fetchall())
    with caplog.at_level(logging.WARNING, "rhythm.store"):
        schemas.admin.execute(
            "SELECT pg_terminate_backend(%s, 5000)", schemas.admin.execute(find.encode()).fetchone()
        )
        assert ear.until(bool) == [frozenset()]
    assert len([record for record in caplog.records if "is lost" in record.getMessage()]) == 1
    until(lambda: listening.problem == "")
    listening.close()


def test_a_listener_hears_also_in_a_process_with_many_open_files(
    schemas: Schemas, listening: Listen
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, hard) if hard > 0 else 2048, hard))
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]  # `select` knows 1024
    try:
        store, ear = schemas.empty_store(), Ear()
        began = listening(store, ear)
        store.executions.start([new("w")])
        ear.until(lambda heard: frozenset({"default"}) in heard)
        assert began.problem == ""
        began.close()
        store.close()
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_whatever_goes_wrong_while_listening_is_said_and_tried_again(
    schemas: Schemas,
    listening: Listen,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, ear = schemas.empty_store(), Ear()
    hear, failed = hints.PostgresListening._hear, threading.Event()

    def fail_once(self: hints.PostgresListening, session: Any) -> None:
        if not failed.is_set():
            failed.set()
            raise ValueError("a bug")
        hear(self, session)

    monkeypatch.setattr(hints.PostgresListening, "_hear", fail_once)
    with caplog.at_level(logging.WARNING, "rhythm.store"):
        began = listening(store, ear)
        until(lambda: caplog.records and began.problem == "")
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "listener_deaf: the connection that listens for work is lost: a bug"
    ]


def test_a_listener_that_hears_nothing_of_what_is_told_says_so(
    schemas: Schemas, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as one that a pooler lends a session for each transaction, or one of another
    database."""
    monkeypatch.setattr(hints, "PROBE_S", 0.1)
    schemas.admin.execute("DROP DATABASE IF EXISTS elsewhere")
    schemas.admin.execute("CREATE DATABASE elsewhere")
    access = Access(listen_url=schemas.url.replace("/postgres?", "/elsewhere?"))
    store = PostgresStore(schemas.url, schemas.name, access=access)
    with caplog.at_level(logging.WARNING, "rhythm.store"):
        listening = store.listen(lambda queues: None)
        until(lambda: listening.problem)
    assert "past PgBouncer (listen_url)" in listening.problem
    assert [record.getMessage() for record in caplog.records] == [
        (
            f"listener_deaf: {listening.problem}; until then work is found by looking for it "
            f"now and then"
        )
    ]
    listening.close()
    store.close()
    schemas.admin.execute("DROP DATABASE elsewhere WITH (FORCE)")


def test_a_notify_that_is_blocked_is_told_as_a_problem(
    schemas: Schemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints, "PROBE_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = PostgresStore(
            f"postgresql://x@127.0.0.1:{silent.getsockname()[1]}/x?connect_timeout=2",
            "x",
            access=Access(listen_url=schemas.url),
        )
        listening = store.listen(lambda queues: None)
        until(lambda: listening.problem)
        assert "nobody can be told of work by NOTIFY" in listening.problem
        listening.close()


def test_without_notify_nobody_tells_and_nobody_listens(schemas: Schemas) -> None:
    schemas.empty_store()
    store = PostgresStore(schemas.url, schemas.name, access=Access(notify=False))
    listening = store.listen(lambda queues: None)
    assert (listening.problem, type(listening)) == ("", Listening)
    store.executions.start([new("w")])
    assert store._notifier._thread is None
    store.close()


def test_a_hint_never_waits_for_the_disk(database_url: str) -> None:
    with closing(connected(database_url)) as session:
        session.wire = Wire(session, prepares=False)
        session.execute("LISTEN c")
        session.execute("SET synchronous_commit = on")
        setting = BoundStatement(b"SHOW synchronous_commit")
        sent = [*hints.hint_statements({"c": "[]", "d": "[]"}), setting]
        assert session.wire.exchange(sent, SOON_S)[-1].rows == [("off",)]
        assert session.wire.exchange([setting], SOON_S)[-1].rows == [("on",)]
        told = session.pgconn.notifies()
        assert told is not None
        assert (told.relname, told.extra) == (b"c", b"[]")


def test_whoever_commits_sends_the_hints_itself(told: PostgresStore) -> None:
    """Both kinds: those that are known with the commit, and those that its answers tell. No thread
    and no session is opened for them, and nobody waits."""
    freed: queue.SimpleQueue[frozenset[str]] = queue.SimpleQueue()
    ended: queue.SimpleQueue[frozenset[str]] = queue.SimpleQueue()
    other = told.sibling()
    listening = (told.listen(freed.put), told.listen_ends(ended.put))
    try:
        assert (freed.get(timeout=SOON_S), ended.get(timeout=SOON_S)) == (frozenset(),) * 2
        begin(other, "w")
        assert freed.get(timeout=SOON_S) == {"default"}
        fence, _ = claim(other, "w")
        threading.Event().wait(2 * hints.MIN_INTERVAL_S)
        other.claims.release({"w": fence})
        assert freed.get(timeout=SOON_S) == {"default"}
        threading.Event().wait(2 * hints.MIN_INTERVAL_S)
        parked(other, "w", end="finish", status=COMPLETED)
        assert ended.get(timeout=SOON_S) == {"w"}
        assert other._notifier._thread is None
        assert len(other.db.backends) == 1
        assert other.reading.get(["w"])["w"].status == "completed"
    finally:
        for each in listening:
            each.close()
        other.close()


@short_ways
def test_hints_of_a_start_and_of_an_end_leave_with_them(
    told: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when their answer is there: whoever hears of it begins meanwhile."""
    behind: list[int] = []
    exchange = Wire.exchange

    def counted(self: Wire, asked: Any, answer_s: float, with_it: Any = ()) -> Any:
        behind.append(len(with_it))
        return exchange(self, asked, answer_s, with_it)

    monkeypatch.setattr(Wire, "exchange", counted)
    monkeypatch.setattr(Wire, "post", lambda *args: pytest.fail("it was sent later"))
    alike = NewExecution("", WORKFLOW, "main", "default")
    told.executions.start_alike(alike, {"w": "null"})
    assert behind == [1]
    turn = TurnCommit("w", 0, claim(told, "w")[0], 0, "finish", "a", "turn", status=COMPLETED)
    threading.Event().wait(2 * hints.MIN_INTERVAL_S)
    behind.clear()
    assert told.turns.commit([turn.replace(value="1", owned=None)], [])[0][0].outcome == "finished"
    assert behind == [1]


@pytest.mark.parametrize("statement", [b"SELECT 1 / 0", b"SELECT pg_notify('', '')", b"nonsense"])
def test_a_hint_that_fails_touches_neither_the_commit_nor_what_comes_next(
    told: PostgresStore,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    statement: bytes,
) -> None:
    monkeypatch.setattr(told._notifier, "statements", lambda hints: [BoundStatement(statement)])
    with caplog.at_level(logging.DEBUG, "rhythm.store"):
        begin(told, "w")
        begin(told, "v")  # the answer to the first hint comes before its own
        parked(told, "w", end="finish", status=COMPLETED)  # this one goes with a commit
        with pytest.raises(KeyError):
            told.db.transaction(lambda: told.db.all("now") and {}["x"])
        assert told.reading.get(["w", "v"])["w"].status == "completed"
    assert len(told.db.backends) == 1
    failed = [record for record in caplog.records if "nobody waited for" in record.getMessage()]
    assert (len(failed), {record.levelname for record in failed}) == (3, {"DEBUG"})


def test_a_commit_that_fails_tells_nobody(told: PostgresStore, says: Says) -> None:
    def fails() -> None:
        begin(told, "w")
        told.db.do("lock", ids=["w"])
        told.db.send(b"SELECT 1 / %(n)s", {"n": 0})

    heard: queue.SimpleQueue[frozenset[str]] = queue.SimpleQueue()
    listening = told.sibling().listen(heard.put)
    assert heard.get(timeout=SOON_S) == frozenset()
    with pytest.raises(AssertionError, match="a statement found what cannot be"):
        says(lambda: told.db.transaction(fails))
    assert told.reading.get(["w"]) == {}
    assert says(lambda: begin(told, "v")) == {"default"}
    assert heard.get(timeout=SOON_S) == {"default"}
    assert heard.empty()
    listening.close()


def test_what_was_told_is_sent_before_a_store_is_closed(
    told: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer is awaited: a pooler forgets what was sent by a client that is gone."""
    settled: list[Wire] = []
    settle = Wire.settle
    monkeypatch.setattr(
        Wire, "settle", lambda self, answer_s: settled.append(self) or settle(self, answer_s)
    )
    other = told.sibling()
    begin(other, "w")
    (idle,) = other.db._idle
    assert idle.wire.posted
    other.close()
    assert settled == [idle.wire]
    assert idle.wire.posted == []


def test_a_listener_can_be_closed_while_there_is_no_database() -> None:
    """Its thread may have ended before it is woken."""

    def refused() -> Any:
        raise psycopg.OperationalError("no server")

    listener = hints.PostgresListening(refused, refused, "channel", lambda queues: None)
    listener._end = Ending(listener._end, listener._thread)  # type: ignore[assignment]
    listener.close()
    assert not listener._thread.is_alive()


class Ending:
    """A socket that is used only when the thread has ended."""

    def __init__(self, inner: socket.socket, thread: threading.Thread) -> None:
        self.inner, self.thread = inner, thread

    def send(self, data: bytes) -> int:
        self.thread.join(SOON_S)
        return self.inner.send(data)

    def close(self) -> None:
        self.inner.close()


def begin(store: Store, *ids: str) -> None:
    store.executions.start([NewExecution(id, WORKFLOW, "main", "default") for id in ids])


def test_ends_are_told_to_those_who_wait_for_them(told: PostgresStore) -> None:
    """Only those of executions that have no parent, and each by its id."""
    ended: queue.SimpleQueue[frozenset[str]] = queue.SimpleQueue()
    listening = told.listen_ends(ended.put)
    try:
        assert ended.get(timeout=SOON_S) == frozenset()  # whatever has ended before
        other = told.sibling()
        begin(other, "w", "v")
        for claim in other.claims.claim("a", ["default"], 10, 30.0):
            child = NewExecution(f"{claim.id}.1", TASK, "t", "other", parent_id=claim.id)
            turn = TurnCommit(claim.id, 0, claim.fence, claim.wakes, "own", "a", "turn")
            other.turns.commit([turn.replace(starts=(child.replace(child_no=1),))], [])
            last = turn.replace(seq=1, end="finish", status=COMPLETED, owned=None)
            other.turns.commit([last], [])
        seen: set[str] = set()
        while seen != {"w", "v"}:
            seen |= ended.get(timeout=SOON_S)
        other.close()
    finally:
        listening.close()


def test_a_store_tells_its_own_listeners_at_once_and_once(schemas: Schemas) -> None:
    """A pooler hides which session says a hint: then they hear it twice."""
    told, heard = schemas.direct_store(), queue.SimpleQueue[frozenset[str]]()
    listening = told.listen(heard.put)
    try:
        while not listening.hears_all:
            pass
        while not heard.empty():
            heard.get()
        begin(told, "w")
        assert heard.get_nowait() == frozenset({"default"})
        other = told.sibling()
        begin(other, "v")  # that one is heard of by NOTIFY, and after the first one's echo
        assert heard.get(timeout=SOON_S) == frozenset({"default"})
        assert heard.empty()
        other.close()
    finally:
        listening.close()
    begin(told, "u")
    assert heard.empty()
