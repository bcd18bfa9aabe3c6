"""Waiting for an execution to end: woken by the workers of this process, and looking by itself for
those of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rhythm.app.views import ExecutionView
from rhythm.durations import duration_s, show_duration
from rhythm.errors import ResultTimeout, StoreError

if TYPE_CHECKING:
    from rhythm.app.handle import Id
    from rhythm.store.interfaces.store import Store

FIRST_S, GROWTH, LONGEST_S = 0.002, 1.5, 1.0  # between two looks: half as long again each time
SILENCE_S = 30.0  # of the database, that waiting outlives


class Changes:
    """Tells those who wait in this process that something may have ended, or become another."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listeners: dict[int, Callable[[], object]] = {}

    def notify(self) -> None:
        for listener in list(self._listeners.values()):
            listener()

    @contextmanager
    def heard_by(self, listener: Callable[[], object]) -> Iterator[None]:
        self._listeners[id(listener)] = listener
        try:
            yield
        finally:
            del self._listeners[id(listener)]

    @contextmanager
    def hinted(self, listener: Callable[[], object]) -> Iterator[None]:
        """Calls the listener, from any thread, also when the database hints at work."""

        def heard(queues: frozenset[str]) -> None:
            listener()

        listening = self._store.listen(heard)
        try:
            with self.heard_by(listener):
                yield
        finally:
            listening.close()

    def stamps(self, ids: Sequence[str]) -> dict[str, str]:
        """A text for each execution that is another one whenever it has changed."""
        return self._store.reading.stamps(ids)


class PollBackoff:
    """How long to wait until the next poll, and when it has been long enough. `now`: seconds of a
    clock that only goes forward."""

    def __init__(self, timeout: float | str | None, now: Callable[[], float]) -> None:
        self.limit_s = None if timeout is None else duration_s(timeout)
        self.now, self.began, self._next_s = now, now(), FIRST_S
        self._silent: float | None = None  # since when the database has not answered

    def rest_s(self, found: ExecutionView | StoreError) -> float:
        """How long to wait now. `ResultTimeout` if the time is over; what the database said, if it
        is over without an answer."""
        rest, self._next_s = self._next_s, min(self._next_s * GROWTH, LONGEST_S)
        left = self._left_s(found)
        if left > 0:
            return min(rest, left)
        if isinstance(found, StoreError):
            raise found
        raise ResultTimeout(_over(found, self.limit_s or 0.0))

    def _left_s(self, found: ExecutionView | StoreError) -> float:
        now = self.now()
        if not isinstance(found, StoreError):
            self._silent = None
        elif self._silent is None:
            self._silent = now
        ends = [] if self.limit_s is None else [self.began + self.limit_s]
        ends += [] if self._silent is None else [self._silent + SILENCE_S]
        return min(ends, default=math.inf) - now


def try_get(get: Callable[[Id], ExecutionView], id: Id) -> ExecutionView | StoreError:
    """The execution, or why the database did not answer."""
    try:
        return get(id)
    except StoreError as problem:
        return problem


def _over(execution: ExecutionView, limit_s: float) -> str:
    hint = {
        "pending": f"; does a worker serve the queue {execution.queue!r}?",
        "paused": "; `resume` lets it go on"
        if execution.paused_manually
        else f" ({execution.paused_reason}); `why` says what would help",
    }.get(execution.status, "")
    return (
        f"{execution.id} (`{execution.name}`) had not ended after {show_duration(limit_s)}: "
        f"it is {execution.status}{hint}"
    )
