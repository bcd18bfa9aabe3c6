"""Workers and queues as an application sees them, and that a paused queue stands still under a real
worker."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from rhythm.app import Rhythm
from tests.app.conftest import MakeApp
from tests.support.stores import rows

WAIT_S = 120
FLOWS = """
workflow chain() {
  for (i in range(100000)) {
    await task("count")
  }
}
workflow hold() {
  return await signal("go")
}
workflow fresh() {
  return 1
}
"""
LIMIT = 100_000


def reached(what: Callable[[], object]) -> None:
    last = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < last
        time.sleep(0.005)  # those who make it so need the processor


def test_workers_tell_how_they_are_and_the_dead_are_told_apart(make_app: MakeApp) -> None:
    began, may_end = threading.Event(), threading.Event()

    def slow() -> None:
        began.set()
        may_end.wait(WAIT_S)

    app = make_app(slow)
    assert (app.workers(), app.queues()) == ([], [])
    with app.worker("one", queues=["mail", "default"], concurrency=3, heartbeat_interval="50ms"):
        handle = app.queue_task("slow")
        assert began.wait(WAIT_S)
        reached(lambda: app.workers()[0].running)
        (seen,) = app.workers()
        assert (seen.name[:4], seen.queues, seen.concurrency, seen.claims, seen.state) == (
            "one-",
            ("mail", "default"),
            3,
            1,
            "live",
        )
        assert seen.started_at <= seen.beat_at
        assert {queue.name: (queue.running, queue.workers) for queue in app.queues()}[
            "default"
        ] == (1, 1)
        copied = "host, pid, machine, queues, concurrency, running, draining, version"
        rows(
            app.store,
            f"INSERT INTO worker_heartbeats SELECT 'two', {copied}, 0, 0, 0 FROM worker_heartbeats",
        )
        assert {seen.name[:3]: seen.state for seen in app.workers()} == {
            "one": "live",
            "two": "dead",
        }
        app.running[0]._worker.drain()
        reached(lambda: any(seen.state == "draining" for seen in app.workers()))
        may_end.set()
        handle.result(WAIT_S)
    assert [seen.name for seen in app.workers()] == ["two"]


def test_a_queue_with_work_and_no_worker_is_unserved(make_app: MakeApp) -> None:
    app = make_app()
    app.queue_task("somewhere", queue="mail")
    app.queue_task("somewhere", queue="mail", delay="1h")
    (mail,) = app.queues()
    assert (mail.name, mail.ready, mail.delayed, mail.unserved, mail.oldest_s is not None) == (
        "mail",
        1,
        1,
        True,
        True,
    )
    assert mail.as_json()["paused_at"] is None


def test_pausing_a_queue_says_whether_it_changed_anything(make_app: MakeApp) -> None:
    app = make_app()
    assert app.pause_queue("mail", reason="down", by="Ada")
    assert not app.pause_queue("mail", reason="again", by="Bob")
    (mail,) = asyncio.run(app.aio.queues())
    assert (mail.paused_reason, mail.paused_by, mail.unserved) == ("down", "Ada", False)
    assert asyncio.run(app.aio.resume_queue("mail"))
    assert not app.resume_queue("mail")
    for name in ("", "a\nb", "x" * 201):
        with pytest.raises(ValueError, match="a queue is a text of 1 to 200"):
            app.pause_queue(name)
    with pytest.raises(ValueError, match="`system` cannot be paused"):
        app.pause_queue("system")


def ready(app: Rhythm) -> int:
    return {queue.name: queue.ready for queue in app.queues()}["default"]


def test_a_paused_queue_stands_still_and_what_has_begun_goes_on(make_app: MakeApp) -> None:
    count, over = [0], threading.Event()

    def count_up() -> None:
        count[0] += 1
        assert not over.is_set(), "the test has ended"

    app = make_app(count_up, flows=(FLOWS.replace('"count"', '"count_up"'),))
    try:
        with app.worker():
            chain, hold = app.start_workflow("chain"), app.start_workflow("hold")
            reached(lambda: count[0] > 3 and hold.status() == "suspended")
            assert app.pause_queue("default")
            fresh, task = app.start_workflow("fresh"), app.queue_task("count_up")
            # both, and the chain's next task: its worker does not run it
            reached(lambda: ready(app) == 3)
            assert chain.status() == "suspended"
            stood = count[0]
            assert stood < LIMIT
            hold.signal("go", 7)
            assert hold.result(WAIT_S) == 7
            assert (fresh.status(), task.status(), count[0]) == ("pending", "pending", stood)
            app.resume_queue("default")
            assert fresh.result(WAIT_S) == 1
            task.result(WAIT_S)
            reached(lambda: count[0] > stood + 3)
            chain.cancel()
    finally:
        over.set()
