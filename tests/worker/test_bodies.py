"""Waiting for attempts to end."""

from __future__ import annotations

import queue
import threading
import time
from typing import Any

import pytest

from rhythm.worker.attempts import NOT_BEGUN_S, Attempt, Attempts
from rhythm.worker.ended import AttemptEnd
from rhythm.worker.executor import Handlers
from rhythm.worker.handlers import Task


class Impatient(queue.SimpleQueue[Any]):
    """Refuses to wait."""

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        assert timeout is None, "it waited"
        return super().get(block, timeout)


def test_wake_before_the_wait_is_not_lost() -> None:
    bodies = Attempts(Handlers(), time.monotonic)
    bodies._inbox = Impatient()
    bodies.wake()
    assert bodies.ended(3600.0) == []


def test_wake_ends_one_wait_only() -> None:
    bodies = Attempts(Handlers(), time.monotonic)
    bodies.wake()
    bodies.wake()
    assert bodies.ended() == []
    assert bodies._answers(0.0) == (False, [])


async def coroutine() -> None:
    raise AssertionError("it began")


def function() -> None:
    raise AssertionError("it began")


@pytest.mark.parametrize("handler", [function, coroutine])
def test_a_handler_does_not_begin_when_its_claim_may_have_passed_to_another_while_it_waited_for_its_thread(
    handler: Any,
) -> None:
    """As in a process that was frozen in between. It was no attempt: it is put back."""
    bodies = Attempts(Handlers(), time.monotonic)
    body = Attempt("w.1", Task(handler, "task"), {}, {}, 1, bodies.now())
    body.current.may_begin = lambda: False
    bodies.start(body)
    [(_, ended)] = bodies.ended(20.0)
    assert (ended.delay_s, ended.reason) == (
        0.0,
        "task `task` failed: it could not be begun in time",
    )


class Exhausted:
    """Has no threads left."""

    def start(self, task: Any, inputs: Any, current: Any, report: Any) -> Any:
        raise RuntimeError("can't start new thread")

    def close(self) -> None: ...


def test_an_attempt_that_cannot_be_begun_is_put_back(caplog: pytest.LogCaptureFixture) -> None:
    bodies = Attempts(Exhausted(), time.monotonic)
    body = Attempt("w.1", Task(function, "task"), {}, {}, 1, bodies.now())
    bodies.start(body)
    [(_, ended)] = bodies.ended()
    assert (ended.delay_s, body.current.cancelled, bodies.running) == (1.0, True, {})
    assert "task w.1 (task) could not be begun" in caplog.text


def fail_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next thread cannot be started; those after it can."""
    real = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        monkeypatch.setattr(threading.Thread, "start", real)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)


def test_a_thread_that_could_not_be_had_is_not_missed_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = threading.Barrier(2, timeout=20.0)
    bodies = Attempts(Handlers(), time.monotonic)
    task = Task(lambda: both.wait() >= 0, "meet")
    fail_once(monkeypatch)
    for n in range(1, 4):
        bodies.start(Attempt(f"w.{n}", task, {}, {}, 1, bodies.now()))
    ended = dict[str, AttemptEnd]()
    while len(ended) < 3:
        ended |= {attempt.id: end for attempt, end in bodies.ended(60.0)}
    assert ended["w.1"].delay_s == NOT_BEGUN_S
    assert [ended[id].reason for id in ("w.2", "w.3")] == ["", ""], "each had a thread of its own"


def test_an_event_loop_whose_thread_could_not_be_had_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def answer() -> int:
        return 42

    handlers = Handlers()
    bodies = Attempts(handlers, time.monotonic)
    fail_once(monkeypatch)
    for n in (1, 2):
        bodies.start(Attempt(f"w.{n}", Task(answer, "answer"), {}, {}, 1, bodies.now()))
    ended = bodies.ended()
    while len(ended) < 2 and (more := bodies.ended(20.0)):
        ended += more
    assert [(attempt.id, end.result) for attempt, end in ended] == [("w.1", "null"), ("w.2", "42")]
    handlers.close()
