"""How many may live in one family: below an execution that nobody else started, and below one
workflow.

A limit is on those who live, not on those who ever lived: a workflow that starts children for years
is no fork bomb. Counting them in every turn would make the turns of one family wait for each other,
so what is counted is starts, and of small turns only samples; only where that count goes over the
limit are those who live counted, and their number is the count from then on.
"""

from __future__ import annotations

from zlib import crc32

from rhythm.limits import Limits
from rhythm.store.interfaces.turns import TurnCommit

SAMPLES = 100  # of a full family, at least: a family may be larger than its limit by about a tenth
COUNT_EVERY_US = 10_000_000  # a family that was too large is not counted more often


def counted(turn: TurnCommit, limits: Limits) -> int:
    """What a turn adds to the count of its family. Of turns that start few, one in many counts for
    all of them; which one depends on nothing but the turn, so that a turn that is sent twice counts
    the same."""
    step, starts = max(1, limits.family // SAMPLES), len(turn.starts)
    if starts >= step:
        return starts
    return step if crc32(f"{turn.id}#{turn.seq}".encode()) % step < starts else 0


def may_have_many(turn: TurnCommit, limits: Limits) -> bool:
    """Whether a workflow may have more children than it may: those who live are fewer than those it
    ever started."""
    return bool(turn.starts) and max(new.child_no for new in turn.starts) > limits.children


def full_family(limits: Limits) -> str:
    return (
        f"more than {limits.family:,} children are under way below the execution that all "
        f"of this began with; wait for some of them before "
        "starting more"
    )


def many_children(limits: Limits) -> str:
    return (
        f"more than {limits.children:,} children of this execution are under way; wait for "
        f"some of them before starting more"
    )
