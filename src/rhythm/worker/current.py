"""What a running task can know about itself: `rhythm.current()`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar, Token
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rhythm.errors import TaskCancelled
from rhythm.store.interfaces.logs import LOG
from rhythm.worker.ended import AttemptEnd
from rhythm.worker.task_log import TaskLog

if TYPE_CHECKING:
    from rhythm.worker.lines import LineBuffer, Speaker
    from rhythm.worker.task_log import LoggerAdapter

NOTHING = 10**6  # a level that no record has
_attempt: ContextVar[Current] = ContextVar("rhythm.current")


def current() -> Current:
    """Returns the attempt at a task whose handler calls this.

    Raises `RuntimeError` outside of a task that a worker runs, for example in a unit test that
    calls the function directly.
    """
    try:
        return _attempt.get()
    except LookupError:
        raise RuntimeError(
            "rhythm.current() is known only inside a task that a worker runs"
        ) from None


def running_body() -> Current | None:
    """Returns the attempt at a task whose handler calls this; None outside of one."""
    return _attempt.get(None)


class Current:
    """One attempt at a task, as its handler sees it."""

    def __init__(self, id: str, task: str, attempt: int, timeout_s: float | None = None) -> None:
        self.id = id  #: the id of this task's execution
        self.task = task  #: the name of the task
        self.attempt = attempt  #: the number of this attempt, from 1
        self.workflow_id = id.rpartition(".")[0] or None  #: the id of the workflow that awaits it
        self.timeout_s = timeout_s  #: how long this attempt may take; None: as long as it likes
        self.deadline: datetime | None = None  #: when this attempt is given up; None: never
        self.progress: Any = None  #: what the last `heartbeat` reported
        # Runs the attempt inside of a transaction, if the task is transactional.
        self.within: Callable[[Callable[[], AttemptEnd]], AttemptEnd] | None = None
        # Called right before the handler begins: whether it still may.
        self.may_begin: Callable[[], bool] = lambda: True
        self.on_progress: Callable[[Any], None] = lambda progress: None
        # Where the lines of its log go, and the fence under which it runs; None: nowhere.
        self.lines: LineBuffer | None = None
        self.fence = 0
        self.unprinted = ""  # the beginning of a line that it prints
        self._speaker: Speaker | None = None
        self._connection: Any = None
        self._over = False

    @property
    def idempotency_key(self) -> str:
        """A key that all attempts at this task share, and no other task has.

        Pass it to services that must not do the same thing twice.
        """
        return self.id

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for this attempt any more.

        That is so when it was cancelled, is over its time limit, or was passed to another worker.
        """
        return self._over

    @property
    def log(self) -> LoggerAdapter:
        """A logger whose records name the execution, the task and the attempt.

        They are also kept with the execution, from the level `log_level` on: `rhythm logs` and
        `rhythm trace` show them, whatever the process does with its own log.
        """
        fields = {"execution_id": self.id, "task": self.task, "attempt": self.attempt}
        least = NOTHING if self.lines is None else self.lines.level
        return TaskLog(logging.getLogger(f"rhythm.task.{self.task}"), fields, least, self._say)

    @property
    def connection(self) -> Any:
        """The psycopg connection of a `transactional` task.

        What the task writes on it is committed together with the end of the task, or not at all.
        Raises `RuntimeError` if the task is not transactional.
        """
        if self._connection is None:
            raise RuntimeError(
                f"task `{self.task}` has no connection; declare it with "
                f"@rhythm.task(transactional=True)"
            )
        return self._connection

    def heartbeat(self, progress: Any = None) -> None:
        """Reports how far the task is: a text, or details that have a JSON form.

        The report is kept with the execution; of many in a short time, the last.

        Raises `TaskCancelled` if nobody waits for this attempt any more. Do not catch that: it ends
        the attempt.
        """
        if self.cancelled:
            raise TaskCancelled(f"attempt {self.attempt} at task `{self.task}` was given up")
        self.progress = progress
        self.on_progress(progress)
        if progress is not None and self.lines is not None:
            self.lines.heartbeat(self._as_speaker(self.lines), progress)

    # for the worker

    def printed(self, line: str) -> None:
        """Keeps a line that the task has printed."""
        self._say(logging.INFO, line, None)

    def _say(self, level: int, message: str, fields: Any) -> None:
        if self.lines is not None:
            self.lines.add(self._as_speaker(self.lines), LOG, level, message, fields)

    def _as_speaker(self, lines: LineBuffer) -> Speaker:
        if self._speaker is None:
            self._speaker = lines.speaker(self.id, self.task, self.fence, self.attempt)
        return self._speaker

    def give_up(self) -> None:
        """Marks this attempt as one that nobody waits for any more."""
        self._over = True

    def give_connection(self, connection: Any) -> None:
        """Sets the connection of a transactional task."""
        self._connection = connection

    def enter(self) -> Token[Current]:
        """Makes this the attempt that `current()` returns, until `leave` is given the answer."""
        if self.timeout_s is not None:
            self.deadline = datetime.now(UTC) + timedelta(seconds=self.timeout_s)
        return _attempt.set(self)

    @staticmethod
    def leave(token: Token[Current]) -> None:
        """Ends what `enter` began, in the same thread or coroutine."""
        _attempt.reset(token)
