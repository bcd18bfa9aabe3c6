"""`PooledWorker`: one of any number of workers on a database, in threads of this process.

One thread decides (`worker.Worker`). One sends the heartbeats on its own connection, so that
nothing else that runs here can stop them. One watches that the heartbeats get through, one listens
for work, and one runs the services. Handlers run in other threads. A worker may be killed at any
moment: others take over what it owned.
"""

from __future__ import annotations

import logging
import random
import secrets
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict

from rhythm.app.checks import valid_name
from rhythm.build import shown_version
from rhythm.durations import duration_s, show_duration
from rhythm.engine.levels import LEVELS
from rhythm.engine.rows import Asking
from rhythm.errors import StoreError
from rhythm.record import Record
from rhythm.store.interfaces.claims import SYSTEM_QUEUE
from rhythm.store.open import open_store
from rhythm.worker.declared import Declared
from rhythm.worker.executor import Handlers
from rhythm.worker.heartbeat import seconds
from rhythm.worker.lines import LineBuffer, LineWriter
from rhythm.worker.local_workers import HOST, release_claims_of_dead_local_workers
from rhythm.worker.logs import LOG, EventLogger
from rhythm.worker.loop import Worker
from rhythm.worker.metrics import Asked, Metrics, Values, depth, oldest_s
from rhythm.worker.narration import Narrator
from rhythm.worker.prints import keep_prints, leave_prints
from rhythm.worker.queue_hints import QueueHints
from rhythm.worker.services import Services, ServiceSettings
from rhythm.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from typing import Unpack

    from rhythm.app.application import Rhythm
    from rhythm.settings import Settings
    from rhythm.store.interfaces.store import Listening, Store
    from rhythm.store.interfaces.workers import Queue

log = logging.getLogger(LOG)
WATCH_S = 0.05  # between two checks whether the beats get through, when one is due
JOIN_S = 0.1  # how long a thread is waited for that may have passed on the deciding
HEART_S = 0.3  # how long a stopping worker waits for its last beat
AGAIN_S = 0.5  # before a failed beat is sent again
LINES_S = 2.0  # how long a stopping worker waits until its last lines are written
LAST_S = 10.0  # to give back unfinished work, after the grace period
UNHEALTHY_AFTER_S = 15.0  # a worker that has not asked for work for this long is unhealthy


class Pooled(TypedDict, total=False):
    """The settings that one worker may have of its own; the others are those of the application."""

    queues: Iterable[str] | str | None
    concurrency: int | None
    claim_ttl: float | str | None
    heartbeat_interval: float | str | None
    dead_after: float | str | None
    batch_size: int | None
    poll_interval: float | str | None
    shutdown_grace: float | str | None


class WorkerHealth(Record):
    """Whether a worker does its work: it has asked for work lately, and got an answer.

    `problems` says what is wrong.
    """

    worker: str
    healthy: bool
    draining: bool
    running: int
    polled_s: float | None  # seconds since it last asked for work; None: it never did
    problems: tuple[str, ...] = ()


