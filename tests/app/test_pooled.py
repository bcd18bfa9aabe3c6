"""`PooledWorker` from Python: what it is told, what it says of itself, and when it gives up what it
runs."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import rhythm
from rhythm.store.sqlite.store import SqliteStore
from rhythm.worker import quick
from tests.app.conftest import MakeApp
from tests.support.around import ROLES
from tests.support.full_way import short_ways
from tests.support.stores import rows


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """What lets a task end, and the test, whatever happens."""
    event = threading.Event()
    yield event
    event.set()


def test_cut_off_worker_tells_its_tasks_while_everybody_waits_for_the_database(
    make_app: MakeApp, held: threading.Event
) -> None:
    begun, told = threading.Event(), threading.Event()

    def task() -> None:
        begun.set()
        while not held.wait(0.01):
            if rhythm.current().cancelled:
                return told.set()

    app = make_app(task)
    worker = app.worker(dead_after="1s", heartbeat_interval="100ms").start()
    app.queue_task("task")
    assert begun.wait(120)
    before = worker._worker.heart.store
    worker._worker.heart.store = Silent(held)  # type: ignore[assignment]  # it answers nothing
    worker._worker.claimer.store = Silent(held)  # type: ignore[assignment]
    assert told.wait(120)
    held.set()
    worker.stop(0)
    before.close()


class Silent:
    """A database that does not answer, until the test is over."""

    era = 0

    def __init__(self, over: threading.Event) -> None:
        self.over = over

    def __getattr__(self, name: str) -> Any:
        if name in ROLES:
            return self

        def wait(*args: Any, **kwargs: Any) -> Any:
            self.over.wait()
            raise rhythm.StoreError("it was silent")

        return wait


def test_worker_that_has_left_does_not_come_back_with_its_last_beat(make_app: MakeApp) -> None:
    app = make_app()
    for _ in range(5):
        with app.worker(heartbeat_interval="1ms", dead_after="10s"):
            while not app.workers():
                pass
        assert app.workers() == []


def test_hint_for_a_queue_that_it_does_not_serve_wakes_nobody(make_app: MakeApp) -> None:
    worker, woken = make_app().worker(queues=["mine"]), []
    worker.wake = lambda: woken.append(1)  # type: ignore[method-assign]
    for queues in ({"other"}, {"mine"}, {"system"}, set(), {"other", "mine"}):
        before = len(woken)
        worker._heard(frozenset(queues))
        assert (len(woken) > before) is (queues != {"other"}), queues


def test_heart_is_made_when_the_database_is_there_again(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app()
    worker, tries = app.worker(), []
    sibling = worker._store.sibling

    def flaky() -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise rhythm.StoreError("not yet")
        return sibling()

    monkeypatch.setattr(worker._store, "sibling", flaky)
    with worker:
        while not app.workers():
            pass
    assert len(tries) >= 3


def test_a_worker_that_was_never_started_is_closed_with_its_application(make_app: MakeApp) -> None:
    app = make_app()
    stopped, left = app.worker(), app.worker()
    stopped.stop()
    with pytest.raises(RuntimeError, match="was started before"):
        stopped.start()
    app.close()
    for worker in (stopped, left):
        if isinstance(worker._store, SqliteStore):
            with pytest.raises(sqlite3.ProgrammingError, match="closed"):
                worker._store.db.connection.execute("SELECT 1")


def test_mistakes_are_said(make_app: MakeApp) -> None:
    app = make_app()
    with pytest.raises(TypeError, match="needs its application"):
        rhythm.PooledWorker("w1")
    with pytest.raises(rhythm.InvalidSetting, match="did you mean `concurrency`"):
        app.worker(concurency=3)  # type: ignore[call-arg]
    worker = rhythm.PooledWorker("w1", app).start()
    with pytest.raises(RuntimeError, match="was started before"):
        worker.start()
    assert (worker.name[:3], "live" in repr(worker)) == ("w1-", True)
    worker.stop()


def test_draining_is_seen_before_the_next_beat_is_due(
    make_app: MakeApp, held: threading.Event
) -> None:
    begun = threading.Event()

    def task() -> None:
        begun.set()
        held.wait(120)

    app = make_app(task)
    worker = app.worker(heartbeat_interval="1h", dead_after="10h", claim_ttl="10h").start()
    app.queue_task("task")
    assert begun.wait(120)
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    while [seen.state for seen in app.workers()] != ["draining"]:
        pass
    held.set()
    stopping.join()


def test_coroutine_may_enter_a_worker(make_app: MakeApp) -> None:
    app = make_app(pid)

    async def main() -> Any:
        async with app.worker():
            return await asyncio.to_thread(app.queue_task("pid").result, 30)

    assert asyncio.run(main()) == 1
    assert rows(app.store, "SELECT * FROM worker_heartbeats") == []


def pid() -> int:
    return 1


@short_ways
def test_a_task_that_was_always_quick_may_wait_for_what_its_own_worker_does(
    make_app: MakeApp,
) -> None:
    """Its thread is the one that decides: another one takes over, and signs the worker off."""
    threads = set[int]()

    def task(other: str | None) -> int:
        threads.add(threading.get_ident())
        return 1 if other is None else int(app.result(other, "120s")) + 1

    def slow() -> int:
        time.sleep(0.05)
        return 41

    app = make_app(task, slow)
    with app.worker(concurrency=4) as worker:
        first = worker._thread
        for handle in app.queue_many("task", [{"other": None}] * 60):
            assert handle.result("120s") == 1
        assert first.ident in threads, "it is quick"
        app.queue_task("slow", id="late", delay="100ms")
        waiting = [app.queue_task("task", {"other": "late"}) for _ in range(2)]
        more = app.queue_many("task", [{"other": None}] * 10)
        assert [handle.result("120s") for handle in (*waiting, *more)] == [42, 42] + [1] * 10
        assert worker._thread is not first
        assert worker.health().healthy
    assert not worker.alive
    assert app.workers() == []


@pytest.mark.parametrize("is_async", [True, False])
def test_a_handler_may_stop_its_worker_also_from_the_thread_that_decides(
    make_app: MakeApp, is_async: bool
) -> None:
    ended = threading.Event()

    def stops() -> None:
        worker.stop(0.01)
        ended.set()

    async def stops_async() -> None:
        stops()

    app = make_app(stops, stops_async)
    worker = app.worker()
    paces = worker._handlers._paces
    for _ in range(quick.QUICK_POINTS):
        paces.note(app.tasks["stops"], 0.0)
    with worker:
        app.queue_task("stops_async" if is_async else "stops")
        assert ended.wait(120)
        assert not worker.alive
