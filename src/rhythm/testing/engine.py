"""Drives the real worker on a real store, one round at a time, on a clock that jumps.

Nothing comes from outside but what the test does in between. So the engine knows when nothing can
happen any more, and what happens next.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from rhythm.app.pooled import worker_settings
from rhythm.engine.levels import LEVELS
from rhythm.errors import StoreError
from rhythm.store.interfaces.claims import SYSTEM_QUEUE
from rhythm.store.interfaces.store import Store
from rhythm.testing.bodies import Bodies, Crashed, Order
from rhythm.testing.clock import SECOND_US, SimulatedClock
from rhythm.testing.doubles import CallLog, Double
from rhythm.worker.lines import LineBuffer
from rhythm.worker.loop import Worker
from rhythm.worker.narration import Narrator, Observer
from rhythm.worker.services import Scheduler, ServiceSettings
from rhythm.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from rhythm.app.application import Rhythm
    from rhythm.testing.faults import WatchedStore

BATCH = 1000
MAX_STALLS = 1000
UNANSWERED = ("database_unanswered", "commit_unknown")
LONG_S = 1e9  # claims and heartbeats outlast every jump of the clock


class EngineFault(AssertionError):
    """Rhythm itself has failed: this is a bug of Rhythm, not of the test."""


class Engine:
    """One worker at a time on one store, with the services that it needs."""

    def __init__(
        self,
        app: Rhythm,
        clock: SimulatedClock,
        calls: CallLog,
        doubles: Mapping[str, Double],
        *,
        watched: WatchedStore | None = None,
        order: Order = lambda count: None,
        observe: Observer | None = None,
        why_missing: Callable[[str], str],
        patience_s: float,
    ) -> None:
        """`watched`: the store as the worker sees it; else that of the application."""
        self.app, self.clock = app, clock
        self.store: Store = app.store
        self._seen = app.store if watched is None else cast(Store, watched)
        self._observe, self._why_missing = observe, why_missing
        self.bodies = Bodies(clock, calls, doubles, order, patience_s)
        self.workers = 0  # how many there have been
        self._queues: tuple[str, ...] = app.settings.queues
        self.worker = self._new_worker()
        self._scheduler = Scheduler(
            self._seen, ServiceSettings(), app.program, clock.us, self._hear
        )
        self._due_us: int | None = None  # when the next timer is due
        self._stalls = 0  # jumps in a row that did not move the clock

    # what happens

    def settle(self) -> None:
        """Does everything that can happen without time passing."""
        self.app._refuse_if_closed()
        while self.step():
            pass
        while self.lines is not None and not self.lines.empty:
            self.lines.write(self.store, everything=True)

    def step(self) -> bool:
        """Does what can happen now; returns whether anything did."""
        try:
            fired, self._due_us = self._seen.maintenance.fire_timers(BATCH)
            started = self._scheduler.run_once(self.clock.seconds())
            did = self.worker.run_round()
            did = self.bodies.deliver() or did
            return did or bool(fired) or any(started.values()) or self._quiet_did()
        except Crashed:
            self.crash()
            return True
        except StoreError:
            if self._seen is self.store:
                raise
            return True  # an answer was lost on purpose: a service comes again

    def _quiet_did(self) -> bool:
        """Does what is only done when nothing else happens; returns whether anything was done."""
        done = self.store.recover(BATCH, self.app.settings.crash_limit)
        if done.rescued or done.ended or done.terminated:
            return True
        waiting = {queue.name for queue in self.store.workers.queues() if queue.ready}
        unserved = waiting - {*self._queues, SYSTEM_QUEUE}
        if unserved:
            self._queues = (*self._queues, *sorted(unserved))
            self.worker.stop()
            self.worker = self._new_worker()
        return bool(unserved)

    def crash(self) -> None:
        """Ends the worker as a `kill -9` would, and lets another one take over."""
        self.bodies.abandon()
        dead = self.worker.name
        self.worker = self._new_worker()
        self.store.workers.leave(dead)
        self.store.maintenance.rescue(BATCH, self.app.settings.crash_limit)

    # time

    def jump(self, us: int) -> None:
        """Moves the clock to what happens next, and does it.

        Raises `EngineFault` if it does not happen, however often it is tried.
        """
        self._stalls = self._stalls + 1 if us <= self.clock.us() else 0
        if self._stalls > MAX_STALLS:
            raise EngineFault(f"a bug in Rhythm, please report it: due at {us} and not done")
        self.clock.move_to(us)
        self.settle()

    @property
    def due_us(self) -> int | None:
        """When the next thing happens by itself; None: nothing does."""
        names, next_s = self.store.schedules.due(1, list(self._scheduler.unable))
        slots = [] if next_s is None else [self.clock.us() + math.ceil(next_s * SECOND_US)]
        slots += [self.clock.us()] if names else []
        limits = [
            math.ceil((attempt.began + attempt.timeout_s) * SECOND_US)
            for attempt in self.worker.attempts.running.values()
            if attempt.timeout_s is not None
        ]
        found = [*slots, *limits, self._due_us, self.bodies.due_us]
        return min((us for us in found if us is not None), default=None)

    def _new_worker(self) -> Worker:
        self.workers += 1
        level = LEVELS.get(self.app.settings.log_level)
        # Those of a worker that died are gone with it.
        self.lines = (
            None
            if level is None
            else LineBuffer(level, f"worker-{self.workers}", self.clock.seconds)
        )
        return Worker(
            self._seen,
            self.app.program,
            self.app.tasks,
            self.bodies,
            f"worker-{self.workers}",
            _settings(self.app, self._queues),
            now=self.clock.seconds,
            rng=random.Random(self.workers),
            narrator=Narrator(self._observe, self._hear),
            why_missing=self._why_missing,
            sleep=lambda seconds: None,
            lines=self.lines,
        )

    def _hear(self, what: str, id: str, detail: str) -> None:
        if what == "bug":
            raise EngineFault(f"a bug in Rhythm, please report it: {id} {detail}")
        if what in UNANSWERED and self._seen is self.store:
            raise StoreError(detail)
        if self._observe:
            self._observe(what, id, detail)


def _settings(app: Rhythm, queues: Sequence[str]) -> WorkerSettings:
    """Returns the settings of the application, for a worker that has the database for itself."""
    return worker_settings(app.settings).replace(
        queues=tuple(queues),
        concurrency=BATCH,
        batch=BATCH,
        claim_ttl_s=LONG_S,
        dead_after_s=LONG_S,
        beat_s=LONG_S,
        check_interval_s=0.0,
        owner_run_limit_s=LONG_S,
        share_s=LONG_S,
        alone_s=0.0,
        suspect_retry_s=0.0,
        missing_task_grace_s=0.0,
        turn_s=LONG_S,
    )


def doctor(store: Store) -> list[Any]:
    """Returns which rules of Rhythm are broken: none, unless Rhythm itself has a bug."""
    from rhythm.engine.doctor import examine

    return list(examine(store, 0.0))
