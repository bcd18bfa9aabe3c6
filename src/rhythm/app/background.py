"""A worker in a thread of this process, for scripts, tests and small applications."""

from __future__ import annotations

import logging
import random
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from rhythm.engine.turns import Programs
from rhythm.errors import StoreError
from rhythm.store.base import Store
from rhythm.worker.executor import Handlers
from rhythm.worker.handlers import Task
from rhythm.worker.services import Services, ServiceSettings
from rhythm.worker.worker import Worker, WorkerSettings

log = logging.getLogger("rhythm.worker")
GRACE_S = 5.0  # for what runs when the worker is told to stop
BUSY_S = 0.05  # the longest sleep while handlers run: their timeouts are looked at in between


class BackgroundWorker:
    """Runs what is ready, until it is stopped; `with app.worker():` starts and stops it."""

    def __init__(
        self, store: Store, close: bool, programs: Programs, tasks: Mapping[str, Task[..., Any]], settings: WorkerSettings,
        services: ServiceSettings, poll_s: float, ended: Callable[[], None], started: list[BackgroundWorker],
    ) -> None:  # fmt: skip
        self._started = started  # the workers of the application that are running
        self._store, self._close, self._poll_s, self._ended = store, close, poll_s, ended
        self._handlers = Handlers()
        name = secrets.token_hex(6)
        observe = _tell if log.isEnabledFor(logging.DEBUG) else None
        self._worker = Worker(store, programs, tasks, self._handlers, name, settings, time.monotonic, random.Random(), observe, _tell)
        self._services = Services(store, services, time.monotonic, lambda: time.time_ns() // 1000, programs, _tell)
        self._stop = threading.Event()
        self._worker.sleep = self._sleep
        self._worker.gives_up = lambda waited_s: self._stop.is_set()
        self._thread = threading.Thread(target=self._run, name="rhythm worker", daemon=True)
        self.error: BaseException | None = None  # what ended it, if that was not `stop`

    def start(self) -> Self:
        self._thread.start()
        self._started.append(self)
        return self

    def wake(self) -> None:
        """There may be something to do."""
        self._worker.bodies.wake()

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Claims nothing more, lets what runs end within the grace, and gives back the rest. Raises what went wrong meanwhile."""
        self._worker.draining = True
        deadline = time.monotonic() + grace_s
        while self._thread.is_alive() and not self._worker.idle and time.monotonic() < deadline:
            self._thread.join(0.01)
        self._stop.set()
        self.wake()
        self._thread.join()
        if self in self._started:
            self._started.remove(self)
        if self.error is not None:
            raise self.error

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.stop()
        except BaseException:
            if error is None:  # else the caller has enough to look at, and this one is in the log
                raise

    def _run(self) -> None:
        try:
            self._rounds()
            self._worker.stop()
            self._services.close()
        except StoreError as problem:
            log.warning("the worker could not give its claims back, they expire: %s", problem)
        except BaseException as problem:
            log.exception("the worker has stopped")
            self.error = problem
        finally:
            self._handlers.close()
            if self._close:
                self._store.close()

    def _rounds(self) -> None:
        did = True
        while not self._stop.is_set():
            served, wait_s = self._serve(did)
            longest_s = BUSY_S if self._worker.bodies.running else self._poll_s
            did = self._worker.step(0.0 if did or served else min(wait_s, longest_s))
            if self._worker.unsure:  # the database did not answer
                self._stop.wait(self._poll_s)
            elif did:
                self._ended()

    def _sleep(self, seconds: float) -> None:
        self._stop.wait(seconds)

    def _serve(self, busy: bool) -> tuple[bool, float]:
        try:
            return self._services.run(busy)
        except StoreError as problem:
            log.warning("%s", problem)
            return False, self._poll_s


def _tell(what: str, id: str, detail: str) -> None:
    log.log(
        logging.WARNING if what in ("unknown", "broken", "newer", "lost", "bug", "service failed") else logging.DEBUG,
        "%s %s %s",
        what,
        id,
        detail,
    )
