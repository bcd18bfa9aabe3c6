"""Which values an option may have: limits that compilers check and the interpreter enforces.

What a compiler lets pass, a database runs; so both read them here.
"""

from __future__ import annotations

# Whole numbers: the least and the greatest.
WHOLE: dict[str, tuple[int, int]] = {
    "retries": (0, 1_000_000),
    "priority": (-32768, 32767),
    "quorum": (1, 1_000_000),
    "need": (1, 1_000_000),
    "concurrency": (1, 1_000_000),
}
FACTOR = (1, 100)  # of `backoff`
BACKOFF = frozenset({"initial", "factor", "max", "jitter"})
STAGE = frozenset({"role", "after", "timeout"})  # the keys of a stage of `escalate`
# Options that people expect, and what there is in their place.
INSTEAD = {
    "key": "leave it out: in a task, rhythm.current().idempotency_key is the same for all attempts",
    "id": "leave it out: a child has the id of its parent and a number",
}


def is_whole(value: object) -> bool:
    """Whether the value is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def whole_problem(option: str, value: object) -> str:
    """Says why the value cannot be this option, which is a whole number; empty if it can."""
    least, most = WHOLE[option]
    if is_whole(value) and least <= value <= most:  # type: ignore[operator]  # a whole number
        return ""
    return f"`{option}` is a whole number from {least:,} to {most:,}"


def is_factor(value: object) -> bool:
    """Whether the value can be the factor of a `backoff`."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and FACTOR[0] <= value <= FACTOR[1]  # type: ignore[operator]  # a number
