"""The application: one object that starts workflows, asks about them, and runs them.

Its names are imported when they are first used: a command that only opens a database needs none of
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rhythm.app.application import Rhythm
    from rhythm.app.handle import Handle
    from rhythm.app.views import (
        ExecutionView,
        Page,
        QueueView,
        Start,
        TraceStep,
        WorkerView,
        WorkflowView,
    )

__all__ = [
    "ExecutionView",
    "Handle",
    "Page",
    "QueueView",
    "Rhythm",
    "Start",
    "TraceStep",
    "WorkerView",
    "WorkflowView",
]

_HOMES = {"Rhythm": "rhythm.app.application", "Handle": "rhythm.app.handle"}  # the others are views


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'rhythm.app' has no attribute {name!r}", name=name)
    import importlib

    return getattr(importlib.import_module(_HOMES.get(name, "rhythm.app.views")), name)