class PooledWorker:
    """Claims ready work and runs it until it is stopped. `with app.worker():` starts and stops one.

    Settings that are not given are those of the application. `worker_id` is for people: each worker
    has its own name, which begins with it.
    """

    def __init__(
        self, worker_id: str | None = None, app: Rhythm | None = None, **settings: Unpack[Pooled]
    ) -> None:
        if app is None:
            raise TypeError(
                "a worker needs its application: PooledWorker(worker_id, app), or app.worker(…)"
            )
        app._refuse_if_closed()
        given = {
            "worker_poll_interval" if name == "poll_interval" else name: value
            for name, value in settings.items()
        }
        self.settings = app.settings.having(given)
        own = HOST if worker_id is None else valid_name(worker_id, "a worker_id")
        self.name = f"{own}-{secrets.token_hex(3)}"
        self.error: BaseException | None = None  # what ended the worker, if it was not `stop`
        self._app, self._poll_s = app, self.settings.worker_poll_interval_s
        # It has its own connections, except where the store was passed in or is in memory.
        self._own = app.opened and ":memory:" not in self.settings.database_url
        self._store: Store = (
            open_store(self.settings.database_url, listen_url=self.settings.listen_url)
            if self._own
            else app.store
        )
        self._handlers = Handlers(self._take_over)
        self._metrics = Metrics(self._gauges())
        self._log_event = EventLogger(self.name, self._metrics.count_event)
        observe = self._log_event if log.isEnabledFor(logging.DEBUG) else None
        self._declared = Declared(self._store, app.tasks, seconds)
        self._stop, self._hurry = threading.Event(), threading.Event()
        self._listening: Listening | None = None
        served = (SYSTEM_QUEUE, *self.settings.queues)
        self._hints = QueueHints(served, seconds, self._poll_s, self._hears_all)
        self._lines = lines_of(self.settings, self.name)
        self._worker = Worker(
            self._store,
            app.program,
            app.tasks,
            self._handlers,
            self.name,
            worker_settings(self.settings),
            now=seconds,
            rng=random.Random(),
            narrator=Narrator(observe, self._log_event, self._metrics),
            declared=self._declared.find,
            sleep=self._sleep,
            gives_up=lambda waited_s: self._stop.is_set(),
            connect=lambda: self._store.sibling(),
            hints=self._hints,
            expect=lambda delay_s: self._services.expect(delay_s),
            version=shown_version(),
            lines=self._lines,
        )
        self._line_writer = (
            LineWriter(self._lines, self._store, self._log_event) if self._lines else None
        )
        self._prints = False  # whether what tasks print is kept for this worker
        self._services = Services(
            self._store,
            _service_settings(self.settings),
            seconds,
            lambda: time.time_ns() // 1000,
            app.program,
            self._log_event,
            heart=self._worker.heart,
            late=self._metrics.timer,
        )
        self._beat_now = threading.Event()
        self._heart = threading.Thread(target=self._beats, name="rhythm heartbeat", daemon=True)
        self._serving = threading.Thread(target=self._serve, name="rhythm services", daemon=True)
        # The thread that decides; another one after it if a handler holds it up.
        self._thread = threading.Thread(target=self._run, name="rhythm worker", daemon=True)
        app.unstarted.append(self)

    # Called from any thread:

    def start(self) -> Self:
        """Starts the threads of the worker. Raises `RuntimeError` if it was started before."""
        self._app._refuse_if_closed()
        if self not in self._app.unstarted:
            raise RuntimeError(
                f"worker {self.name} was started before: make another one with app.worker(…)"
            )
        self._thread.start()
        self._app.unstarted.remove(self)
        self._app.running.append(self)
        return self

    def wake(self) -> None:
        """Makes the worker look for work at once: there may be something to do."""
        self._worker.attempts.wake()

    def stop(self, grace: float | str | None = None, last_s: float = LAST_S) -> None:
        """Stops the worker: it claims nothing more, and tasks may end within the grace period.

        Then it gives back the rest. Raises the exception that ended the worker, if there was one.
        If the database does not answer, this waits for at most `last_s` more; the claims then pass
        to others when they expire.
        """
        grace_s = self.settings.shutdown_grace_s if grace is None else duration_s(grace)
        if self in self._app.unstarted:
            return self._close_unstarted()
        if self.alive and not self._worker.draining:
            running = len(self._worker.attempts.running)
            self._log_event(
                "worker_draining",
                "",
                f"{running:,} running, for at most {show_duration(grace_s)}"
                if running
                else "nothing runs",
            )
        self.drain()
        deadline = time.monotonic() + grace_s
        while (
            self.alive
            and not self._worker.idle
            and time.monotonic() < deadline
            and not self._hurry.is_set()
        ):
            self._join(0.01)
        self._stop.set()
        self._beat_now.set()
        self.wake()
        self._join(last_s)
        if self in self._app.running:
            self._app.running.remove(self)
        if self.error is not None:
            raise self.error
        return None

    def _join(self, last_s: float) -> None:
        """Waits until no thread decides any more, for `last_s` at most."""
        deadline = time.monotonic() + last_s
        while self.alive and (left_s := deadline - time.monotonic()) > 0:
            wait_s = min(left_s, JOIN_S)
            # A handler asks, in the thread that decides: another one is about to take over.
            if self._thread is threading.current_thread():
                time.sleep(min(wait_s, WATCH_S))
            else:
                self._thread.join(wait_s)

    def _close_unstarted(self) -> None:
        self._app.unstarted.remove(self)
        self._handlers.close()
        if self._own:
            self._store.close()

    def drain(self) -> None:
        """Claims nothing more and begins no more tasks, while those that run may end: `stop` waits.

        What its workflows ask for next goes to other workers.
        """
        self._worker.drain()
        self._beat_now.set()  # so that people see that it is draining
        self.wake()

    def hurry(self) -> None:
        """Ends the grace period of a `stop` that is under way."""
        self._hurry.set()

    @property
    def alive(self) -> bool:
        """Whether the worker's thread runs."""
        return self._thread.is_alive()

    def health(self) -> WorkerHealth:
        """Returns whether the worker does its work, without asking the database."""
        polled_at, now = self._worker.claimer.asked_at, seconds()
        polled_s = None if polled_at is None else now - polled_at
        silent = polled_s is None or polled_s > max(UNHEALTHY_AFTER_S, 5 * self._poll_s)
        problems = [
            f"it has not asked for work for {show_duration(round(polled_s))}"
            if polled_s
            else "it has not asked for work yet"
        ]
        problems = problems if silent and not self._worker.draining else []
        problems += [
            f"{name}: {health.problem}"
            for name, health in self._services.health.items()
            if health.failures > 1
        ]
        draining, running = self._worker.draining, len(self._worker.attempts.running)
        return WorkerHealth(
            self.name, self.alive and not problems, draining, running, polled_s, tuple(problems)
        )

    def metrics(self) -> str:
        """Returns what the worker has counted, in the text format of Prometheus.

        It asks the database what is in the queues, and does not wait long for the answer.
        """
        return self._metrics.text()

    def _gauges(self) -> dict[str, Callable[[], Values]]:
        asked = Asked(self._ask_queues, time.monotonic)
        return {
            "rhythm_worker_slots": self._slots,
            "rhythm_service_last_success_age_seconds": self._since_success,
            "rhythm_loop_lag_seconds": lambda: (
                {(): lag_s} if (lag_s := self._handlers.lag_s()) is not None else {}
            ),
            "rhythm_queue_depth": lambda: depth(asked.read()),
            "rhythm_queue_oldest_age_seconds": lambda: oldest_s(asked.read()),
        }

    def _ask_queues(self) -> Sequence[Queue]:
        """Reads the queues on a separate connection, so that the worker never waits for it."""
        store = self._store.sibling()
        try:
            return store.workers.queues()
        finally:
            if store is not self._store:
                store.close()

    def _slots(self) -> Values:
        running = len(self._worker.attempts.running)
        return {("running",): running, ("free",): max(0, self.settings.concurrency - running)}

    def _since_success(self) -> Values:
        now, health = seconds(), self._services.health.items()
        return {
            (name,): now - last.succeeded_at
            for name, last in health
            if last.succeeded_at is not None
        }

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        except BaseException:
            # Another exception is not hidden by this one, which is in the log.
            if error is None:
                raise

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.__exit__, kind, error, trace)

    def __repr__(self) -> str:
        return (
            f"<PooledWorker {self.name}: "
            f"{'draining' if self._worker.draining else 'live' if self.alive else 'not running'}>"
        )

    # Run in the worker's own threads:

    def _run(self) -> None:
        """Begins to work, and decides."""
        with self._ending_if_it_fails():
            self._heart.start()
            threading.Thread(target=self._watch, name="rhythm watch", daemon=True).start()
            self._introduce()
            self._log_event(
                "worker_started",
                "",
                "it takes work",
                queues=",".join(self.settings.queues),
                concurrency=self.settings.concurrency,
            )
            self._listening = self._store.listen(self._heard)
            self._begin_lines()
            self._serving.start()
            self._decide()

    def _begin_lines(self) -> None:
        """Begins to keep what executions say."""
        if self._line_writer is not None:
            self._line_writer.start()
            if self.settings.log_prints:
                self._prints = True
                keep_prints()

    def _end_lines(self) -> None:
        """Writes what is left of what executions have said."""
        if self._prints:
            self._prints = False
            leave_prints()
        if self._line_writer is not None:
            self._line_writer.close(LINES_S)

    def _decide(self) -> None:
        """Decides until the worker is stopped, and signs off, or until another thread decides."""
        with self._ending_if_it_fails():
            if self._rounds():
                self._sign_off()
                self._end()

    def _take_over(self) -> None:
        """Makes another thread decide, since a handler holds up the one that does.

        Raises `RuntimeError` if none can be had.
        """
        thread = threading.Thread(target=self._decide, name="rhythm worker", daemon=True)
        thread.start()
        self._thread = thread

    def _sign_off(self) -> None:
        self._worker.give_back()
        self._services.wake()
        self._serving.join(LAST_S)
        # A beat that is still under way would bring back the row of this worker after `leave`.
        self._heart.join(HEART_S)
        self._store.workers.leave(self.name)
        self._services.close()
        self._log_event("worker_stopped", "", "nothing is claimed any more")

    @contextmanager
    def _ending_if_it_fails(self) -> Iterator[None]:
        try:
            yield
        except StoreError as problem:
            self._log_event("claims_left", "", f"they expire by themselves: {problem}")
            self._end()
        except BaseException as problem:
            self._failed(problem)
            self._end()

    def _end(self) -> None:
        """Stops the other threads, and closes what the worker has opened."""
        self._stop.set()
        self._services.wake()
        self._handlers.close()
        self._end_lines()
        if self._listening:
            self._listening.close()
        if self._own:
            self._store.close()

    def _failed(self, problem: BaseException) -> None:
        """Stops the worker because of a bug, which `stop` raises."""
        self._log_event(
            "worker_failed",
            "",
            f"the worker has stopped: {problem!r}",
            traceback="".join(traceback.format_exception(problem)),
        )
        self.error = problem
        self._stop.set()
        self.wake()

    def _introduce(self) -> None:
        """Publishes the worker's tasks, and releases claims of workers that died on this machine.

        Other workers must know its tasks before it works: a turn that they take may ask for one.
        This is repeated until the database answers.
        """
        while not self._stop.is_set():
            try:
                self._declared.publish()
                for name in release_claims_of_dead_local_workers(
                    self._store, self.settings.crash_limit
                ):
                    self._log_event(
                        "worker_dead", name, "its process has ended; what it owned is free"
                    )
                return self._log_event("database_back")
            except StoreError as problem:
                self._log_event("database_unanswered", "", str(problem))
                self._stop.wait(self._poll_s)

    def _rounds(self) -> bool:
        """Runs rounds of the worker until it is stopped. False: another thread goes on with them,
        since this one was held up by a handler."""
        did = True
        while not self._stop.is_set():
            did = self._worker.run_round(0.0 if did else min(self._worker.rest_s(), self._poll_s))
            if not self._handlers.run_quick():
                return False
            if self._worker.unsure:  # the database did not answer
                self._stop.wait(self._poll_s)
            elif did:
                self._app.changes.notify()
        return True

    def _serve(self) -> None:
        """Runs the services until the worker is stopped. They have a connection of their own, so
        that no workflow waits for them."""
        try:
            self._services.run_until(self._stop.is_set, self._app.changes.notify)
        except BaseException as problem:
            self._failed(problem)

    def _heard(self, queues: frozenset[str]) -> None:
        """Wakes the worker if it serves one of these queues; an empty set stands for all queues."""
        if not queues or not queues.isdisjoint((SYSTEM_QUEUE, *self.settings.queues)):
            self._hints.heard(queues)
            self.wake()

    def _hears_all(self) -> bool:
        return self._listening is not None and self._listening.hears_all

    def _watch(self) -> None:
        """Checks that the heartbeats get through, and stops the running tasks if they do not.

        It asks nobody, so it works even while the heartbeat thread and the deciding thread both
        wait for the database.
        """
        heart = self._worker.heart
        while not self._stop.wait(
            min(max(heart.until - seconds(), WATCH_S), heart.settings.between_s)
        ):
            if heart.lapse():
                self._worker.attempts.give_up()
                self.wake()

    def _beats(self) -> None:
        """Sends the heartbeats on a separate connection, whatever the other threads wait for."""
        heart = self._worker.heart
        while not self._stop.is_set():
            try:
                heart.run_once()
                self._log_event("database_back", "", "it answers again")
            except Exception as problem:  # even after a bug, the next beat may get through
                self._log_event("database_unanswered", "", f"a heartbeat: {problem}")
            # An idle worker reads the answer when it looks for work.
            if not self._worker.idle:
                self.wake()
            self._beat_now.wait(heart.rest_s if heart.trusted else AGAIN_S)
            self._beat_now.clear()
        if heart.store is not None and heart.store is not self._store:
            with suppress(StoreError):
                heart.store.close()

    def _sleep(self, seconds: float) -> None:
        self._stop.wait(seconds)


