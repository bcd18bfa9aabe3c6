"""Finds out whether a parked workflow could go on, and so should not be parked: for the sweeper.

It should never find anything. What it finds is a lost wake, which is a bug, or rows that somebody
has deleted by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rhythm.engine.inputs import inputs_of
from rhythm.errors import InvalidProgram
from rhythm.ir.awaiting import Plan, has_timer, is_loop, leaves, size_of, taken_count
from rhythm.ir.program import Program
from rhythm.limits import DEFAULT_LIMITS
from rhythm.store.interfaces.messages import Mail
from rhythm.store.interfaces.turns import ChildOutcome, Loaded
from rhythm.vm.awaits import Reserved, next_completed, resolve
from rhythm.vm.interpreter import Suspended, advance
from rhythm.vm.machine import Machine
from rhythm.vm.snapshot import Snapshot, decode_snapshot


def snapshot_of(row: Loaded) -> Snapshot | None:
    """Returns the snapshot of a workflow; None if it cannot be read.

    The worker that takes its next turn deals with that.
    """
    try:
        return decode_snapshot(row.snapshot) if row.snapshot else Snapshot()
    except InvalidProgram:
        return None


def could_go_on(
    loaded: Loaded,
    program: Program,
    snapshot: Snapshot,
    outcomes: Iterable[ChildOutcome],
    mail: Iterable[Mail],
) -> bool:
    """Returns whether a turn would change anything; the turn is computed and thrown away."""
    if (loaded.timed_out and not snapshot.cancelled) or loaded.owned != "[]":
        return True
    turn = advance(program, snapshot, inputs_of(loaded, snapshot, outcomes, mail, "", loaded.now))
    return not (isinstance(turn, Suspended) and turn.snapshot is snapshot)


def is_due(
    loaded: Loaded, snapshot: Snapshot, outcomes: Iterable[ChildOutcome], mail: Iterable[Mail]
) -> bool:
    """Returns whether there is a turn to take, without running its program.

    That is so if what the workflow awaits has happened, or if it is to end.
    """
    if snapshot.awaiting is None or (loaded.ending and not snapshot.cancelled):
        return True
    inputs = inputs_of(loaded, snapshot, outcomes, mail, "", loaded.now)
    return has_come(Machine(snapshot, inputs, DEFAULT_LIMITS), snapshot.awaiting)


def has_come(machine: Machine, plan: Plan) -> bool:
    """Returns whether what is awaited has ended; in a loop over `completed`, the next item."""
    if is_loop(plan):
        return taken_count(plan) == size_of(plan) or next_completed(machine, plan)[1] is not None
    return resolve(machine, plan, Reserved()) is not None


def timers_of(plan: Plan | None) -> Iterator[int]:
    """Yields the numbers of the timers that are awaited.

    A timer that was started earlier and is awaited by its id is not among them: its plan does not
    say what it is.
    """
    return (leaf["n"] for leaf in leaves(plan) if has_timer(leaf))


def waits_of(plan: Plan | None) -> list[Plan]:
    """Returns what an execution awaits, one by one, without the groups around it."""
    return list(leaves(plan))
