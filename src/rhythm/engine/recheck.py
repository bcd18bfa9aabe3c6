"""Whether a workflow that sleeps does so rightly: the question of the sweep, put to the interpreter
itself.

Nothing should ever come of it. What it finds is a lost wake, a bug, or rows that somebody has
deleted by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rhythm.engine.inputs import inputs_of
from rhythm.errors import InvalidProgram
from rhythm.ir.awaiting import Plan, has_timer, leaves, size_of
from rhythm.ir.program import Program
from rhythm.limits import DEFAULT_LIMITS
from rhythm.store.interfaces.messages import Mail
from rhythm.store.interfaces.turns import ChildOutcome, Loaded
from rhythm.vm.awaits import Reserved, next_completed, resolve
from rhythm.vm.interpreter import Suspended, advance
from rhythm.vm.machine import Machine
from rhythm.vm.snapshot import Snapshot, decode_snapshot


def snapshot_of(row: Loaded) -> Snapshot | None:
    """What cannot be read is left to whoever takes its next turn."""
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
    """Whether a turn of the workflow would change anything; it is computed and thrown away."""
    if (loaded.timed_out and not snapshot.cancelled) or loaded.owned != "[]":
        return True
    turn = advance(program, snapshot, inputs_of(loaded, snapshot, outcomes, mail, "", loaded.now))
    return not (isinstance(turn, Suspended) and turn.snapshot is snapshot)


def is_due(
    loaded: Loaded, snapshot: Snapshot, outcomes: Iterable[ChildOutcome], mail: Iterable[Mail]
) -> bool:
    """Whether there is a turn to take: what the workflow awaits has come, or it is to end. Nothing
    of its program runs."""
    if snapshot.awaiting is None or (loaded.ending and not snapshot.cancelled):
        return True
    inputs = inputs_of(loaded, snapshot, outcomes, mail, "", loaded.now)
    return has_come(Machine(snapshot, inputs, DEFAULT_LIMITS), snapshot.awaiting)


def has_come(machine: Machine, plan: Plan) -> bool:
    """Whether what is awaited has ended; in a loop over `completed`, the next of it."""
    if "taken" in plan:
        return len(plan["taken"]) == size_of(plan) or next_completed(machine, plan)[1] is not None
    return resolve(machine, plan, Reserved()) is not None


def timers_of(plan: Plan | None) -> Iterator[int]:
    """The numbers of the timers that are awaited. One that was started earlier and is awaited by
    its id could be anything."""
    return (leaf["n"] for leaf in leaves(plan) if has_timer(leaf))


def waits_of(plan: Plan | None) -> list[Plan]:
    """What an execution waits for, thing by thing."""
    return list(leaves(plan))
