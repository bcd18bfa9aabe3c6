"""Waiting for attempts to end."""

from __future__ import annotations

import queue
import time
from typing import Any

from rhythm.worker.bodies import Bodies
from rhythm.worker.executor import Handlers


class Impatient(queue.SimpleQueue[Any]):
    """Refuses to wait."""

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        assert timeout is None, "it waited"
        return super().get(block, timeout)


def test_wake_before_the_wait_is_not_lost() -> None:
    bodies = Bodies(Handlers(), time.monotonic)
    bodies._inbox = Impatient()
    bodies.wake()
    assert bodies.ended(3600.0) == []


def test_wake_ends_one_wait_only() -> None:
    bodies = Bodies(Handlers(), time.monotonic)
    bodies.wake()
    bodies.wake()
    assert bodies.ended() == []
    assert bodies._answers(0.0) == (False, [])
