"""What the parts of one worker share."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from rhythm.record import Record
from rhythm.store.interfaces.store import Store
from rhythm.worker.lines import LineBuffer
from rhythm.worker.narration import Narrator
from rhythm.worker.settings import WorkerSettings


class Context(Record):
    """The store, name, settings, clock and random numbers of one worker.

    Its parts have no other source of time or randomness.
    """

    store: Store
    worker: str  # the name of the worker
    settings: WorkerSettings
    now: Callable[[], float]  # seconds, on a clock that never goes backwards
    rng: random.Random
    narrator: Narrator
    sleep: Callable[[float], None] = time.sleep
    lines: LineBuffer | None = None  # what executions say here; None: it is not kept

    def seed(self) -> str:
        """Returns the random bits for one turn."""
        return f"{self.rng.getrandbits(64):016x}"
