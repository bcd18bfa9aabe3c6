"""The tasks of the jobs, as the worker processes load them."""

from __future__ import annotations

import rhythm


@rhythm.task
def note(x: int) -> int:
    return x


@rhythm.task
def same(x: int | str) -> int | str:
    """Values of any size."""
    return x
