"""When a failed attempt is tried again: exponential backoff with full jitter and a ceiling."""

from __future__ import annotations

from typing import Any

from rhythm.record import Record


class Backoff(Record):
    """The wait before retry k is drawn from 0 to `initial_s * factor**(k - 1)`, at most `max_s`;
    without jitter it is that."""

    initial_s: float = 1.0
    factor: float = 2.0
    max_s: float = 300.0
    jitter: bool = True

    def delay_s(self, failures: int, random: float) -> float:
        """How long to wait after so many failures; `random` is a number from 0 to 1."""
        ceiling = min(self.max_s, self.initial_s * self.factor ** min(failures - 1, 64))
        return ceiling * random if self.jitter else ceiling


def backoff_of(options: dict[str, Any], initial_s: float | None) -> Backoff:
    """The backoff a call asks for, or the task's own. A plain length is that wait before the first
    retry, without jitter."""
    given = options.get("backoff", None if initial_s is None else {"initial_s": initial_s})
    if given is None:
        return Backoff()
    return (
        Backoff(**given)
        if len(given) > 1 or "initial_s" not in given
        else Backoff(given["initial_s"], jitter=False)
    )
