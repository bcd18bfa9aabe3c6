"""The testing kit: workflows run in memory, on a clock that jumps, with tasks that can be replaced.

pytest finds it by itself: a test that takes `env` gets an `Env`. Elsewhere use `with Env() as env`.

`Env` is what a test talks to. Behind it, an `Engine` drives the real worker on a real store, one
round at a time, in the thread of the test: nothing is polled, nothing really sleeps, and a run is
the same every time. `crash_everywhere` makes such engines again and again, each with a worker that
dies somewhere else.

The names are imported when they are first used: the plugin is loaded by every run of pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rhythm.testing.aio import AsyncEnv
    from rhythm.testing.bodies import Stuck
    from rhythm.testing.crashes import CrashFailure, CrashReport
    from rhythm.testing.doubles import Call, Double
    from rhythm.testing.env import Env
    from rhythm.testing.trial import Trial

__all__ = ["AsyncEnv", "Call", "CrashFailure", "CrashReport", "Double", "Env", "Stuck", "Trial"]
_HOMES = {
    "AsyncEnv": "aio",
    "Call": "doubles",
    "CrashFailure": "crashes",
    "CrashReport": "crashes",
    "Double": "doubles",
    "Env": "env",
    "Stuck": "bodies",
    "Trial": "trial",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rhythm.testing' has no attribute {name!r}", name=name)
    import importlib

    return getattr(importlib.import_module(f"rhythm.testing.{_HOMES[name]}"), name)
