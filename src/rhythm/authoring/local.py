"""Running the body of a workflow in CPython, for debugging: nothing is stored, tasks are called."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from rhythm.errors import TaskFailed

# Set while a body runs here: signals by name, for what the body waits for.
LOCAL: ContextVar[Mapping[str, Any] | None] = ContextVar("rhythm_local", default=None)


# The functions of all tasks, for a body that awaits one by its name.
TASKS: dict[str, Callable[..., Any]] = {}


async def call_task(name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a task as a workflow's body would see it: its exception is a `TaskFailed`, too."""
    try:
        # Values reach a task, and come back, as copies: on the engine they pass through JSON.
        args, kwargs = copy.deepcopy((args, kwargs))
        made = function(*args, **kwargs)
        return copy.deepcopy(await made if inspect.isawaitable(made) else made)
    except TaskFailed:
        raise
    except Exception as problem:
        raise _also_task_failed(problem) from problem


def _also_task_failed(problem: Exception) -> Exception:
    """Returns the exception as one of its own class that `except rhythm.TaskFailed` catches."""
    cls = type(problem)
    try:
        both = type(cls.__name__, (cls, TaskFailed), {"__init__": Exception.__init__})
        made: Exception = both(*problem.args)
        made.__dict__.update(problem.__dict__, message=str(problem), code="TaskFailed", data=None)
        return made
    except TypeError:  # classes whose layouts do not fit together
        return problem
