"""The levels of lines of logs: names and numbers, as in Python's `logging`. Pure."""

from __future__ import annotations

from typing import Any

DEBUG, INFO, WARNING, ERROR, CRITICAL = 10, 20, 30, 40, 50
LEVELS = {"debug": DEBUG, "info": INFO, "warning": WARNING, "error": ERROR}
HIGHEST = 1000  # no level is above it
_NAMED = {**LEVELS, "exception": ERROR, "critical": CRITICAL}


def level_of(named: Any) -> int | None:
    """Returns a level by its name or number; None if it is no level."""
    if isinstance(named, str):
        found = _NAMED.get(named.lower())
        digits = named.isascii() and named.isdigit() and len(named) <= len(str(HIGHEST))
        named = int(named) if found is None and digits else found
    whole = isinstance(named, int) and not isinstance(named, bool)
    return named if whole and 0 <= named <= HIGHEST else None


def level_name(level: int) -> str:
    """Returns the highest named level that a number reaches; the lowest, if it reaches none."""
    reached = [name for name, least in LEVELS.items() if level >= least]
    return "critical" if level >= CRITICAL else reached[-1] if reached else "debug"
