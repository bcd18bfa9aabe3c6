"""How the call of a handler ended, as one value.

That is a result that can be stored, an error, or the wish to be tried later.
"""

from __future__ import annotations

import builtins
import os
import random
import sysconfig
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from rhythm.engine.backoff import backoff_of
from rhythm.engine.payload import dump, dump_trusted, load
from rhythm.engine.rows import task_error
from rhythm.engine.typed import Misfit
from rhythm.errors import RetryLater, TaskFailed
from rhythm.record import Record
from rhythm.store.lifecycle import COMPLETED, FAILED, StatusNumber
from rhythm.worker.handlers import Task

_NOT_THE_USERS = (
    sysconfig.get_path("stdlib"),
    sysconfig.get_path("purelib"),
    os.path.dirname(os.path.dirname(__file__)),
    os.path.join("rhythm", ""),  # how compiled modules name their sources
    "<",
)
MESSAGE = 16 * 1024  # characters of a message; the rest is cut off
CAUSES = 10  # exceptions of one chain of causes that are shown, the last one included
MAX_FRAMES, FRAME_CHARACTERS = 20, 300  # how many lines of Python an error keeps, and their length


class AttemptEnd(Record):
    """How an attempt ended: with a result, or with an error that may be worth another attempt."""

    result: str = "null"  # JSON text that `engine.payload` has checked
    error: dict[str, Any] | None = None
    retry: bool = False
    frames: tuple[str, ...] = ()  # where in the user's Python it was raised, outermost first
    # The handler asked to be tried again after this long: not a failure.
    delay_s: float | None = None
    # A transactional task: its end is committed already, with what it wrote.
    kept: bool = False
    # A transactional task: its claim was lost, so nothing of this attempt is kept, or counts.
    lost: bool = False

    @property
    def value(self) -> Any:
        """The result as the workflow sees it."""
        return load(self.result)

    @property
    def reason(self) -> str:
        """The error in a few words, with the line of Python that raised it."""
        place = f" ({self.frames[-1].partition(' in ')[0]})" if self.frames else ""
        return f"{self.error['message'] if self.error else ''}{place}"


def retry_s(
    ended: AttemptEnd,
    task: Task[..., Any],
    options: Mapping[str, Any],
    attempt: int,
    rng: random.Random,
) -> float | None:
    """Returns how long to wait before the next attempt; None if this was the last one."""
    if ended.delay_s is not None:
        return ended.delay_s
    if ended.error is None or not ended.retry or attempt > options.get("retries", task.retries):
        return None
    return backoff_of(dict(options), task.backoff_s).delay_s(attempt, rng.random())


def stored_end(ended: AttemptEnd) -> tuple[StatusNumber, str]:
    """Returns the status and the value to store for a task's last attempt.

    An error keeps the lines of the user's Python that led to it, for people to read.
    """
    if ended.error is None:
        return COMPLETED, ended.result
    frames = [text_of(frame)[:FRAME_CHARACTERS] for frame in ended.frames[-MAX_FRAMES:]]
    return FAILED, dump_trusted({**ended.error, "frames": frames} if frames else ended.error)


def not_begun(task: Task[..., Any], delay_s: float = 0.0) -> AttemptEnd:
    """Returns the end of an attempt whose handler was never called: it does not count.

    The handler could not be begun, or the claim may have passed to another worker by then.
    """
    return AttemptEnd(
        error=task_error(task.name, "it could not be begun in time"), retry=True, delay_s=delay_s
    )


def ended_by(task: Task[..., Any], call: Callable[[], Any]) -> AttemptEnd:
    """Calls the handler, and returns how that ended; never raises."""
    try:
        value = call()
    except Misfit as misfit:
        return AttemptEnd(
            error=task_error(task.name, f"input `{misfit.path}` {misfit.problem}", "InvalidInputs")
        )
    except TaskFailed as failure:
        return AttemptEnd(error=_own_error(failure))
    except RetryLater as later:
        return AttemptEnd(
            error=task_error(task.name, text_of(later)), retry=True, delay_s=later.delay_s
        )
    # A handler may raise anything, SystemExit too: that fails the task, never the worker.
    except BaseException as problem:
        again = not isinstance(problem, task.give_up_on)
        return AttemptEnd(
            error=task_error(task.name, text_of(problem), type(problem).__name__, _bases(problem)),
            retry=again,
            frames=_frames(problem),
        )
    try:
        return AttemptEnd(dump(value, "result"))
    # The value cannot be stored, or the user's own conversion to JSON has failed.
    except BaseException as problem:
        return AttemptEnd(error=task_error(task.name, text_of(problem), "InvalidResult"))


def _bases(problem: BaseException) -> list[str]:
    """Returns the names of an exception's base classes; none for Python's own exceptions.

    The bases of Python's own exceptions follow from their names.
    """
    cls = type(problem)
    if getattr(builtins, cls.__name__, None) is cls:
        return []
    return [base.__name__ for base in cls.__mro__[1:] if base not in (BaseException, object)]


def _own_error(failure: TaskFailed) -> dict[str, Any]:
    """Returns the error that a task raised as `TaskFailed`.

    A code or data that cannot be stored is left out, and the message says so.
    """
    code, data, message = failure.code, failure.data, text_of(failure.message)
    if not isinstance(code, str) or not code:
        code, message = (
            "TaskFailed",
            f"{message} (its code is not a text: {text_of(repr(code)):.80})",
        )
    try:
        data = load(dump(data, "data"))
    except BaseException as problem:
        data, message = None, f"{message} (its data cannot be stored: {text_of(problem)})"
    return {"code": text_of(code), "message": message, "data": data}


def text_of(message: object) -> str:
    """Returns the message of a task as text that can be stored and read; never raises."""
    try:
        text = message if isinstance(message, str) else str(message)
    except BaseException as problem:  # the user's own `__str__` has failed
        text = f"{type(message).__name__}, which cannot be shown: {type(problem).__name__}"
    if len(text) > MESSAGE:
        text = f"{text[:MESSAGE]}… ({len(text):,} characters)"
    return (
        text.encode("utf-16", "surrogatepass")
        .decode("utf-16", "replace")
        .replace("\0", "\N{REPLACEMENT CHARACTER}")
    )


def _frames(problem: BaseException) -> tuple[str, ...]:
    """Returns the lines of the user's own code that led to the exception.

    The lines that led to its causes come first.
    """
    causes: list[BaseException] = []
    cause: BaseException | None = problem
    while cause and len(causes) < CAUSES:
        causes.insert(0, cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    shown: list[str] = []
    for cause in causes:
        stack = traceback.extract_tb(cause.__traceback__)
        own = [frame for frame in stack if not frame.filename.startswith(_NOT_THE_USERS)]
        shown += [
            f"{_short(frame.filename)}:{frame.lineno} in {frame.name}: {frame.line}"
            for frame in own or stack[-1:]
        ]
        shown += [f"{type(cause).__name__}: {text_of(cause)}"] if cause is not problem else []
    return tuple(shown)


def _short(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
