"""Runs handlers: `def` handlers in threads, `async def` handlers on one event loop.

The threads are daemons, so that a handler that never returns cannot keep the process alive. On the
event loop handlers can be cancelled. Both get their calls in bulk: a worker starts hundreds at
once, and to wake a thread for each would cost more than most handlers do.
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

IDLE_S = 10.0  # a thread without work ends after this long
LAG_S = 0.1  # how long `lag_s` waits for the event loop to answer


class HandlerCall(Record):
    """A call of a handler, and the function that is told how it ended."""

    task: Task[..., Any]
    inputs: Any
    current: Current
    report: Callable[[AttemptEnd], None]

    def call(self) -> Any:
        """Calls the handler with its inputs as arguments."""
        args, kwargs = self.task.arguments(self.inputs)
        return self.task.handler(*args, **kwargs)


class Handlers:
    """Runs handlers. Calls `report` once for each, from another thread."""

    def __init__(self) -> None:
        self._threads, self._loop = Threads(), Loop()

    def start(
        self,
        task: Task[..., Any],
        inputs: Any,
        current: Current,
        report: Callable[[AttemptEnd], None],
    ) -> Callable[[], object]:
        """Starts an attempt. Returns a function that cancels it, as far as that is possible."""
        attempt = HandlerCall(task, inputs, current, report)
        return self._loop.start(attempt) if task.is_async else self._threads.start(attempt)

    def lag_s(self) -> float | None:
        """Returns how long the event loop takes to answer; None if it was never needed."""
        return self._loop.lag_s()

    def close(self) -> None:
        """Stops the event loop. Threads are left: they are daemons."""
        self._loop.close()


class Threads:
    """Runs each handler in a thread; a thread that becomes free takes the next call."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[HandlerCall] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._free = 0  # waiting threads for which no attempt is queued

    def start(self, attempt: HandlerCall) -> Callable[[], object]:
        """Gives an attempt to a free thread, or to a new one that begins with it.

        Returns a function that tells the handler to give up. Raises `RuntimeError` if it takes a
        new thread, and none can be had: then nothing was queued.
        """
        with self._lock:
            missing = self._free == 0
            self._free -= not missing
        if missing:
            threading.Thread(target=self._run, args=(attempt,), daemon=True, name="tasks").start()
        else:
            self._waiting.put(attempt)
        return attempt.current.give_up

    def _run(self, first: HandlerCall) -> None:
        attempt: HandlerCall | None = first
        while attempt is not None:
            self._attempt(attempt)
            with self._lock:
                self._free += 1
            attempt = self._next()

    def _next(self) -> HandlerCall | None:
        """Waits for the next attempt; None if there was none for so long that the thread ends."""
        while True:
            try:
                return self._waiting.get(timeout=IDLE_S)
            except queue.Empty:
                with self._lock:
                    # 0: an attempt was queued for this thread just now
                    if self._free:
                        self._free -= 1
                        return None

    @staticmethod
    def _attempt(attempt: HandlerCall) -> None:
        if attempt.current.cancelled:  # while it was queued
            return None
        if not attempt.current.may_begin():
            return attempt.report(not_begun(attempt.task))
        try:
            with attempt.current.entered():
                ended = attempt.current.within(lambda: ended_by(attempt.task, attempt.call))
        except Exception as problem:  # from the transaction around the handler
            ended = ended_by(attempt.task, partial(_raise, problem))
        attempt.report(ended)


class LoopProbe:
    """A question to the event loop, and how long the answer takes."""

    def __init__(self) -> None:
        self.asked_at, self.answered_at, self.answered = time.monotonic(), 0.0, threading.Event()

    def answer(self) -> None:
        """Notes the time of the answer. Runs in the event loop."""
        self.answered_at = time.monotonic()
        self.answered.set()

    def lag_s(self) -> float:
        """Returns how long the answer took or, if there is none yet, has taken so far."""
        return (self.answered_at if self.answered.is_set() else time.monotonic()) - self.asked_at


class Loop:
    """One event loop in a thread of its own, made when it is first needed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: deque[HandlerCall] = deque()
        self._running: dict[Current, asyncio.Task[None]] = {}
        self._probe: LoopProbe | None = None

    def start(self, attempt: HandlerCall) -> Callable[[], object]:
        """Queues an attempt for the event loop. Returns a function that cancels it."""
        loop = self._event_loop()
        self._waiting.append(attempt)
        # If others are queued before this one, the loop was told already, and finds this one too.
        if len(self._waiting) == 1:
            loop.call_soon_threadsafe(self._begin)
        return lambda: self._cancel(attempt.current)

    def close(self) -> None:
        """Stops the event loop; its thread cancels the handlers that still run."""
        loop, self._loop = self._loop, None
        if loop:
            loop.call_soon_threadsafe(loop.stop)

    def lag_s(self) -> float | None:
        """Returns how long the event loop takes to answer; None if there is none.

        If it has not answered the last question yet, no new one is asked: it has been blocked since
        then.
        """
        loop = self._loop
        if loop is None:
            return None
        if self._probe is None or self._probe.answered.is_set():
            self._probe = LoopProbe()
            with suppress(RuntimeError):  # the loop was closed just now
                loop.call_soon_threadsafe(self._probe.answer)
        self._probe.answered.wait(LAG_S)
        return self._probe.lag_s()

    def _begin(self) -> None:
        """Begins everything that was queued since the last call. Runs in the event loop."""
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
        """Runs one handler. Never raises: a SystemExit in the event loop would end all handlers."""
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
        if self._loop:  # otherwise it is closed, and all are cancelled
            self._loop.call_soon_threadsafe(
                lambda: self._running[current].cancel() if current in self._running else None
            )

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop = asyncio.new_event_loop()
            try:
                threading.Thread(
                    target=_keep_running, args=(loop,), daemon=True, name="async tasks"
                ).start()
            except BaseException:  # a loop that no thread runs would never answer
                loop.close()
                raise
            self._loop = loop
        return self._loop


def _keep_running(loop: asyncio.AbstractEventLoop) -> None:
    """Runs the event loop until it is stopped.

    A SystemExit in a coroutine that a handler started on the side would otherwise end the loop for
    all handlers.
    """
    while True:
        try:
            loop.run_forever()
            loop.run_until_complete(_cancel_all())
            return loop.close()
        except (SystemExit, KeyboardInterrupt):
            continue


async def _cancel_all() -> None:
    """Cancels the coroutines that are left, and lets them clean up.

    One that never ends blocks only this thread.
    """
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _raise(problem: BaseException) -> None:
    raise problem
