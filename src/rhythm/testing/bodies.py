"""Runs the bodies of tasks in a test: real ones beside the test, scripted ones on its clock.

The clock stands still while real bodies run. Their ends are handed to the worker in the order in
which they began, so that a run is the same every time. Only bodies that end within `TOGETHER_S` of
each other are put in order: one may wait for what another leads to. `Order` says otherwise where a
test wants to see another order.
"""

from __future__ import annotations

import atexit
import heapq
import queue
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from rhythm.durations import show_duration
from rhythm.engine.typed import TypedInputs
from rhythm.errors import RhythmError
from rhythm.testing.clock import SECOND_US, SimulatedClock
from rhythm.testing.doubles import (
    CALLS,
    CRASHES,
    HANGS,
    OWN_BODY,
    RAISES,
    RETURNS,
    Call,
    CallLog,
    Double,
    Step,
)
from rhythm.worker.current import Current
from rhythm.worker.ended import AttemptEnd, ended_by
from rhythm.worker.executor import Handlers
from rhythm.worker.handlers import Task

TOGETHER_S = 0.25  # how long a body that has ended waits for others that run
POLL_S = 0.02
Report = Callable[[AttemptEnd], None]
# Which of so many bodies that have ended is handed over first; None: all at once, in order.
Order = Callable[[int], int | None]


class Stuck(RhythmError, AssertionError):
    """A test waits for what cannot come: nothing runs, and nothing is due."""

    code = "stuck"


class Crashed(BaseException):
    """The worker is gone: nobody but the engine of the test catches this."""


class Running:
    """A real body that runs."""

    def __init__(self, began_us: int, current: Current, end: Callable[[AttemptEnd], None]) -> None:
        self.began, self.began_us = time.monotonic(), began_us
        self.current, self.end = current, end


