"""How many executions may be live in one family: below one root, and below one workflow.

A limit is on live executions, not on all that ever were: a workflow that starts children for years
is no fork bomb. Counting them in every turn would make the turns of one family wait for each other.
So starts are counted instead, and of small turns only samples. Only where that count goes over the
limit are the live executions counted, and their number is the count from then on.
"""

from __future__ import annotations

from zlib import crc32

from rhythm.limits import Limits
from rhythm.store.interfaces.turns import TurnCommit

# At least so many samples of a full family: a family may exceed its limit by about a tenth.
SAMPLES = 100
# A family that was too large is counted again after this time at the earliest.
COUNT_EVERY_US = 10_000_000


def room(turn: TurnCommit, limits: Limits) -> Limits:
    """Returns the limits for a turn.

    An execution that is over a limit may start one fan-out more, in its `finally` blocks.
    """
    if not turn.cleanup:
        return limits
    more = limits.fan_out
    return limits.replace(children=limits.children + more, family=limits.family + more)


def counted(turn: TurnCommit, limits: Limits) -> int:
    """Returns what a turn adds to the count of its family.

    Of turns that start few executions, one in many counts for all of them. Which one depends only
    on the turn, so a turn that is sent twice counts the same.
    """
    step, starts = max(1, limits.family // SAMPLES), len(turn.starts)
    if starts >= step:
        return starts
    return step if crc32(f"{turn.id}#{turn.seq}".encode()) % step < starts else 0


def may_have_many(turn: TurnCommit, limits: Limits) -> bool:
    """Returns whether a workflow may have more live children than allowed: its child numbers are
    above the limit.

    The live ones may be fewer, so they must be counted.
    """
    return bool(turn.starts) and max(new.child_no for new in turn.starts) > limits.children


def full_family(limits: Limits) -> str:
    """Returns why a turn is refused whose family is too large."""
    return (
        f"more than {limits.family:,} children are under way below the execution that all "
        f"of this began with; wait for some of them before "
        "starting more"
    )


def many_children(limits: Limits) -> str:
    """Returns why a turn is refused whose workflow has too many children."""
    return (
        f"more than {limits.children:,} children of this execution are under way; wait for "
        f"some of them before starting more"
    )
