"""What must happen by itself: timers fire, expired claims are taken back, what should not be asleep is woken."""

from __future__ import annotations

from collections.abc import Callable

from rhythm.record import Record
from rhythm.store.base import Store


class ServiceSettings(Record):
    batch: int = 100
    crash_limit: int = 3
    rescue_every_s: float = 5.0
    sweep_every_s: float = 300.0


class Services:
    """The services of one process, on one loop. `run` does what is due and says when to come back."""

    def __init__(self, store: Store, settings: ServiceSettings, now: Callable[[], float], clock_us: Callable[[], int]) -> None:
        self.store, self.settings, self.now, self.clock_us = store, settings, now, clock_us
        self._next_timer_us = 0
        self._next_rescue = self._next_sweep = now()

    def run(self) -> tuple[bool, float]:
        """Whether anything was done, and in how many seconds there may be more."""
        did = self._timers()
        if self.now() >= self._next_rescue:
            did = bool(self.store.rescue(self.settings.batch, self.settings.crash_limit)) or did
            self._next_rescue = self.now() + self.settings.rescue_every_s
        if self.now() >= self._next_sweep:
            did = bool(self.store.sweep(self.settings.batch)) or did
            self._next_sweep = self.now() + self.settings.sweep_every_s
        return did, max(0.0, min((self._next_timer_us - self.clock_us()) / 1e6, self._next_rescue - self.now()))

    def _timers(self) -> bool:
        fired, due = self.store.fire_timers(self.settings.batch)
        self._next_timer_us = due if due is not None else self.clock_us() + 3_600_000_000
        return fired > 0
