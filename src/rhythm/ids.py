"""Ids of executions: UUIDv7 in lower-case Crockford base 32, so that they sort by the time they were made.

A child's id is its parent's with a dot and its number; an id that a user chooses contains neither dot nor slash.
"""

from __future__ import annotations

from rhythm.limits import TEXTS

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
LENGTH = 26
LONGEST = TEXTS.id


def encode_id(time_ms: int, chance: int) -> str:
    """The id for a moment and at least 74 random bits."""
    number = (time_ms & (1 << 48) - 1) << 80 | 0x7 << 76 | (chance >> 62 & 0xFFF) << 64 | 0b10 << 62 | chance & (1 << 62) - 1
    return "".join(_DIGITS[number >> shift & 31] for shift in range(5 * (LENGTH - 1), -1, -5))


def child_id(parent: str, n: int) -> str:
    return f"{parent}.{n}"


def problem_with_id(id: str) -> str:
    """Why a user's own id cannot be used; empty if it can."""
    if not id or len(id) > LONGEST:
        return f"an id has 1 to {LONGEST} characters"
    if not id.isprintable() or any(c in id for c in "./ "):
        return "an id contains no dot, slash, space or control character"
    return ""
