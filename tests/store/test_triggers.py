"""Events that start workflows: once for each event and workflow, in the transaction that publishes,
on every database."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any

import pytest

from rhythm.store.access import Actor
from rhythm.store.interfaces.definitions import Definition
from rhythm.store.interfaces.messages import NewEvent, NewWait
from rhythm.store.interfaces.store import Store
from rhythm.store.lifecycle import COMPLETED
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.sqlite.store import SqliteStore
from rhythm.store.triggers import Trigger
from tests.store.test_conformance import NOW, Clock, begun, claims, outcome, turn
from tests.store.test_events import ended, waits
from tests.support.stores import Stores, rows


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(stores: Stores, clock: Clock) -> Store:
    return stores.empty_store(clock)


def workflow(
    name: str = "ship", version: str = "1", on: tuple[str, ...] = ("paid",), **changes: Any
) -> Definition:
    return Definition(name, version, "flow", "", "{}", "f", on).replace(**changes)


def publish(
    store: Store, id: str = "e1", type: str = "paid", data: Any = None, by: str | None = None
) -> str:
    return store.messages.publish(NewEvent(id, type, json.dumps(data)), Actor(by) if by else None)


def started(store: Store) -> list[tuple[str, str, Any, str | None]]:
    """Name, version, inputs and starter of all that an event has started, by name and event."""
    found = rows(
        store,
        (
            "SELECT name, version, inputs, started_by FROM executions WHERE substr(key, 1, 6) "
            "= 'event:' ORDER BY name, key"
        ),
    )
    return [(name, version, json.loads(inputs), by) for name, version, inputs, by in found]


def test_an_event_starts_the_workflows_that_name_it_with_its_data(store: Store) -> None:
    store.definitions.register(
        [
            workflow("ship", queue="orders", timeout_s=60.0),
            workflow("mail", "7"),
            workflow("other", on=("else",)),
        ]
    )
    assert publish(store, data={"order": 1}, by="ada") == "published"
    assert started(store) == [
        ("mail", "7", {"order": 1}, "ada"),
        ("ship", "1", {"order": 1}, "ada"),
    ]
    ship = next(execution for execution in store.reading.find("ship", None, None, 9))
    assert (ship.queue, ship.status, json.loads(ship.attributes)) == (
        "orders",
        "pending",
        {"event_id": "e1", "event_type": "paid"},
    )
    assert rows(store, "SELECT timeout_us FROM executions WHERE name = 'ship'") == [(60_000_000,)]
    assert ship.id in claims(store, queues=("orders",))


def test_an_event_id_starts_a_workflow_once(store: Store) -> None:
    store.definitions.register([workflow()])
    assert (publish(store), publish(store), publish(store, type="else")) == (
        "published",
        "duplicate",
        "duplicate",
    )
    publish(store, "e2")
    assert len(started(store)) == 2


def test_an_event_that_was_forgotten_does_not_start_a_workflow_again(store: Store) -> None:
    store.definitions.register([workflow()])
    publish(store)
    rows(store, "DELETE FROM events")
    assert publish(store) == "published"
    assert len(started(store)) == 1


def test_what_starts_a_workflow_is_what_was_registered_last(store: Store) -> None:
    store.definitions.register([workflow(on=("paid", "sent"))])
    store.definitions.register(
        [workflow(version="2", on=("sent",), queue="slow", timeout_s=1.5), workflow("mail")]
    )
    assert store.definitions.triggers() == [
        Trigger("paid", "mail", "1", "default", None),
        Trigger("sent", "ship", "2", "slow", 1.5),
    ]
    publish(store)
    assert [row[0] for row in started(store)] == ["mail"]
    store.definitions.register([workflow(version="2", on=())])
    publish(store, "e2", "sent")
    assert [row[0] for row in started(store)] == ["mail"]
    store.definitions.register([workflow()])
    publish(store, "e3")
    assert [row[:2] for row in started(store)] == [("mail", "1"), ("mail", "1"), ("ship", "1")]


def test_a_registration_that_fails_changes_no_trigger(store: Store) -> None:
    store.definitions.register([workflow()])
    with pytest.raises(Exception, match=r"(?i)null"):
        store.definitions.register([workflow(version="2", on=()), workflow("bad", queue=None)])
    assert store.definitions.triggers() == [Trigger("paid", "ship", "1", "default", None)]


def test_a_started_workflow_waits_for_another_event_than_its_own(
    store: Store, clock: Clock
) -> None:
    store.definitions.register([workflow()])
    publish(store)
    (id,) = (execution.id for execution in store.reading.find("ship", None, None, 9))
    assert outcome(store, turn(claims(store)[id], waits=waits(1))) == "parked"
    clock.forward(0.000001)
    publish(store, "e2")
    assert ended(store, id) == [(1, COMPLETED, "e2")]


def test_a_turn_starts_workflows_for_whoever_started_its_execution(store: Store) -> None:
    store.definitions.register([workflow()])
    events = (
        NewEvent("e1", "paid", "1", execution_id="a"),
        NewEvent("e2", "paid", "2", 1, execution_id="a"),
    )
    store.turns.commit([turn(begun(store, "a", started_by="ada"), events=events)], [])
    store.turns.commit(
        [turn(begun(store, "b"), events=(NewEvent("e3", "paid", "3", execution_id="b"),))], []
    )
    assert started(store) == [
        ("ship", "1", 1, "ada"),
        ("ship", "1", 2, "ada"),
        ("ship", "1", 3, "execution:b"),
    ]


def test_what_one_event_of_a_turn_starts_sees_the_next_event_of_the_turn(store: Store) -> None:
    store.definitions.register([workflow()])
    events = (
        NewEvent("e1", "paid", "1"),
        NewEvent("e2", "paid", "2", 1),
        NewEvent("e3", "paid", "3", 2),
    )
    store.turns.commit([turn(begun(store), events=events)], [])
    (second,) = rows(store, "SELECT id FROM executions WHERE key = 'event:e2'")[0]
    assert outcome(store, turn(claims(store)[second], waits=waits(1, 2))) == "woken"
    assert ended(store, second, 1, 2) == [(1, COMPLETED, "e3")]


def test_a_turn_that_is_committed_twice_starts_what_it_publishes_once(store: Store) -> None:
    store.definitions.register([workflow()])
    first = turn(begun(store), events=(NewEvent("w#1.0", "paid", "1", execution_id="w"),))
    assert (outcome(store, first), outcome(store, first)) == ("parked", "lost")
    assert len(started(store)) == 1


def test_a_lost_turn_starts_nothing(store: Store) -> None:
    store.definitions.register([workflow()])
    assert (
        outcome(
            store,
            turn(begun(store), seq=5, events=(NewEvent("e1", "paid", "1", execution_id="w"),)),
        )
        == "lost"
    )
    assert (started(store), publish(store)) == ([], "published")


def test_publishers_of_one_event_at_once_start_it_once(
    stores: Stores, store: Store, clock: Clock
) -> None:
    store.definitions.register([workflow(), workflow("mail")])
    many = [stores.store(clock) for _ in range(4)]
    answers: list[str] = []
    barrier = threading.Barrier(len(many))

    def work(own: Store) -> None:
        barrier.wait()
        for n in range(10):
            answers.append(publish(own, f"e{n}", "paid" if n % 2 else "else"))
            answers.append(publish(own, f"e{n}"))

    threads = [threading.Thread(target=work, args=[own]) for own in many]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers.count("published") == 10
    assert (
        len(started(store))
        == 2 * rows(store, "SELECT count(*) FROM events WHERE type = 'paid'")[0][0]
        >= 10
    )


def test_a_publisher_that_registers_meanwhile_starts_one_of_the_two_versions(
    stores: Stores, store: Store, clock: Clock
) -> None:
    store.definitions.register([workflow()])
    other, stop = stores.store(clock), threading.Event()

    def registering() -> None:
        n = 0
        while not stop.is_set():
            n += 1
            other.definitions.register([workflow(version=str(1 + n % 2))])

    thread = threading.Thread(target=registering)
    thread.start()
    for n in range(20):
        publish(store, f"e{n}")
    stop.set()
    thread.join()
    assert len(started(store)) == 20
    assert {version for _, version, _, _ in started(store)} <= {"1", "2"}


DYING = """
import os, sys
from rhythm.store.access import Actor
from rhythm.store.interfaces.messages import NewEvent
from rhythm.store.open import open_store
from rhythm.store.postgres.exchange import Exchange
from rhythm.store.sqlite.exchange import SqliteExchange

