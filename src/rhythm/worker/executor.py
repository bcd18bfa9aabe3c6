"""Runs handlers: `def` handlers in threads, `async def` handlers on one event loop.

A `def` handler that is quick may also run in the thread that decides: see `quick`.

The threads are daemons, so that a handler that never returns cannot keep the process alive. On the
event loop handlers can be cancelled. Both get their calls in bulk: a worker starts hundreds at
once, and to wake a thread for each would cost more than most handlers do.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from rhythm.record import Record
from rhythm.worker.current import Current
from rhythm.worker.ended import AttemptEnd, ended_by, not_begun
from rhythm.worker.handlers import Task
from rhythm.worker.quick import PATIENCE_S, Paces, QuickCalls

log = logging.getLogger("rhythm.worker")
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
    """Runs handlers. Calls `report` once for each, from any thread."""

    def __init__(self, take_over: Callable[[], object] | None = None) -> None:
        """With `take_over`, the thread that decides calls `run_quick` between its rounds, and
        `take_over` makes another one decide, if a handler holds it up there."""
        self._paces = Paces()
        self._threads, self._loop = Threads(self._paces), Loop()
        self._quick = QuickCalls(self._call_here, self._start, take_over) if take_over else None

    def start(
        self,
        task: Task[..., Any],
        inputs: Any,
        current: Current,
        report: Callable[[AttemptEnd], None],
    ) -> Callable[[], object]:
        """Starts an attempt. Returns a function that cancels it, as far as that is possible."""
        attempt = HandlerCall(task, inputs, current, report)
        if self._quick is not None and self.is_quick(task):
            self._quick.add(attempt)
        else:
            self._start(attempt)
        return partial(self._loop.cancel, current) if task.is_async else current.give_up

    def is_quick(self, task: Task[..., Any]) -> bool:
        """Returns whether the thread that decides would call the handler between its rounds."""
        if self._quick is None:
            return False
        return not self._loop.has_thread if task.is_async else self._paces.is_quick(task)

    def run_quick(self) -> bool:
        """Runs the quick handlers that wait. Returns whether the calling thread still decides."""
        return self._quick is None or self._quick.run()

    def lag_s(self) -> float | None:
        """Returns how long the event loop takes to answer; None if it has no thread."""
        return self._loop.lag_s()

    def close(self) -> None:
        """Stops the event loop. Threads are left: they are daemons."""
        self._loop.close()
        if self._quick is not None:
            self._quick.close()

    def _start(self, attempt: HandlerCall) -> None:
        (self._loop if attempt.task.is_async else self._threads).start(attempt)

    def _call_here(self, attempts: list[HandlerCall]) -> None:
        if attempts[0].task.is_async:
            return self._loop.call_here(attempts)
        for attempt in attempts:
            _call(self._paces, attempt)


class Threads:
    """Runs each handler in a thread; a thread that becomes free takes the next call."""

    def __init__(self, paces: Paces) -> None:
        self._paces = paces
        self._waiting: queue.SimpleQueue[HandlerCall] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._free = 0  # waiting threads for which no attempt is queued

    def start(self, attempt: HandlerCall) -> None:
        """Gives an attempt to a free thread, or to a new one that begins with it.

        Raises `RuntimeError` if it takes a new thread, and none can be had: then nothing was
        queued.
        """
        with self._lock:
            missing = self._free == 0
            self._free -= not missing
        if missing:
            threading.Thread(target=self._run, args=(attempt,), daemon=True, name="tasks").start()
        else:
            self._waiting.put(attempt)

    def _run(self, first: HandlerCall) -> None:
        attempt: HandlerCall | None = first
        while attempt is not None:
            _call(self._paces, attempt)
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


def _call(paces: Paces, attempt: HandlerCall) -> None:
    """Runs one `def` handler in the calling thread, and notes how long it took."""
    if attempt.current.cancelled:  # while it was queued
        return None
    if not attempt.current.may_begin():
        return attempt.report(not_begun(attempt.task))
    began, current = time.perf_counter(), attempt.current
    token, process = current.enter(), os.getpid()
    try:
        if current.within is None:
            ended = ended_by(attempt.task, attempt.call)
        else:
            ended = current.within(partial(ended_by, attempt.task, attempt.call))
    except Exception as problem:  # from the transaction around the handler
        ended = ended_by(attempt.task, partial(_raise, problem))
    finally:
        current.leave(token)
    _end_if_forked(process, attempt, ended)
    paces.note(attempt.task, time.perf_counter() - began)
    return attempt.report(ended)


def _end_if_forked(process: int, attempt: HandlerCall, ended: AttemptEnd) -> None:
    """Ends this process if the handler has forked it: only the one in which it was called may go
    on to decide, and report. The other one has the same name and the same claims."""
    if os.getpid() != process:
        task, id, how = attempt.task.name, attempt.current.id, ended.reason or "it returned"
        log.warning("task %s (%s): a process that it has forked ends here: %s", task, id, how)
        os._exit(ended.error is not None)


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
    """One event loop for all `async def` handlers.

    As long as no handler has waited for anything on it, the deciding thread runs it, for some
    handlers at a time (`call_here`). From then on it has a thread of its own.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self.has_thread, self._making = False, threading.Lock()
        self._runs = threading.Lock()  # held by the thread that runs the loop
        self._waiting: deque[HandlerCall] = deque()
        self._running: dict[Current, asyncio.Task[None]] = {}
        self._probe: LoopProbe | None = None

    def start(self, attempt: HandlerCall) -> None:
        """Queues an attempt for the loop's own thread.

        Raises `RuntimeError` if it has none, and none can be had: then nothing was queued.
        """
        self._have_thread()
        self._waiting.append(attempt)
        # If others are queued before this one, the loop was told already, and finds this one too.
        if len(self._waiting) == 1:
            self._opened().call_soon_threadsafe(self._begin)

    def call_here(self, attempts: Sequence[HandlerCall]) -> None:
        """Runs handlers in the calling thread, each until it ends or waits for something.

        If one waits, or held its thread up, the loop has a thread of its own from then on.
        """
        if self.has_thread or not self._runs.acquire(blocking=False):
            for attempt in attempts:
                self.start(attempt)
            return
        began, loop, ended = time.perf_counter(), self._opened(), False
        try:
            running = [self._begin_one(attempt) for attempt in attempts]
            loop.call_soon(loop.stop)
            loop.run_forever()
            ended = all(each.done() for each in running)
        except (SystemExit, KeyboardInterrupt):  # of what a handler has started on the side
            pass
        finally:
            self._runs.release()
        held_up = time.perf_counter() - began > PATIENCE_S
        if not ended or held_up or _has_more(loop):
            self._have_thread()

    def cancel(self, current: Current) -> None:
        """Cancels an attempt: its handler, if it waits, and otherwise as soon as it does."""
        current.give_up()
        if self._loop and self.has_thread:  # otherwise it is closed, and all are cancelled
            self._loop.call_soon_threadsafe(
                lambda: self._running[current].cancel() if current in self._running else None
            )

    def close(self) -> None:
        """Stops the event loop; its thread cancels the handlers that still run."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        if self.has_thread:
            loop.call_soon_threadsafe(loop.stop)
        elif self._runs.acquire(blocking=False):
            loop.close()

    def lag_s(self) -> float | None:
        """Returns how long the event loop takes to answer; None if it has no thread.

        If it has not answered the last question yet, no new one is asked: it has been blocked since
        then.
        """
        loop = self._loop
        if loop is None or not self.has_thread:
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
                self._begin_one(attempt)
            self._waiting.popleft()

    def _begin_one(self, attempt: HandlerCall) -> asyncio.Task[None]:
        running = self._opened().create_task(self._attempt(attempt))
        self._running[attempt.current] = running
        running.add_done_callback(partial(self._ended, attempt.current))
        return running

    def _ended(self, current: Current, running: asyncio.Task[None]) -> None:
        del self._running[current]

    async def _attempt(self, attempt: HandlerCall) -> None:
        """Runs one handler. Never raises: a SystemExit in the event loop would end all handlers."""
        if not attempt.current.may_begin():
            return attempt.report(not_begun(attempt.task))
        token, process = attempt.current.enter(), os.getpid()
        try:
            value = await attempt.call()
            ended = ended_by(attempt.task, lambda: value)
        except BaseException as problem:
            ended = ended_by(attempt.task, partial(_raise, problem))
        finally:
            attempt.current.leave(token)
        _end_if_forked(process, attempt, ended)
        attempt.report(ended)

    def _opened(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop

    def _have_thread(self) -> None:
        """Gives the loop a thread of its own, which begins when no other runs the loop."""
        with self._making:
            if not self.has_thread:
                keep_running = partial(self._keep_running, self._opened())
                threading.Thread(target=keep_running, daemon=True, name="async tasks").start()
                self.has_thread = True

    def _keep_running(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._runs:
            _keep_running(loop)


def _has_more(loop: asyncio.AbstractEventLoop) -> bool:
    """Returns whether something is left to do on a loop that does not run.

    A handler may have ended and left a task or a timer behind. Loops of other makes do not tell of
    their timers.
    """
    timers: Iterable[asyncio.TimerHandle] = getattr(loop, "_scheduled", [])
    return bool(asyncio.all_tasks(loop)) or any(not timer.cancelled() for timer in timers)


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
