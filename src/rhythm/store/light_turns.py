"""Which turns are light: their owner just goes on with tasks of its own. Pure.

Most turns are. They need no lock but the claim of their owner, so each database has a short way for
them.
"""

from __future__ import annotations

from operator import attrgetter

from rhythm.store.blobs import is_large
from rhythm.store.interfaces.turns import TurnCommit

# What is written of a light turn. Whatever a turn has besides these takes the full way: a field
# that is added to `TurnCommit` is never lost here, it makes turns slow until the short way writes
# it.
LIGHT_COLUMNS = (
    "id",
    "seq",
    "fence",
    "status",
    "worker",
    "cause",
    "statement",
    "snapshot",
    "owned",
    "awaiting",
)
# the answer tells the wakes that there are
LIGHT_FIELDS = frozenset((*LIGHT_COLUMNS, "done", "end", "wakes"))
_OTHERS = tuple(name for name in TurnCommit._fields if name not in LIGHT_FIELDS)
_others_of = attrgetter(*_OTHERS)
_UNUSED = _others_of(TurnCommit)  # their defaults


def is_light(turn: TurnCommit) -> bool:
    """Whether its owner just goes on: nothing but its context and finished rows is written."""
    fits = turn.owned is not None and not is_large(turn.snapshot)
    return turn.end == "own" and fits and _others_of(turn) == _UNUSED
