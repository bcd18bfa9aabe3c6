"""Quick tasks: `def` handlers that the deciding thread calls itself, between two rounds.

To hand a call to another thread and to take its answer back costs more than a short handler does,
in processor time and, for a workflow alone, in time. So a task whose attempts are short stays in
the thread that decides. A handler may take long all the same, or wait for what this very worker has
yet to do. Then another thread takes over deciding, and the one that is held up ends with its call.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rhythm.worker.ended import not_begun
from rhythm.worker.handlers import Task

if TYPE_CHECKING:
    from rhythm.worker.executor import HandlerCall

QUICK_S = 0.0002  # an attempt that takes no longer is short
PATIENCE_S = 0.02  # an attempt that takes longer holds the deciding thread up
BATCH_S = 0.005  # after so long, the next round comes before further calls
MAX_TOGETHER = 20  # calls that the event loop gets at once, since to run it costs more than they do
# What an attempt counts, and from how many points on its task is quick. One that held the deciding
# thread up takes its task down to MIN_POINTS.
POINTS_SHORT, POINTS_LONG, QUICK_POINTS, MAX_POINTS, MIN_POINTS = 1, -10, 20, 100, -1000
UNWATCHED_S = 1.0  # the watch sleeps after so long without calls


class Paces:
    """Which tasks are quick, by what their latest attempts took. Any thread may note one."""

    def __init__(self) -> None:
        # By name, with the task: one that is defined anew begins anew.
        self._points: dict[str, tuple[Task[..., Any], int]] = {}

    def is_quick(self, task: Task[..., Any]) -> bool:
        """Returns whether the attempts at this task are short, and need no transaction."""
        return self._of(task) >= QUICK_POINTS and not task.transactional

    def note(self, task: Task[..., Any], took_s: float) -> None:
        """Notes how long an attempt took."""
        points = self._of(task) + (POINTS_SHORT if took_s <= QUICK_S else POINTS_LONG)
        if took_s > PATIENCE_S:
            points = MIN_POINTS
        self._points[task.name] = task, max(MIN_POINTS, min(points, MAX_POINTS))

    def _of(self, task: Task[..., Any]) -> int:
        noted, points = self._points.get(task.name, (task, 0))
        return points if noted is task else 0


class QuickCalls:
    """The calls that the deciding thread makes itself.

    `run` makes one call, or several of the event loop. `others` takes a call to another thread.
    `take_over` makes another thread decide; it may raise `RuntimeError` if there is none to be had,
    and is asked again then.
    """

    def __init__(
        self,
        run: Callable[[list[HandlerCall]], None],
        others: Callable[[HandlerCall], object],
        take_over: Callable[[], object],
    ) -> None:
        self._run, self._others, self._take_over = run, others, take_over
        self._waiting: deque[HandlerCall] = deque()
        # Held while it is settled who decides, and never during a call.
        self._lock = threading.Lock()
        self._batch: object | None = None  # the calls under way, as long as their thread decides
        self._began = 0.0  # when the current call began, or the last batch ended
        self._needed = threading.Event()  # set while the watch is needed, and to end it
        self._closed = False
        self._watch: threading.Thread | None = None

    def add(self, call: HandlerCall) -> None:
        """Queues a call for `run`.

        Raises `RuntimeError` if no thread can be had that watches over the calls.
        """
        if self._watch is None:
            watch = threading.Thread(target=self._keep_watch, name="rhythm quick", daemon=True)
            watch.start()
            self._watch = watch
        self._waiting.append(call)

    def run(self) -> bool:
        """Makes the calls that wait. Returns whether the calling thread still decides."""
        if not self._waiting:
            return True
        batch = object()
        until = self._begin(batch) + BATCH_S
        while calls := self._next(batch, until):
            self._run(calls)
        with self._lock:
            decides = self._batch is batch
            if decides:
                self._batch = None
        return decides

    def close(self) -> None:
        """Ends the watch."""
        self._closed = True
        self._needed.set()

    def _begin(self, batch: object) -> float:
        """Begins a batch, and has it watched; the watch is told once for many batches."""
        with self._lock:
            self._batch, self._began = batch, time.perf_counter()
            if not self._needed.is_set():
                self._needed.set()
            return self._began

    def _next(self, batch: object, until: float) -> list[HandlerCall]:
        """Returns what is called next of a batch: one handler, or some of the event loop; nothing
        if it is over, or another thread decides."""
        with self._lock:
            now, waiting = time.perf_counter(), self._waiting
            if self._batch is not batch or now >= until or not waiting:
                return []
            self._began = now
            calls = [waiting.popleft()]
            while calls[0].task.is_async and self._fits(calls):
                calls.append(waiting.popleft())
            return calls

    def _fits(self, calls: list[HandlerCall]) -> bool:
        """Returns whether the next call may go to the event loop together with these."""
        more = bool(self._waiting) and self._waiting[0].task.is_async
        return more and len(calls) < MAX_TOGETHER

    # the watch

    def _keep_watch(self) -> None:
        while self._needed.wait() and not self._closed:
            time.sleep(PATIENCE_S)
            self._check()

    def _check(self) -> None:
        """Lets another thread decide if a call holds up the one that does."""
        with self._lock:
            since_s = time.perf_counter() - self._began
            if self._batch is None:
                if since_s > UNWATCHED_S and not self._closed:
                    self._needed.clear()
                return
            if since_s <= PATIENCE_S:
                return
            try:
                self._take_over()
            except RuntimeError:
                return
            self._batch = None
            held_back = list(self._waiting)
            self._waiting.clear()
        for call in held_back:
            self._pass_on(call)

    def _pass_on(self, call: HandlerCall) -> None:
        try:
            self._others(call)
        except RuntimeError:  # no more threads can be had
            call.current.give_up()
            call.report(not_begun(call.task, PATIENCE_S))
