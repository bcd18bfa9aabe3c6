"""Which queues may have something to claim, as far as one worker has heard.

A hint saves the question whether there is work. Every poll interval all queues are asked, heard of
or not, so a lost hint costs no more than that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable


class QueueHints:
    """What was heard about queues since they were last asked. Any thread may call `heard`.

    `complete` says whether everything is heard of, also what this process itself has queued. While
    it is not, every question is worth asking.
    """

    def __init__(
        self,
        queues: Iterable[str],
        now: Callable[[], float],
        poll_s: float,
        complete: Callable[[], bool],
    ) -> None:
        self._all, self._now, self._poll_s = frozenset(queues), now, poll_s
        self._complete, self._lock = complete, threading.Lock()
        self._heard = set(self._all)  # queues that may have something
        self._polled_at = now()  # when all queues were last taken for such

    def heard(self, queues: Iterable[str]) -> None:
        """Notes that these queues may have something; no queue stands for all of them."""
        with self._lock:
            self._heard |= self._all & set(queues) or self._all

    def take(self, queues: Iterable[str]) -> bool:
        """Returns whether it is worth asking these queues, and forgets what was heard of them."""
        if not self._complete():
            return True
        with self._lock:
            if self._now() - self._polled_at >= self._poll_s:
                self._heard, self._polled_at = set(self._all), self._now()
            known = self._heard.intersection(queues)
            self._heard -= known
            return bool(known)
