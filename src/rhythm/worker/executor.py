"""Running handlers: `def` handlers in daemon threads, so that one that never returns cannot hold
the process; `async def` handlers on one event loop, where they can be cancelled.

Both are handed over in bulk: a worker starts hundreds at once, and waking a thread for each would
cost more than most of them do.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from rhythm.record import Record
from rhythm.worker.current import Current
from rhythm.worker.ended import AttemptEnd, ended_by, not_begun
from rhythm.worker.handlers import Task

IDLE_S = 10.0  # after which a thread without work ends
LAG_S = 0.1  # for which whoever asks how the event loop fares waits for an answer


class HandlerCall(Record):
    """A call of a handler, and who is told how it ended."""

    task: Task[..., Any]
    inputs: Any
    current: Current
    report: Callable[[AttemptEnd], None]

    def call(self) -> Any:
        args, kwargs = self.task.arguments(self.inputs)
        return self.task.handler(*args, **kwargs)


class Handlers:
    """Runs handlers. `report` is called once for each, from another thread."""

    def __init__(self) -> None:
        self._threads, self._loop = Threads(), Loop()

    def start(
        self,
        task: Task[..., Any],
        inputs: Any,
        current: Current,
        report: Callable[[AttemptEnd], None],
    ) -> Callable[[], object]:
        """Starts an attempt; returns what cancels it, as far as that is possible."""
        attempt = HandlerCall(task, inputs, current, report)
        return self._loop.start(attempt) if task.is_async else self._threads.start(attempt)

    def lag_s(self) -> float | None:
        """How long the event loop takes to answer; None: nobody has needed one."""
        return self._loop.lag_s()

    def close(self) -> None:
        self._loop.close()


class Threads:
    """As many threads as there are handlers that run; one that becomes free takes the next."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[HandlerCall] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._free = 0  # threads that wait, and for which no attempt is on its way

    def start(self, attempt: HandlerCall) -> Callable[[], object]:
        with self._lock:
            missing = self._free == 0
            self._free -= not missing
        self._waiting.put(attempt)
        if missing:
            threading.Thread(target=self._run, daemon=True, name="tasks").start()
        return attempt.current.give_up

    def _run(self) -> None:
        while True:
            try:
                attempt = self._waiting.get(timeout=IDLE_S)
            except queue.Empty:
                with self._lock:
                    if self._free == 0:
                        continue
                    self._free -= 1
                    return
            self._attempt(attempt)
            with self._lock:
                self._free += 1

    @staticmethod
    def _attempt(attempt: HandlerCall) -> None:
        if attempt.current.cancelled:  # before its turn came
            return None
        if not attempt.current.may_begin():
            return attempt.report(not_begun(attempt.task))
        try:
            with attempt.current.entered():
                ended = attempt.current.within(lambda: ended_by(attempt.task, attempt.call))
        except Exception as problem:  # of the transaction around it
            ended = ended_by(attempt.task, partial(_raise, problem))
        attempt.report(ended)


class LoopProbe:
    """A question to the event loop, and how long it has taken to answer it."""

    def __init__(self) -> None:
        self.asked_at, self.answered_at, self.answered = time.monotonic(), 0.0, threading.Event()

    def answer(self) -> None:
        self.answered_at = time.monotonic()
        self.answered.set()

    def lag_s(self) -> float:
        return (self.answered_at if self.answered.is_set() else time.monotonic()) - self.asked_at


class Loop:
    """One event loop in a thread of its own, made when it is first needed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: deque[HandlerCall] = deque()
        self._running: dict[Current, asyncio.Task[None]] = {}
        self._probe: LoopProbe | None = None

    def start(self, attempt: HandlerCall) -> Callable[[], object]:
        loop = self._event_loop()
        self._waiting.append(attempt)
        if len(self._waiting) == 1:  # else the loop has been told, and will find this one too
            loop.call_soon_threadsafe(self._begin)
        return lambda: self._cancel(attempt.current)

    def close(self) -> None:
        loop, self._loop = self._loop, None
        if loop:
            loop.call_soon_threadsafe(loop.stop)

    def lag_s(self) -> float | None:
        """A question that has not been answered yet is not asked anew: the loop has been blocked
        since then."""
        loop = self._loop
        if loop is None:
            return None
        if self._probe is None or self._probe.answered.is_set():
            self._probe = LoopProbe()
            with suppress(RuntimeError):  # it was closed just now
                loop.call_soon_threadsafe(self._probe.answer)
        self._probe.answered.wait(LAG_S)
        return self._probe.lag_s()

    def _begin(self) -> None:
        """In the loop: everything that has been handed over since."""
        while self._waiting:
            attempt = self._waiting[0]
            if not attempt.current.cancelled:
                self._running[attempt.current] = running = asyncio.ensure_future(
                    self._attempt(attempt)
                )
                running.add_done_callback(partial(self._ended, attempt.current))
            self._waiting.popleft()

    def _ended(self, current: Current, running: asyncio.Task[None]) -> None:
        del self._running[current]

    async def _attempt(self, attempt: HandlerCall) -> None:
        """Never raises: in the loop itself SystemExit would end all handlers."""
        if not attempt.current.may_begin():
            return attempt.report(not_begun(attempt.task))
        try:
            with attempt.current.entered():
                value = await attempt.call()
            ended = ended_by(attempt.task, lambda: value)
        except BaseException as problem:
            ended = ended_by(attempt.task, partial(_raise, problem))
        attempt.report(ended)

    def _cancel(self, current: Current) -> None:
        current.give_up()
        if self._loop:  # else all have been cancelled
            self._loop.call_soon_threadsafe(
                lambda: self._running[current].cancel() if current in self._running else None
            )

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(
                target=_keep_running, args=(self._loop,), daemon=True, name="async tasks"
            ).start()
        return self._loop


def _keep_running(loop: asyncio.AbstractEventLoop) -> None:
    """Runs the loop until it is stopped. SystemExit in what a handler started on the side would end
    it for all the others."""
    while True:
        try:
            loop.run_forever()
            loop.run_until_complete(_cancel_all())
            return loop.close()
        except (SystemExit, KeyboardInterrupt):
            continue


async def _cancel_all() -> None:
    """Lets those who are left clean up; one that never ends keeps nothing but this thread."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _raise(problem: BaseException) -> None:
    raise problem
