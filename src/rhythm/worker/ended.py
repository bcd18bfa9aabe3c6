"""Every way a handler can end, as one value: a result that can be stored, an error, a wish to be
tried later."""

from __future__ import annotations

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
    "<",
)
MESSAGE = 16 * 1024  # characters of what a task says
CAUSES = 10  # of an exception, shown
MAX_FRAMES, FRAME_CHARACTERS = 20, 300  # of Python, kept with an error


class AttemptEnd(Record):
    """How an attempt ended: with a result, or with an error that may be worth another attempt."""

    result: str = "null"  # as JSON text: it has passed the gate
    error: dict[str, Any] | None = None
    retry: bool = False
    frames: tuple[str, ...] = ()  # where in the user's Python it was raised, outermost first
    # the handler asked to be tried again after this long: not a failure
    delay_s: float | None = None
    kept: bool = False  # its end is committed already, with what it wrote

    @property
    def value(self) -> Any:
        """The result as the workflow sees it."""
        return load(self.result)

    @property
    def reason(self) -> str:
        """The error in a few words, with the line of Python behind it."""
        place = f" ({self.frames[-1].partition(' in ')[0]})" if self.frames else ""
        return f"{self.error['message'] if self.error else ''}{place}"


def retry_s(
    ended: AttemptEnd,
    task: Task[..., Any],
    options: Mapping[str, Any],
    attempt: int,
    rng: random.Random,
) -> float | None:
    """How long to wait before the next attempt; None if this was the last."""
    if ended.delay_s is not None:
        return ended.delay_s
    if ended.error is None or not ended.retry or attempt > options.get("retries", task.retries):
        return None
    return backoff_of(dict(options), task.backoff_s).delay_s(attempt, rng.random())


def stored_end(ended: AttemptEnd) -> tuple[StatusNumber, str]:
    """Status and value of an attempt that was the last.

    An error keeps where in the user's Python it arose, for people.
    """
    if ended.error is None:
        return COMPLETED, ended.result
    frames = [text_of(frame)[:FRAME_CHARACTERS] for frame in ended.frames[-MAX_FRAMES:]]
    return FAILED, dump_trusted({**ended.error, "frames": frames} if frames else ended.error)


def not_begun(task: Task[..., Any], delay_s: float = 0.0) -> AttemptEnd:
    """The handler was never called, since that was impossible, or its claim may be another's by
    now: this was no attempt."""
    return AttemptEnd(
        error=task_error(task.name, "it could not be begun in time"), retry=True, delay_s=delay_s
    )


def ended_by(task: Task[..., Any], call: Callable[[], Any]) -> AttemptEnd:
    """Calls the handler; never raises."""
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
    # a handler may raise anything, SystemExit too: it is that task's failure, never ours
    except BaseException as problem:
        again = not isinstance(problem, task.give_up_on)
        return AttemptEnd(
            error=task_error(task.name, text_of(problem), type(problem).__name__),
            retry=again,
            frames=_frames(problem),
        )
    try:
        return AttemptEnd(dump(value, "result"))
    except BaseException as problem:  # the gate refuses it, or its own way to become JSON is broken
        return AttemptEnd(error=task_error(task.name, text_of(problem), "InvalidResult"))


def _own_error(failure: TaskFailed) -> dict[str, Any]:
    """The error that a task made itself; what of it cannot be stored is left out, and the message
    says so."""
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
    """Whatever a task says, as text that can be stored and read."""
    try:
        text = message if isinstance(message, str) else str(message)
    except BaseException as problem:  # its own way to become text is broken
        text = f"{type(message).__name__}, which cannot be shown: {type(problem).__name__}"
    if len(text) > MESSAGE:
        text = f"{text[:MESSAGE]}… ({len(text):,} characters)"
    return (
        text.encode("utf-16", "surrogatepass")
        .decode("utf-16", "replace")
        .replace("\0", "\N{REPLACEMENT CHARACTER}")
    )


def _frames(problem: BaseException) -> tuple[str, ...]:
    """The lines of the user's own code that led to the exception, after those that led to its
    causes."""
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
