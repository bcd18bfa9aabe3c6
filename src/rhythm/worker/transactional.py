"""A task whose own writes are committed together with its end.

That makes them exactly once, for what it writes on the connection that it is given. It runs under
the claim on its own row. If that claim is lost, or the handler fails, nothing of what it wrote is
kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rhythm.engine.rows import task_error
from rhythm.errors import StoreError
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import TaskEnd
from rhythm.worker.current import Current
from rhythm.worker.ended import AttemptEnd

RETRY_DELAY_S = 1.0  # delay of a task whose transaction had no answer


class Transactional:
    """Runs one attempt inside of its transaction. It is called in the handler's thread."""

    def __init__(self, store: Store, current: Current, end: TaskEnd) -> None:
        self.store, self.current, self.end = store, current, end
        self.ended = AttemptEnd()

    def __call__(self, attempt: Callable[[], AttemptEnd]) -> AttemptEnd:
        """Runs the attempt, and returns how it ended."""
        try:
            outcome = self.store.turns.complete_within(
                lambda connection: self._work(attempt, connection)
            )
        except StoreError as problem:
            # Whether it was committed shows when the worker commits this end: if it was, the row is
            # gone, and nothing happens.
            return AttemptEnd(
                error=task_error(self.current.task, str(problem)), retry=True, delay_s=RETRY_DELAY_S
            )
        match outcome:
            case "kept":
                return self.ended.replace(kept=True)
            case "lost":
                return self.ended.replace(lost=True)
            case "undone":
                return self.ended
            case "aborted":
                why = "a statement on its connection had failed, so nothing is kept"
                return AttemptEnd(error=task_error(self.current.task, why), retry=True)

    def _work(self, attempt: Callable[[], AttemptEnd], connection: Any) -> TaskEnd | None:
        """Runs the handler; returns the end to commit, or None to keep nothing."""
        self.current.give_connection(connection)
        self.ended = attempt()
        return self.end.replace(value=self.ended.result) if self.ended.error is None else None
