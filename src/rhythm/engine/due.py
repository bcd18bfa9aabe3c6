"""When what a commit has stored is due: timers, retries, ends of waits and time limits. Pure.

The worker that has set a timer knows when it fires, and need not ask the database for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from rhythm.store.interfaces.turns import TaskEnd, TurnCommit


def next_due_s(turns: Iterable[TurnCommit], ends: Iterable[TaskEnd]) -> float | None:
    """Returns in how many seconds the first thing is due that these commits store.

    None if nothing is. 0 if that cannot be told: somebody must ask the database.
    """
    retries = [end.retry_s for end in ends if end.retry_s is not None]
    waiting = [turn for turn in turns if _may_wait(turn)]
    return min(chain(retries, *map(_delays_s, waiting)), default=None)


def _may_wait(turn: TurnCommit) -> bool:
    """Returns whether anything of the turn may be due later. Of most turns nothing is."""
    return bool(
        turn.timers or turn.starts or turn.waits or turn.approvals or turn.releases or turn.begins
    )


def _delays_s(turn: TurnCommit) -> Iterator[float]:
    for timer in turn.timers:
        if timer.delay_s is None:
            yield 0.0  # at a time of the database's clock
        else:
            yield timer.delay_s
    waits = (each.timeout_s for each in turn.waits)
    approvals = (each.timeout_s for each in turn.approvals)
    for timeout_s in chain(waits, approvals):
        if timeout_s is not None:
            yield timeout_s
    for start in turn.starts:
        if start.delay_s > 0:
            yield start.delay_s
        if start.timeout_s is not None:
            yield start.delay_s + start.timeout_s
    if turn.releases or turn.begins:
        yield 0.0  # what was held back begins now: its timers, or the time that it may take
