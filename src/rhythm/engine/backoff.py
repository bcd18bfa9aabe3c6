"""When a failed attempt is tried again: exponential backoff with full jitter and a ceiling."""

from __future__ import annotations

from typing import Any

from rhythm.record import Record

CEILING_S = 300.0  # of delays that grow: a first delay that is longer stays as it is


class Backoff(Record):
    """The delays before the retries of a task.

    The delay before retry k is a random part of `initial_s * factor**(k - 1)`, or of `max_s` if
    that is less. Without jitter it is all of that. Without `max_s`, it is `CEILING_S`, or the first
    delay if that is longer.
    """

    initial_s: float = 1.0
    factor: float = 2.0
    max_s: float | None = None
    jitter: bool = True

    def delay_s(self, failures: int, random: float) -> float:
        """Returns the delay after this many failures; `random` is a number from 0 to 1."""
        most = max(CEILING_S, self.initial_s) if self.max_s is None else self.max_s
        ceiling = min(most, self.initial_s * self.factor ** min(failures - 1, 64))
        return ceiling * random if self.jitter else ceiling


def backoff_of(options: dict[str, Any], initial_s: float | None) -> Backoff:
    """Returns the backoff that a call asks for, or else the task's own (`initial_s`).

    If only the first delay is given, there is no jitter. If nothing is given, it is the default,
    with jitter.
    """
    given = options.get("backoff", None if initial_s is None else {"initial_s": initial_s})
    if given is None:
        return Backoff()
    return (
        Backoff(**given)
        if len(given) > 1 or "initial_s" not in given
        else Backoff(given["initial_s"], jitter=False)
    )
