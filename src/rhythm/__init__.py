"""Rhythm: durable workflows without replay.

Public names are imported when they are first used, so that the command line starts as fast as Python itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rhythm.errors import DuplicateTask, FlowError, InvalidProgram, RetryLater, RhythmError, TaskCancelled, TaskFailed
    from rhythm.worker.current import Current, current
    from rhythm.worker.handlers import Task, task

__version__ = "0.1.0.dev0"

__all__ = [
    "Current", "DuplicateTask", "FlowError", "InvalidProgram", "RetryLater", "RhythmError", "Task", "TaskCancelled", "TaskFailed",
    "current", "task",
]  # fmt: skip

_HOMES = {
    "Current": "rhythm.worker.current",
    "Task": "rhythm.worker.handlers",
    "current": "rhythm.worker.current",
    "task": "rhythm.worker.handlers",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'rhythm' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES.get(name, "rhythm.errors")), name)
