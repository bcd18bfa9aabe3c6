"""The attempts at tasks that run beside the thread that decides, each with its time limit.

What an attempt that was given up answers later is nobody's.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from rhythm.durations import show_duration
from rhythm.worker.current import Current
from rhythm.worker.ended import Ended, not_begun
from rhythm.worker.handlers import Task

log = logging.getLogger("rhythm.worker")
NOT_BEGUN_S = 1.0  # before a task is tried again that could not be begun


class RunsHandlers(Protocol):
    """What runs handlers. `report` is called once for each, from any thread."""

    def start(self, task: Task[..., Any], inputs: Any, current: Current, report: Callable[[Ended], None]) -> Callable[[], object]:
        """Starts an attempt; returns what cancels it, as far as that is possible."""

    def close(self) -> None: ...


class Body:
    """One attempt at a task that is running here."""

    def __init__(self, id: str, task: Task[..., Any], inputs: Any, options: Mapping[str, Any], attempt: int, began: float) -> None:
        self.id, self.task, self.inputs, self.options, self.attempt, self.began = id, task, inputs, options, attempt, began
        self.timeout_s: float | None = options.get("timeout_s", task.timeout_s)
        self.current = Current(id, task.name, attempt, self.timeout_s)
        self.cancel: Callable[[], object] = lambda: None
        self.over = False


class Bodies:
    """The attempts that are running, and those that have ended since somebody looked."""

    def __init__(self, handlers: RunsHandlers, now: Callable[[], float]) -> None:
        self.handlers, self.now = handlers, now
        self.running: dict[str, Body] = {}
        self._inbox: queue.SimpleQueue[tuple[Body, Ended] | None] = queue.SimpleQueue()

    def start(self, body: Body) -> None:
        """What cannot be begun, as where no more threads can be had, is put back: another worker may have the means."""
        self.running[body.id] = body
        try:
            body.cancel = self.handlers.start(body.task, body.inputs, body.current, lambda ended: self._inbox.put((body, ended)))
        except (RuntimeError, MemoryError, OSError):
            log.exception("task %s (%s) could not be begun", body.id, body.task.name)
            body.current.give_up()
            self._inbox.put((body, not_begun(body.task, NOT_BEGUN_S)))

    def stop(self, id: str) -> None:
        """Gives an attempt up; whatever it answers is ignored."""
        body = self.running.pop(id, None)
        if body:
            body.over = True
            body.cancel()

    def give_up(self) -> None:
        """Stops them all, from another thread than the one that decides: that is told, and forgets them in its time."""
        for body in list(self.running.values()):
            body.over = True
            body.cancel()

    def wake(self) -> None:
        """Ends a wait that is under way, or the next one."""
        self._inbox.put(None)

    def ended(self, wait_s: float = 0.0) -> list[tuple[Body, Ended]]:
        """What has ended, or run out of time; waits for the first of it if there is nothing yet. An answer counts, however late
        we come to look: only who has not answered is late."""
        woken, answers = self._answers(0.0)
        found = self._taken(answers) or self._late()
        if found or woken:  # by what came after its caller had looked for work
            return found
        _, answers = self._answers(wait_s)
        return [*self._taken(answers), *self._late()]

    def _taken(self, answers: Sequence[tuple[Body, Ended]]) -> list[tuple[Body, Ended]]:
        found = []
        for body, ended in answers:
            if not body.over:
                body.over = True
                self.running.pop(body.id, None)
                found.append((body, ended))
        return found

    def _answers(self, wait_s: float) -> tuple[bool, list[tuple[Body, Ended]]]:
        """Whether somebody has called `wake`, and what was reported."""
        taken: list[tuple[Body, Ended] | None] = []
        with suppress(queue.Empty):
            taken.append(self._inbox.get(timeout=wait_s) if wait_s > 0 else self._inbox.get_nowait())
            while True:
                taken.append(self._inbox.get_nowait())
        return None in taken, [answer for answer in taken if answer is not None]

    def _late(self) -> list[tuple[Body, Ended]]:
        now = self.now()
        late = [body for body in self.running.values() if body.timeout_s is not None and now >= body.began + body.timeout_s]
        for body in late:
            self.stop(body.id)
        return [(body, Ended(error=_timeout(body), retry=True)) for body in late]


def _timeout(body: Body) -> dict[str, Any]:
    took = show_duration(body.timeout_s or 0.0)
    return {"code": "Timeout", "message": f"task `{body.task.name}` took longer than {took}", "data": None}
