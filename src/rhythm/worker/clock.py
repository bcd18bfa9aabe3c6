"""The time of an in-process run: real, or jumping ahead whenever nothing is running."""

from __future__ import annotations

import heapq
import queue
import time
from collections.abc import Callable
from datetime import UTC, datetime

from rhythm.vm.builtins import parse_time, show_time

Action = Callable[[], None]


class Clock:
    """Seconds since the run began, and what is to happen later. With `fast_forward` it skips waits in which nothing runs."""

    def __init__(self, fast_forward: bool) -> None:
        self.fast_forward = fast_forward
        self._began, self._began_at, self._skipped = time.monotonic(), time.time(), 0.0
        self._agenda: list[tuple[float, int, Action, Callable[[], bool]]] = []
        self._order = 0

    def now(self) -> float:
        return time.monotonic() - self._began + self._skipped

    def moment(self) -> str:
        """Now, as the workflows see it."""
        return show_time(datetime.fromtimestamp(self._began_at + self.now(), UTC))

    def until(self, moment: str) -> float:
        """Seconds from now to a moment; 0 if it is past."""
        return max(parse_time(moment).timestamp() - self._began_at - self.now(), 0.0)

    def after(self, delay_s: float, action: Action, wanted: Callable[[], bool]) -> None:
        """Does the action after the delay, if it is still wanted then."""
        self._order += 1
        heapq.heappush(self._agenda, (self.now() + delay_s, self._order, action, wanted))

    def step(self, inbox: queue.SimpleQueue[Action], busy: bool) -> bool:
        """Waits for the next answer or due action and carries it out; false if neither can come."""
        while self._agenda and not self._agenda[0][3]():
            heapq.heappop(self._agenda)
        if not self._agenda and not busy:
            return False
        wait = max(self._agenda[0][0] - self.now(), 0.0) if self._agenda else None
        if self.fast_forward and not busy and wait:
            self._skipped, wait = self._skipped + wait, 0.0
        try:
            inbox.get(timeout=wait)()
        except queue.Empty:
            heapq.heappop(self._agenda)[2]()
        return True
