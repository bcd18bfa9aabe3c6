"""Waiting for an execution to end: woken by the workers of this process, and looking by itself for those of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rhythm.app.views import ExecutionView
from rhythm.durations import duration_s, show_duration
from rhythm.errors import ResultTimeout

FIRST_S, LONGEST_S = 0.005, 1.0  # between two looks: doubled each time


class Changes:
    """Tells those who wait in this process that something may have ended."""

    def __init__(self) -> None:
        self._listeners: dict[int, Callable[[], object]] = {}

    def tell(self) -> None:
        for listener in list(self._listeners.values()):
            listener()

    @contextmanager
    def heard_by(self, listener: Callable[[], object]) -> Iterator[None]:
        self._listeners[id(listener)] = listener
        try:
            yield
        finally:
            del self._listeners[id(listener)]


class Patience:
    """How long to wait until the next look, and when it has been long enough. `now`: seconds of a clock that only goes forward."""

    def __init__(self, timeout: float | str | None, now: Callable[[], float]) -> None:
        self.limit_s = None if timeout is None else duration_s(timeout)
        self.now, self.began, self._next_s = now, now(), FIRST_S

    def rest_s(self, execution: ExecutionView) -> float:
        """How long to wait now; `ResultTimeout` if the time is over."""
        rest, self._next_s = self._next_s, min(self._next_s * 2, LONGEST_S)
        if self.limit_s is None:
            return rest
        left = self.began + self.limit_s - self.now()
        if left <= 0:
            raise ResultTimeout(_over(execution, self.limit_s))
        return min(rest, left)


def _over(execution: ExecutionView, limit_s: float) -> str:
    hint = {
        "pending": f"; does a worker serve the queue {execution.queue!r}?",
        "paused": "; `resume` lets it go on",
    }.get(execution.status, "")
    return f"{execution.id} (`{execution.name}`) had not ended after {show_duration(limit_s)}: it is {execution.status}{hint}"
