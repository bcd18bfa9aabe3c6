"""Which turns and ends of tasks are light. Pure.

Of a light turn the owner just goes on with tasks of its own. Most turns are. They need no lock but
the claim of their owner, so each database has a short way to commit them. A light end of a task is
one that concerns nothing but the task.
"""

from __future__ import annotations

from operator import attrgetter

from rhythm.ids import is_root
from rhythm.store.blobs import is_large
from rhythm.store.interfaces.turns import TaskEnd, TurnCommit
from rhythm.store.lifecycle import COMPLETED

# The columns that a light turn writes. A turn that sets any other field takes the full way. So a
# field that is added to `TurnCommit` is never lost here: it makes turns slow until the short way
# writes it.
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
    "waited_us",
)
# No part of the commit: its owner writes it afterwards.
LATER_FIELDS = ("said",)
# `wakes` is not written: the answer reports the current ones.
LIGHT_FIELDS = frozenset((*LIGHT_COLUMNS, *LATER_FIELDS, "done", "end", "wakes", "first"))
_OTHERS = tuple(name for name in TurnCommit._fields if name not in LIGHT_FIELDS)
_others_of = attrgetter(*_OTHERS)
_UNUSED = _others_of(TurnCommit)  # their defaults
# What the last turn of a workflow writes if it is light. Its tasks are left as they are.
FINISH_COLUMNS = (
    "id",
    "seq",
    "fence",
    "wakes",
    "worker",
    "cause",
    "statement",
    "awaiting",
    "value",
)
FINISH_FIELDS = frozenset(
    (*FINISH_COLUMNS, *LATER_FIELDS, "done", "end", "status", "owned", "first")
)
_unfinished_of = attrgetter(*[name for name in TurnCommit._fields if name not in FINISH_FIELDS])
_UNFINISHED = _unfinished_of(TurnCommit)


def is_light(turn: TurnCommit) -> bool:
    """Returns whether a turn is light: its owner goes on, and nothing but its context and the rows
    of finished tasks is written."""
    fits = turn.owned is not None and not is_large(turn.snapshot)
    return turn.end == "own" and fits and _others_of(turn) == _UNUSED


def is_light_finish(turn: TurnCommit) -> bool:
    """Returns whether the last turn of a workflow is light: it has completed, nobody awaits it, and
    it asks for nothing more."""
    fits = turn.end == "finish" and turn.status == COMPLETED and is_root(turn.id)
    return fits and turn.owned is None and _unfinished_of(turn) == _UNFINISHED


def is_light_end(end: TaskEnd) -> bool:
    """Returns whether the end of a task is light: it is not tried again, and has no parent to
    wake."""
    return end.retry_s is None and is_root(end.id)