store = open_store(sys.argv[1])
if sys.argv[2] == "before":
    for owner, name in ((Exchange, "_trigger"), (SqliteExchange, "_trigger")):
        original = getattr(owner, name)
        setattr(owner, name, lambda *args, original=original: (original(*args), os._exit(9)))
store.messages.publish(NewEvent("e1", "paid", "1"))
os._exit(9)
"""


def url_of(store: Store) -> str:
    if isinstance(store, SqliteStore):
        return f"sqlite:///{store.db.path}"
    assert isinstance(store, PostgresStore)
    return f"{store.db.url}{'&' if '?' in store.db.url else '?'}schema={store.db.schema}"


@pytest.mark.parametrize(("moment", "kept"), [("before", 0), ("after", 1)])
def test_a_publisher_that_dies_has_published_wholly_or_not_at_all(
    store: Store, moment: str, kept: int
) -> None:
    store.definitions.register([workflow()])
    assert (
        subprocess.run([sys.executable, "-c", DYING, url_of(store), moment], check=False).returncode
        == 9
    )
    assert (rows(store, "SELECT count(*) FROM events"), len(started(store))) == ([(kept,)], kept)
    assert publish(store) == ("duplicate" if kept else "published")
    assert len(started(store)) == 1


def test_a_wait_and_a_trigger_are_served_by_one_event(store: Store) -> None:
    store.definitions.register([workflow()])
    outcome(store, turn(begun(store), waits=(NewWait(1, "paid", "{}"),)))
    publish(store, data=5)
    assert ended(store) == [(1, COMPLETED, "e1")]
    assert len(started(store)) == 1


def test_what_is_started_lives_from_after_its_event(store: Store) -> None:
    store.definitions.register([workflow()])
    publish(store)
    assert rows(store, "SELECT created_at FROM executions") == [(NOW + 1,)]
