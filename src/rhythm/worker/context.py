"""What the parts of one worker have in common."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from rhythm.record import Record
from rhythm.store.interfaces.store import Store
from rhythm.worker.narration import Narrator
from rhythm.worker.settings import WorkerSettings


class Context(Record):
    """The surroundings of a worker. Time and chance come from here, and from nowhere else."""

    store: Store
    worker: str  # its name
    settings: WorkerSettings
    now: Callable[[], float]  # seconds on a clock that only goes forward
    rng: random.Random
    narrator: Narrator
    sleep: Callable[[float], None] = time.sleep

    def seed(self) -> str:
        """Random bits for one turn."""
        return f"{self.rng.getrandbits(64):016x}"
