"""The heartbeat of a worker: says that it lives, extends its claims, asks which it still has.

If nothing is heard of a worker for `dead_after_s`, the others take it for dead and take over its
work. So a worker does not trust itself any longer than that either: when no heartbeat got through
in time, it gives up what it runs, whatever the database would say.
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

GAP = 3  # heartbeats that must be missing before it counts as an interruption


# The clock of a worker. It never goes backwards and, where the system has CLOCK_BOOTTIME, does not
# stop while the machine sleeps. It is cheap to read, since every turn does so several times.
seconds: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic
)


class HeartSettings(Record):
    """How often a worker sends heartbeats, and when it loses its claims without them."""

    every_s: float = 5.0
    dead_after_s: float = 30.0  # the others take a worker for dead that was silent for this long
    claim_ttl_s: float = 300.0  # claims that are not extended expire after this long
    # A worker begins nothing more when this little time is left before others may take its claims.
    margin_s: float = 6.0

    @property
    def between_s(self) -> float:
        """Seconds from one heartbeat to the next: often enough to extend claims in time."""
        return min(self.every_s, self.claim_ttl_s / 3, self.dead_after_s / 3)

    @property
    def trusted_s(self) -> float:
        """For how many seconds after a heartbeat was sent nobody takes the worker for dead."""
        return self.dead_after_s - min(self.margin_s, self.dead_after_s / 5)


class Answer(Record):
    """The database's answer to a heartbeat.

    `own` is everything that the worker has claimed, with fences and wakes.
    """

    sent_at: float
    claims: Mapping[str, int]  # id -> fence: what the worker owned when it was sent
    prolonged: bool  # whether it was to extend the claims
    own: OwnClaims

    def fence(self, id: str) -> int | None:
        """Returns the fence of the worker's claim; None if the database knows no such claim."""
        return self.own[id][0] if id in self.own else None

    def prolongs(self, id: str) -> bool:
        """Returns whether this heartbeat has extended the claim."""
        return self.prolonged and id in self.claims and id not in self.own.not_extended

    def wakes(self, id: str) -> int:
        """Returns how often a claimed workflow was woken. `KeyError` if it is not claimed."""
        return self.own[id][1]


class Heartbeat:
    """The heartbeats of one worker.

    One thread at a time sends them: a thread of their own, or the worker's. Another thread may
    watch whether they get through (`lapse`). The worker's thread reads the answers.

    Time counts from before a heartbeat is sent: when its answer arrives, that time has already
    passed for the others.
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
        """`connect` opens the store for heartbeats, before the first one.

        `apart`: another thread than the worker's sends them.
        """
        self.store: Store | None = None
        self._connect, self.apart = connect, apart
        self.describe, self.claims, self.settings, self.now = describe, claims, settings, now
        self.until = float("-inf")  # nobody takes the worker for dead before this
        # When the next heartbeat is due: as of the last one sent, and of the last one answered.
        self._next = self._answered = float("-inf")
        self._prolonged_at = now()
        self._steady_since: float | None = None
        self._sent_at = float("-inf")  # when the last one that got through was sent
        self._lock = threading.Lock()  # between the thread that sends and the one that watches
        self._answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()

    @property
    def rest_s(self) -> float:
        """Seconds until the next heartbeat is due."""
        return max(0.0, self._next - self.now())

    def run_once(self) -> None:
        """Sends one heartbeat. Raises `StoreError` if it may not have got through."""
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
        """Returns whether others may take the worker for dead by now; if so, the worker is told.

        It is told only once, and before it hears of any later heartbeat.
        """
        with self._lock:
            lapsed = self._steady_since is not None and self.now() >= self.until
            if lapsed:
                self._steady_since = None
                self._answers.put(None)
            return lapsed

    @property
    def trusted(self) -> bool:
        """Whether the last heartbeat that was due got through."""
        return self._steady_since is not None and self._next == self._answered

    def steady(self) -> bool:
        """Returns whether this worker has reached the database for all of `dead_after_s`.

        Only then is the silence of other workers their own, and not the database's.
        """
        return self._steady_for_s() >= self.settings.dead_after_s

    def settled(self) -> bool:
        """Returns whether all living workers have had the time to extend their claims.

        That is so when this worker has reached the database, without an interruption, for the time
        of two heartbeats.
        """
        return self._steady_for_s() >= 2 * self.settings.between_s

    def _steady_for_s(self) -> float:
        since, now = self._steady_since, self.now()
        broken = since is None or now - self._sent_at > GAP * self.settings.between_s
        return float("-inf") if since is None or broken else now - since

    def answers(self) -> Iterator[Answer | None]:
        """Yields the answers since the last call, in order.

        None among them means that the worker has lapsed: others may have taken it for dead.
        """
        while not self._answers.empty():
            yield self._answers.get_nowait()