class Bodies:
    """Runs what the worker begins, and hands over how it ended when the engine asks."""

    def __init__(
        self,
        clock: SimulatedClock,
        calls: CallLog,
        doubles: Mapping[str, Double],
        order: Order,
        patience_s: float,
    ) -> None:
        """`patience_s`: how long a body may really run while the clock stands still."""
        self._clock, self._calls, self._doubles, self._order = clock, calls, doubles, order
        self._patience_s = patience_s
        self._number = 0  # of the last body that began
        self._running: dict[int, Running] = {}
        self._reported: queue.SimpleQueue[tuple[int, AttemptEnd]] = queue.SimpleQueue()
        # What ends by the clock: when, the number of the body, and what is done then.
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        # What has ended, and the worker does not know yet.
        self._ended: list[tuple[int, Callable[[], None]]] = []

    # for the worker

    def start(
        self, task: Task[..., Any], inputs: Any, current: Current, report: Report
    ) -> Callable[[], object]:
        """Begins an attempt. Returns a function that cancels it."""
        self._number += 1
        number = self._number
        call = Call(task.name, current.id, inputs, current.attempt, self._clock.now())
        self._calls.made.append(call)
        double = self._doubles.get(task.name)
        step = double.next_step() if double else OWN_BODY

        def end(ended: AttemptEnd) -> None:
            """Plans when the worker hears of the end."""
            at = self._clock.us() + int(step.takes_s * SECOND_US)
            heapq.heappush(self._agenda, (at, number, lambda: _report(call, report, ended)))

        if step.kind == CRASHES:
            raise Crashed
        if step.kind in (RETURNS, RAISES):
            end(_scripted(task, inputs, step))
        elif step.kind != HANGS:
            body = task.with_body(step.value) if step.kind == CALLS else task
            self._running[number] = Running(self._clock.us(), current, end)
            cancel = _handlers().start(
                body, inputs, current, lambda ended: self._reported.put((number, ended))
            )
            return lambda: self._forget(number, cancel)
        return lambda: self._forget(number, current.give_up)

    def is_quick(self, task: Task[..., Any]) -> bool:
        """Returns False: every turn of a test is committed before anything follows from it."""
        return False

    def close(self) -> None:
        """Does nothing: what runs bodies is shared by all tests of the process."""

    def _forget(self, number: int, cancel: Callable[[], object]) -> None:
        cancel()
        self._running.pop(number, None)
        self._agenda = [each for each in self._agenda if each[1] != number]
        heapq.heapify(self._agenda)

    # for the engine

    @property
    def due_us(self) -> int | None:
        """When the next body ends by the clock; None: none does."""
        return self._agenda[0][0] if self._agenda else None

    def deliver(self) -> bool:
        """Hands over what has ended, and waits for real bodies that run.

        Returns whether anything was handed over, or the clock moved.
        """
        late = self._wait_for_real()
        while self._agenda and self._agenda[0][0] <= self._clock.us():
            _, number, hand_over = heapq.heappop(self._agenda)
            self._ended.append((number, hand_over))
        self._ended.sort(key=lambda each: each[0])
        count = len(self._ended)
        first = self._order(count) if count > 1 else None
        now = self._ended if first is None else [self._ended.pop(first)]
        self._ended = [] if first is None else self._ended
        for _, hand_over in now:
            hand_over()
        return bool(now) or late

    def abandon(self) -> None:
        """Waits until no real body runs any more, and forgets how they ended: the worker died.

        So the next worker does not begin while the body of a dead one still runs. A body that
        does not end soon, since it waits to be cancelled, is cancelled.
        """
        limit = time.monotonic() + 4 * TOGETHER_S
        while self._running and time.monotonic() < limit:
            self._collect(POLL_S)
        for running in self._running.values():
            running.current.give_up()
        self._running.clear()
        self._agenda.clear()
        self._ended.clear()

    def _wait_for_real(self) -> bool:
        """Waits for the first real body to end, and then a moment for the others.

        Returns whether one is over its timeout: then the clock has moved.
        """
        if not self._running:
            return False
        count, began = len(self._running), time.monotonic()
        while self._running:
            self._collect(POLL_S)
            if self._late():
                return True
            some = len(self._running) < count or self._agenda or self._ended
            waited_s = time.monotonic() - began
            if some and waited_s >= TOGETHER_S:
                break
            if waited_s >= self._patience_s:
                raise Stuck(self._too_long(waited_s))
        return False

    def _collect(self, wait_s: float) -> None:
        """Takes what was reported, and waits for it if nothing was."""
        with suppress(queue.Empty):
            number, ended = self._reported.get(timeout=wait_s)
            while True:
                if running := self._running.pop(number, None):  # else it was given up
                    running.end(ended)
                number, ended = self._reported.get_nowait()

    def _too_long(self, waited_s: float) -> str:
        names = ", ".join(sorted({f"`{each.current.task}`" for each in self._running.values()}))
        return (
            f"the body of {names} has run for {show_duration(round(waited_s))}, and the clock of "
            f"the test stands still meanwhile: does it wait for something that comes later? "
            f"Replace it by env.task(…).hangs() or .returns(…, takes=…), or give it more time: "
            f"Env(patience=…)"
        )

    def _late(self) -> bool:
        """Moves the clock if a body really took longer than it may: the worker gives it up then."""
        now, moved = time.monotonic(), False
        for running in self._running.values():
            timeout_s = running.current.timeout_s
            if timeout_s is not None and now - running.began >= timeout_s:
                self._clock.move_to(running.began_us + int(timeout_s * SECOND_US) + 1)
                moved = True
        return moved


@cache
def _handlers() -> Handlers:
    """Returns what runs the bodies of all tests: each of its own would leave idle threads."""
    made = Handlers()
    atexit.register(made.close)
    return made


def _report(call: Call, report: Report, ended: AttemptEnd) -> None:
    call.end(None if ended.error else ended.value, ended.error)
    report(ended)


def _scripted(task: Task[..., Any], inputs: Any, step: Step) -> AttemptEnd:
    """Returns how an attempt ends that does what its script says.

    Inputs that do not fit the task's hints fail it, as they do elsewhere.
    """

    def call() -> Any:
        args, kwargs = task.arguments(inputs)
        if typed := TypedInputs(task.function, task.signature):
            typed.fit(args, kwargs)
        if step.kind == RETURNS:
            return step.value
        raise step.value

    return ended_by(task, call)
