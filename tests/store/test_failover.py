"""A standby takes the place of its primary while everything is running: whatever was acknowledged
is there, and everybody goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import psycopg
import pytest

from rhythm import Rhythm
from rhythm.engine.doctor import examine
from rhythm.errors import StoreError
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.lifecycle import WORKFLOW
from rhythm.store.postgres.store import PostgresStore
from rhythm.worker.handlers import Task
from tests.support.failover import Pair, pair
from tests.support.length import long

BEFORE, AFTER = 20, 20  # workflows that are acknowledged, at least
WAIT = "120s"
FLOW = """
workflow order(inputs) {
  let first = await task("note", { x: inputs.x })
  await sleep("10ms")
  let second = await task("note", { x: first + 1 })
  return second
}
"""
T = TypeVar("T")


@pytest.fixture
def servers() -> Iterator[Pair]:
    with pair() as made:
        yield made


def note(x: int) -> int:
    return x


class Client:
    """Starts workflows one after the other, and asks again under the same id when there is no
    answer."""

    def __init__(self, app: Rhythm) -> None:
        self.app, self.started, self.stop = app, list[str](), threading.Event()
        self.errors = 0
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        for n in range(100_000):
            if self.stop.is_set():
                return
            self.asked(lambda n=n: self.app.start_workflow("order", {"x": n}, id=f"order-{n}"))
            self.started.append(f"order-{n}")

    def asked(self, work: Callable[[], T]) -> T:
        while True:
            try:
                return work()
            except StoreError:
                self.errors += 1

    def until(self, count: int) -> None:
        while len(self.started) < count:
            assert self.thread.is_alive()
            threading.Event().wait(0.005)


def make_app(url: str, task: Callable[..., object] = note) -> Rhythm:
    quick = {
        "worker_poll_interval": "20ms",
        "claim_ttl": "2s",
        "heartbeat_interval": "200ms",
        "dead_after": "1s",
    }
    app = Rhythm(
        url, (), tasks=[Task(task, "note", "default", 0, None, None)], environment={}, **quick
    )
    app.register(FLOW)
    return app


def test_acknowledged_starts_and_completions_outlive_the_primary(servers: Pair) -> None:
    app = make_app(servers.url)
    client = Client(app)
    with app.worker():
        client.thread.start()
        client.until(BEFORE)
        completed = {id: app.result(id, WAIT) for id in client.started[:5]}
        servers.lose_the_primary()
        servers.promote()
        there = len(client.started)
        client.until(there + AFTER)
        client.stop.set()
        client.thread.join()
        assert {id: app.result(id, WAIT) for id in client.started} == {
            id: int(id.rpartition("-")[2]) + 1 for id in client.started
        }
        assert {id: app.result(id) for id in completed} == completed
    assert client.errors, "it noticed"
    assert examine(app.store, 5.0) == []
    app.close()


@long
def test_session_on_a_server_that_can_only_be_read_is_left_for_the_one_that_can_be_written_to(
    servers: Pair,
) -> None:
    """The primary comes back as one that may only be read: 25006, and not for ever."""
    store = PostgresStore(servers.url)
    store.schema.migrate()
    with psycopg.connect(servers.at(servers.primary), autocommit=True) as admin:
        admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
        admin.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        admin.execute("SELECT pg_reload_conf()")
        while store.db.autocommit(
            lambda: store.db.query(b"SHOW default_transaction_read_only").fetchall()
        ) != [("on",)]:
            pass
    servers.promote()
    with pytest.raises(StoreError, match="read-only"):
        store.executions.start([NewExecution("w", WORKFLOW, "main", "default")])
    assert store.executions.start([NewExecution("w", WORKFLOW, "main", "default")])[0].created
    assert store.db.autocommit(lambda: store.db._open and store.db._open.info.host) == str(
        servers.standby
    )
    store.close()


@long
def test_claim_that_the_new_primary_never_heard_of_is_given_up_and_taken_anew() -> None:
    """The standby was behind: it has the start, and nothing of what the worker did since."""
    begun, goes_on = threading.Semaphore(0), threading.Event()

    def slow(x: int) -> int:
        begun.release()
        goes_on.wait(120)
        return x

    with pair(synchronous=False) as servers:
        app = make_app(servers.url, slow)
        id = app.start_workflow("order", {"x": 1}).id
        servers.cut_off()
        with app.worker():
            assert begun.acquire(timeout=120)
            # its task has a row of its own when it lasts
            assert app.get(id).status in ("running", "suspended")
            servers.lose_the_primary()
            servers.promote()
            assert begun.acquire(timeout=120), "it was claimed and begun once more"
            goes_on.set()
            assert app.result(id, WAIT) == 2
        assert examine(app.store, 5.0) == []
        app.close()
