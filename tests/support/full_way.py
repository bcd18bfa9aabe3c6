"""The engine without its short ways: every commit takes the full way, one after the other, and no
handler runs in the thread that decides.

Whoever proves the protocol runs its tests with the short ways and without them.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from rhythm.store import light_turns
from rhythm.worker import executor, quick
from rhythm.worker.committer import Committer

FULL_WAY = "RHYTHM_TEST_FULL_WAY" in os.environ
NEVER = object()  # equal to nothing
short_ways = pytest.mark.skipif(FULL_WAY, reason="it is about a short way, and all are closed")


def take_full_way() -> None:
    """Closes the short ways of this process, and of those that it forks."""
    changes: list[tuple[Any, str, Any]] = [
        (light_turns, "_UNUSED", NEVER),
        (light_turns, "_UNFINISHED", NEVER),
        (light_turns, "is_root", lambda id: False),
        (quick, "QUICK_POINTS", float("inf")),
        (executor, "QuickCalls", lambda run, others, take_over: None),
        (Committer, "begin", _begin_when_asked),
    ]
    for holder, name, instead in changes:
        assert hasattr(holder, name), f"{holder} has no {name} any more: what is short there?"
        setattr(holder, name, instead)


_begin = Committer.begin


def _begin_when_asked(self: Committer, group: Any, apart: bool = False) -> bool:
    return _begin(self, group)
