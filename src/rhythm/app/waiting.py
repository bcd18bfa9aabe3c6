"""Waiting for an execution to end: woken by the workers of this process, and by the hints of the
database about what others have ended; polling is the net."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from rhythm.app.checks import can_be
from rhythm.app.views import ExecutionView
from rhythm.durations import duration_s, show_duration
from rhythm.engine.payload import load
from rhythm.errors import ResultTimeout, StoreError
from rhythm.record import Record

if TYPE_CHECKING:
    from rhythm.app.handle import Id
    from rhythm.store.interfaces.store import Listening, Store

FIRST_S, GROWTH, LONGEST_S = 0.002, 1.5, 1.0  # between two polls: 1.5 times as long each time
HEARING_S = 0.25  # least time between two polls of one that is told of the end
HEAD_START_S = 0.02  # how long a wait for what has just begun listens before it asks
MOST_BEGUN = 1000  # executions of which it is known that they have just begun
SILENCE_S = 30.0  # how long a wait goes on while the database does not answer


class Ended(Record):
    """An execution has ended."""

    value: Callable[[], Any]  # returns its result, or raises `ExecutionFailed`


class Changes:
    """Notifies listeners in this process that executions may have ended or changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # Runs an execution to its end while somebody waits for it, in tests; else workers do.
        self.driver: Callable[[str], None] | None = None
        self._listeners: dict[int, Callable[[], object]] = {}
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[str, Callable[[], object]]] = {}
        self._ends: Listening | None = None  # while somebody waits, and after that
        self._listens_in = 0  # the id of the process that listens
        # Executions that were begun here, and until when the hint of their end is waited for:
        # none of them has ended that we know of.
        self._begun: dict[str, float] = {}
        self._noting = threading.Lock()

    def notify(self) -> None:
        """Calls all listeners."""
        self._forget_begun(frozenset())
        for listener in list(self._listeners.values()):
            listener()

    def drive(self, id: str) -> bool:
        """Runs an execution to its end, if that is not left to workers. Returns whether it did."""
        if self.driver is None:
            return False
        self.driver(id)
        return True

    @contextmanager
    def heard_by(self, listener: Callable[[], object]) -> Iterator[None]:
        """Calls the listener, from any thread, whenever something may have changed here.

        It does so until the block ends.
        """
        self._listeners[id(listener)] = listener
        try:
            yield
        finally:
            del self._listeners[id(listener)]

    @contextmanager
    def awaited(self, execution: str, listener: Callable[[], object]) -> Iterator[None]:
        """Like `heard_by`, and calls the listener also when the database hints that this execution
        has ended.

        The first call of a process begins to listen, which the last one does not end.
        """
        if self.driver is None:
            self._listen()
        self._waiting[id(listener)] = (execution, listener)
        try:
            with self.heard_by(listener):
                yield
        finally:
            del self._waiting[id(listener)]

    def _listen(self) -> None:
        with self._lock:
            # In a forked process nobody listens yet.
            if self._ends is None or self._listens_in != os.getpid():
                self._ends = self._store.listen_ends(self._ended)
                self._listens_in = os.getpid()

    def begin(self, ids: Sequence[str]) -> None:
        """Notes that these executions are about to be started here. Call it before the start: the
        hint of an end may be heard before the start has returned."""
        if self.driver is None and self.hears_ends:
            until = time.monotonic() + HEAD_START_S
            with self._noting:
                self._begun.update(dict.fromkeys(ids[-MOST_BEGUN:], until))
                for id in list(islice(self._begun, max(0, len(self._begun) - MOST_BEGUN))):
                    del self._begun[id]

    def head_start_s(self, id: str) -> float:
        """Returns how many seconds to listen before it is asked whether the execution has ended: it
        has just begun here, and its end would have been heard. Listen before you call it."""
        with self._noting:
            until = self._begun.pop(id, 0.0)
        return max(0.0, until - time.monotonic()) if until and self.hears_ends else 0.0

    def _forget_begun(self, ids: frozenset[str]) -> None:
        """Notes that these executions may have ended; an empty set means any."""
        with self._noting:
            for id in ids & self._begun.keys() if ids else list(self._begun):
                del self._begun[id]

    def _ended(self, ids: frozenset[str]) -> None:
        self._forget_begun(ids)
        for execution, listener in list(self._waiting.values()):
            if not ids or execution in ids:
                listener()

    @property
    def hears_ends(self) -> bool:
        """Whether the database hints at every end, so that polling is only the net."""
        return self._ends is not None and self._ends.hears_all

    def close(self) -> None:
        """Stops listening."""
        with self._lock:
            if self._ends is not None:
                self._ends.close()

    @contextmanager
    def hinted(self, listener: Callable[[], object]) -> Iterator[None]:
        """Like `heard_by`, and calls the listener also when the database hints at work."""

        def heard(queues: frozenset[str]) -> None:
            listener()

        listening = self._store.listen(heard)
        try:
            with self.heard_by(listener):
                yield
        finally:
            listening.close()

    def poll(
        self, get: Callable[[Id], ExecutionView], id: str
    ) -> Ended | ExecutionView | StoreError:
        """Returns how an execution stands, or the error if the database did not answer.

        Of one that has completed, no more than its result is read; others are what `get` returns.
        """
        try:
            result = self._store.reading.result(id) if can_be(id) else None
            if result is not None:
                return Ended(lambda: load(result))
            found = get(id)
        except StoreError as problem:
            return problem
        return Ended(found.value) if found.ended else found

    def stamps(self, ids: Sequence[str]) -> dict[str, str]:
        """Returns a text for each execution, which differs whenever the execution has changed."""
        return self._store.reading.stamps(ids)


class PollBackoff:
    """How long to wait until the next poll, and when to give up.

    `now` returns the seconds of a clock that only goes forward.
    """

    def __init__(
        self,
        timeout: float | str | None,
        now: Callable[[], float],
        hears_ends: Callable[[], bool] = lambda: False,
    ) -> None:
        """`hears_ends`: whether the caller is told of the end, and polls only to be safe."""
        self.limit_s = None if timeout is None else duration_s(timeout)
        self.now, self.began, self._next_s = now, now(), FIRST_S
        self._hears_ends = hears_ends
        self._silent: float | None = None  # since when the database has not answered

    def head_start_s(self, head_start_s: float) -> float:
        """Returns how much of a head start to wait, within the timeout."""
        return min(head_start_s, math.inf if self.limit_s is None else self.limit_s)

    def rest_s(self, found: ExecutionView | StoreError) -> float:
        """Returns how many seconds to wait now. Raises `ResultTimeout` if the timeout is over.

        If the database has not answered when the time is over, or not for 30 s, its error is
        raised.
        """
        rest, self._next_s = self._next_s, min(self._next_s * GROWTH, LONGEST_S)
        if self._hears_ends():
            rest = max(rest, HEARING_S)
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
    """Returns the execution, or the error if the database did not answer."""
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
