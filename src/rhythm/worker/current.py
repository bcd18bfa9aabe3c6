"""What a running task may know about itself: `rhythm.current()`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rhythm.errors import TaskCancelled
from rhythm.worker.ended import AttemptEnd

if TYPE_CHECKING:
    LoggerAdapter = logging.LoggerAdapter[logging.Logger]
else:
    LoggerAdapter = logging.LoggerAdapter

_attempt: ContextVar[Current] = ContextVar("rhythm.current")


def current() -> Current:
    """The attempt whose handler calls this. `RuntimeError` outside of one, as in a unit test that
    calls the function itself."""
    try:
        return _attempt.get()
    except LookupError:
        raise RuntimeError(
            "rhythm.current() is known only inside a task that a worker runs"
        ) from None


class Current:
    """One attempt at a task, as its handler sees it."""

    def __init__(self, id: str, task: str, attempt: int, timeout_s: float | None = None) -> None:
        self.id = id  #: of this task's execution
        self.task = task
        self.attempt = attempt  #: 1 for the first
        self.workflow_id = id.rpartition(".")[0] or None  #: of the workflow that awaits it
        self.timeout_s = timeout_s
        self.deadline: datetime | None = None  #: when this attempt is given up
        self.progress: Any = None  #: what the last heartbeat told
        # a transaction, if the task wants one
        self.within: Callable[[Callable[[], AttemptEnd]], AttemptEnd] = lambda attempt: attempt()
        # asked by whoever runs the handler, right before
        self.may_begin: Callable[[], bool] = lambda: True
        self.on_progress: Callable[[Any], None] = lambda progress: None
        self._connection: Any = None
        self._over = False

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at this task, and for no other task: pass it to whoever must
        not do a thing twice."""
        return self.id

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for this attempt any more: cancelled, over its time, or passed to
        another worker."""
        return self._over

    @property
    def log(self) -> LoggerAdapter:
        """A logger that names the execution and the attempt."""
        fields = {"execution_id": self.id, "task": self.task, "attempt": self.attempt}
        return LoggerAdapter(logging.getLogger(f"rhythm.task.{self.task}"), fields)

    @property
    def connection(self) -> Any:
        """The psycopg connection of a `transactional` task: what is written on it is committed with
        the task's end, or not at all."""
        if self._connection is None:
            raise RuntimeError(
                f"task `{self.task}` has no connection; declare it with "
                f"@rhythm.task(transactional=True)"
            )
        return self._connection

    def heartbeat(self, progress: Any = None) -> None:
        """Tells how far it is. `TaskCancelled` if nobody waits for it any more: let that pass, and
        the attempt ends."""
        if self.cancelled:
            raise TaskCancelled(f"attempt {self.attempt} at task `{self.task}` was given up")
        self.progress = progress
        self.on_progress(progress)

    # for the worker

    def give_up(self) -> None:
        self._over = True

    def give_connection(self, connection: Any) -> None:
        self._connection = connection

    @contextmanager
    def entered(self) -> Iterator[None]:
        """For as long as the handler runs, in its thread or coroutine."""
        if self.timeout_s is not None:
            self.deadline = datetime.now(UTC) + timedelta(seconds=self.timeout_s)
        token = _attempt.set(self)
        try:
            yield
        finally:
            _attempt.reset(token)
