"""The attempts at tasks that run beside the worker's main thread, each with its time limit.

The answer of an attempt that was given up is ignored.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from rhythm.durations import show_duration
from rhythm.worker.current import Current
from rhythm.worker.ended import AttemptEnd, not_begun
from rhythm.worker.handlers import Task

log = logging.getLogger("rhythm.worker")
NOT_BEGUN_S = 1.0  # delay before a task that could not be begun is tried again


class RunsHandlers(Protocol):
    """Runs handlers. It calls `report` once for each, from any thread."""

    def start(
        self,
        task: Task[..., Any],
        inputs: Any,
        current: Current,
        report: Callable[[AttemptEnd], None],
    ) -> Callable[[], object]:
        """Starts an attempt. Returns a function that cancels it, as far as that is possible."""

    def is_quick(self, task: Task[..., Any]) -> bool:
        """Returns whether an attempt at this task is expected to end before the next round."""

    def close(self) -> None:
        """Stops what runs handlers; called when the worker has ended."""


class Attempt:
    """One attempt at a task that is running here."""

    def __init__(
        self,
        id: str,
        task: Task[..., Any],
        inputs: Any,
        options: Mapping[str, Any],
        number: int,
        began: float,
    ) -> None:
        self.id, self.task, self.inputs, self.options = id, task, inputs, options
        self.number, self.began = number, began
        self.timeout_s: float | None = options.get("timeout_s", task.timeout_s)
        self.current = Current(id, task.name, number, self.timeout_s)
        self.cancel: Callable[[], object] = lambda: None
        self.over = False


class Attempts:
    """The attempts that are running here, and the ends that were not collected yet."""

    def __init__(self, handlers: RunsHandlers, now: Callable[[], float]) -> None:
        self.handlers, self.now = handlers, now
        self.running: dict[str, Attempt] = {}
        self._inbox: queue.SimpleQueue[tuple[Attempt, AttemptEnd] | None] = queue.SimpleQueue()

    def start(self, attempt: Attempt) -> None:
        """Begins an attempt.

        If it cannot be begun, for example because no more threads can be had, it ends so that the
        task is put back: another worker may be able to run it.
        """
        self.running[attempt.id] = attempt
        try:
            attempt.cancel = self.handlers.start(
                attempt.task,
                attempt.inputs,
                attempt.current,
                lambda ended: self._inbox.put((attempt, ended)),
            )
        except (RuntimeError, MemoryError, OSError):
            log.exception("task %s (%s) could not be begun", attempt.id, attempt.task.name)
            attempt.current.give_up()
            self._inbox.put((attempt, not_begun(attempt.task, NOT_BEGUN_S)))

    def is_quick(self, task: Task[..., Any]) -> bool:
        """Returns whether an attempt at this task is expected to end before the next round."""
        return self.handlers.is_quick(task)

    def stop(self, id: str) -> None:
        """Gives an attempt up; its answer is ignored."""
        attempt = self.running.pop(id, None)
        if attempt:
            attempt.over = True
            attempt.cancel()

    def give_up(self) -> None:
        """Stops all attempts. For threads other than the worker's main thread.

        The main thread hears from the heartbeat that the worker has lapsed, and forgets them then.
        """
        for attempt in list(self.running.values()):
            attempt.over = True
            attempt.cancel()

    def wake(self) -> None:
        """Ends the current wait of `ended`, or the next one."""
        self._inbox.put(None)

    def ended(self, wait_s: float = 0.0) -> list[tuple[Attempt, AttemptEnd]]:
        """Returns the attempts that have ended or run out of time.

        If there are none, it waits for the first one, for `wait_s` at most. An answer counts,
        however late it is collected: only an attempt that has not answered can run out of time.
        """
        woken, answers = self._answers(0.0)
        found = self._taken(answers) or self._late()
        # `wake` was called because something came after the caller had looked for work.
        if found or woken:
            return found
        _, answers = self._answers(wait_s)
        return [*self._taken(answers), *self._late()]

    def _taken(
        self, answers: Sequence[tuple[Attempt, AttemptEnd]]
    ) -> list[tuple[Attempt, AttemptEnd]]:
        """Returns the answers of attempts that were not given up; these run no more."""
        found = []
        for attempt, ended in answers:
            if not attempt.over:
                attempt.over = True
                self.running.pop(attempt.id, None)
                found.append((attempt, ended))
        return found

    def _answers(self, wait_s: float) -> tuple[bool, list[tuple[Attempt, AttemptEnd]]]:
        """Returns whether `wake` was called, and what was reported."""
        taken: list[tuple[Attempt, AttemptEnd] | None] = []
        with suppress(queue.Empty):
            taken.append(
                self._inbox.get(timeout=wait_s) if wait_s > 0 else self._inbox.get_nowait()
            )
            while True:
                taken.append(self._inbox.get_nowait())
        return None in taken, [answer for answer in taken if answer is not None]

    def _late(self) -> list[tuple[Attempt, AttemptEnd]]:
        """Stops the attempts that are over their time limit, and returns them."""
        now = self.now()
        late = [
            attempt
            for attempt in self.running.values()
            if attempt.timeout_s is not None and now >= attempt.began + attempt.timeout_s
        ]
        for attempt in late:
            self.stop(attempt.id)
        return [(attempt, AttemptEnd(error=_timeout(attempt), retry=True)) for attempt in late]


def _timeout(attempt: Attempt) -> dict[str, Any]:
    took = show_duration(attempt.timeout_s or 0.0)
    return {
        "code": "Timeout",
        "message": f"task `{attempt.task.name}` took longer than {took}",
        "data": None,
    }
