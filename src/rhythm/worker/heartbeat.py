"""The heartbeat of a worker: it tells the database that the worker lives, prolongs its claims, and
asks which of them it still has.

A worker that is not heard of for `dead_after_s` is taken for dead, and its work given to others. So
a worker does not trust itself any longer than that either: when no beat got through in time, what
runs here is given up, whatever the database would say.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from rhythm.record import Record
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.workers import Beat, OwnClaims

GAP = 3  # beats that must be missing before they count as an interruption


# The clock of a worker: it only goes forward, and does not stand still while the machine sleeps.
# Every turn looks at it several times.
seconds: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic
)


class HeartSettings(Record):
    """How often a worker beats, and what it loses if it does not."""

    every_s: float = 5.0
    dead_after_s: float = 30.0  # a worker that was silent for so long is dead to the others
    # claims expire by themselves after so long, unless they are prolonged
    claim_ttl_s: float = 300.0
    margin_s: float = 6.0  # before its claims may pass to others, a worker begins nothing more

    @property
    def between_s(self) -> float:
        """From one beat to the next: often enough to prolong claims in time."""
        return min(self.every_s, self.claim_ttl_s / 3, self.dead_after_s / 3)

    @property
    def trusted_s(self) -> float:
        """How long after a beat was sent nobody takes the worker for dead."""
        return self.dead_after_s - min(self.margin_s, self.dead_after_s / 5)


class Answer(Record):
    """What the database said to a beat: `own` is all that the worker has claimed, with fence and
    wakes."""

    sent_at: float
    claims: Mapping[str, int]  # what the worker owned when the beat was sent
    prolonged: bool
    own: OwnClaims

    def fence(self, id: str) -> int | None:
        return self.own[id][0] if id in self.own else None

    def prolongs(self, id: str) -> bool:
        return self.prolonged and id in self.claims and id not in self.own.not_extended

    def wakes(self, id: str) -> int:
        return self.own[id][1]


class Heartbeat:
    """The beats of one worker. One thread at a time sends them, its own or the worker's; another
    may watch that they get through; the worker takes the answers.

    Time is measured from before a beat is sent: when its answer comes, that time has already passed
    for the others.
    """

    def __init__(
        self,
        connect: Callable[[], Store],
        describe: Callable[[], Beat],
        claims: Callable[[], dict[str, int]],
        settings: HeartSettings,
        now: Callable[[], float],
        apart: bool = False,
    ) -> None:
        """`connect`: opens the store that beats are sent to, before the first. `apart`: another
        thread than the worker's sends them."""
        self.store: Store | None = None
        self._connect, self.apart = connect, apart
        self.describe, self.claims, self.settings, self.now = describe, claims, settings, now
        self.until = float("-inf")  # nobody takes the worker for dead before this
        # when the next beat is due; the same, as of the last one that got through
        self._next = self._answered = float("-inf")
        self._prolonged_at = now()
        self._steady_since: float | None = None
        self._sent_at = float("-inf")  # the last beat that got through
        self._lock = threading.Lock()  # between who sends and who watches
        self._answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()

    @property
    def rest_s(self) -> float:
        """Seconds until the next beat."""
        return max(0.0, self._next - self.now())

    def run_once(self) -> None:
        """Sends one beat. `StoreError` if it may not have got through."""
        self.lapse()
        sent_at, claims = self.now(), self.claims()
        self._next = sent_at + self.settings.between_s
        prolong = sent_at - self._prolonged_at >= self.settings.claim_ttl_s / 3
        if self.store is None:
            self.store = self._connect()
        own = self.store.workers.beat(
            self.describe(), claims if prolong else {}, self.settings.claim_ttl_s
        )
        with self._lock:
            if prolong and not own.not_extended:
                self._prolonged_at = sent_at
            if (
                self._steady_since is None
                or sent_at - self._sent_at > GAP * self.settings.between_s
            ):
                self._steady_since = sent_at
            self._sent_at = sent_at
            self.until, self._answered = sent_at + self.settings.trusted_s, self._next
            self._answers.put(Answer(sent_at, claims, prolong, own))

    def lapse(self) -> bool:
        """Whether the worker may be dead to the others by now; then it is told so, before it hears
        of any later beat."""
        with self._lock:
            lapsed = self._steady_since is not None and self.now() >= self.until
            if lapsed:
                self._steady_since = None
                self._answers.put(None)
            return lapsed

    @property
    def trusted(self) -> bool:
        """Whether the last beat that was due got through."""
        return self._steady_since is not None and self._next == self._answered

    def steady(self) -> bool:
        """Whether the database has been there long enough to blame the silence of others on
        themselves."""
        return self._steady_for_s() >= self.settings.dead_after_s

    def settled(self) -> bool:
        """Whether all who live have had the time to prolong their claims, since the database is
        there."""
        return self._steady_for_s() >= 2 * self.settings.between_s

    def _steady_for_s(self) -> float:
        since, now = self._steady_since, self.now()
        broken = since is None or now - self._sent_at > GAP * self.settings.between_s
        return float("-inf") if since is None or broken else now - since

    def answers(self) -> Iterator[Answer | None]:
        """What has come since the last time, in order; None: the worker's time was over."""
        while not self._answers.empty():
            yield self._answers.get_nowait()
