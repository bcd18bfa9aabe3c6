"""Every way a handler can end, as one value: a result, an error, a wish to be tried later."""

from __future__ import annotations

import os
import sysconfig
import traceback
from collections.abc import Callable
from typing import Any

from rhythm.errors import RetryLater, TaskFailed
from rhythm.record import Record
from rhythm.vm.values import json_problem
from rhythm.worker.handlers import Task

_NOT_THE_USERS = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), os.path.dirname(os.path.dirname(__file__)), "<")


class Ended(Record):
    """How an attempt ended: with a value, or with an error that may be worth another attempt."""

    value: Any = None
    error: dict[str, Any] | None = None
    retry: bool = False
    frames: tuple[str, ...] = ()  # where in the user's Python it was raised, outermost first
    delay_s: float | None = None  # the handler asked to be tried again after this long: not a failure

    @property
    def reason(self) -> str:
        """The error in a few words, with the line of Python behind it."""
        place = f" ({self.frames[-1].partition(' in ')[0]})" if self.frames else ""
        return f"{self.error['message'] if self.error else ''}{place}"


def ended_by(task: Task[..., Any], call: Callable[[], Any]) -> Ended:
    """Calls the handler; never raises."""
    try:
        value = call()
    except TaskFailed as failure:
        data = None if json_problem(failure.data) else failure.data
        return Ended(error={"code": failure.code, "message": failure.message, "data": data})
    except RetryLater as later:
        return Ended(error=task_error(task.name, str(later)), retry=True, delay_s=later.delay_s)
    except BaseException as problem:  # a handler may raise anything, SystemExit too: it is that task's failure, never ours
        return Ended(error=task_error(task.name, str(problem), type(problem).__name__), retry=True, frames=_frames(problem))
    if wrong := json_problem(value):
        return Ended(error=task_error(task.name, f"its result cannot be stored: {wrong}", "InvalidResult"))
    return Ended(value)


def task_error(name: str, message: str, type: str | None = None) -> dict[str, Any]:
    """The error of a task that failed for good, as `catch (e)` sees it."""
    told = f"{type}: {message}" if type and message else type or message
    return {"code": "TaskFailed", "message": f"task `{name}` failed: {told}", "data": {"task": name, "type": type}}


def _frames(problem: BaseException) -> tuple[str, ...]:
    """The lines of the user's own code that led to the exception, after those that led to its cause."""
    cause = problem.__cause__ or (None if problem.__suppress_context__ else problem.__context__)
    before = (*_frames(cause), f"{type(cause).__name__}: {cause}") if cause else ()
    stack = traceback.extract_tb(problem.__traceback__)
    own = [frame for frame in stack if not frame.filename.startswith(_NOT_THE_USERS)]
    shown = [f"{_short(frame.filename)}:{frame.lineno} in {frame.name}: {frame.line}" for frame in own or stack[-1:]]
    return (*before, *shown)


def _short(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