def worker_settings(s: Settings) -> WorkerSettings:
    """Returns the part of the settings that the worker takes."""
    margin_s = min(WorkerSettings.margin_s, s.claim_ttl_s / 5)
    return WorkerSettings(
        queues=s.queues,
        concurrency=s.concurrency,
        batch=s.batch_size,
        claim_ttl_s=s.claim_ttl_s,
        beat_s=s.heartbeat_interval_s,
        dead_after_s=s.dead_after_s,
        margin_s=margin_s,
        owner_run=s.owner_run,
        crash_limit=s.crash_limit,
        missing_task_grace_s=s.missing_task_grace_s,
        asking=Asking(s.resume_timeout_s, s.resume_auto_escalate, s.approval_notify),
    )


def lines_of(s: Settings, worker: str) -> LineBuffer | None:
    """Returns what takes the lines of a worker; None if nothing is kept."""
    return None if s.log_level == "off" else LineBuffer(LEVELS[s.log_level], worker, seconds)


def _service_settings(s: Settings) -> ServiceSettings:
    return ServiceSettings(
        crash_limit=s.crash_limit,
        rescue_every_s=min(ServiceSettings.rescue_every_s, s.dead_after_s / 5),
        sweep_every_s=s.resume_worker_interval_s,
        retention_s=s.retention_s,
        event_retention_s=s.event_retention_s,
        log_retention_s=s.log_retention_s,
    )
