"""Waiting for attempts to end."""

from __future__ import annotations

import queue
import time
from typing import Any

import pytest

from rhythm.worker.attempts import Attempt, Attempts
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
