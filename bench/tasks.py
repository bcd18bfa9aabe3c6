"""The tasks of the jobs, as the worker processes load them."""

from __future__ import annotations

import rhythm


@rhythm.task
def note(x: int) -> int:
    return x
