"""Whether a workflow that sleeps does so rightly: the question of the sweep, put to the interpreter itself.

Nothing should ever come of it. What it finds is a lost wake, a bug, or rows that somebody has deleted by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rhythm.engine.turns import inputs_of
from rhythm.ir.program import Program
from rhythm.store.base import ChildOutcome, Loaded, Mail
from rhythm.vm.interpreter import Suspended, advance
from rhythm.vm.plans import Plan, items_of, leaves
from rhythm.vm.snapshot import Snapshot


def could_go_on(loaded: Loaded, program: Program, snapshot: Snapshot, outcomes: Iterable[ChildOutcome], mail: Iterable[Mail]) -> bool:
    """Whether a turn of the workflow would change anything; it is computed and thrown away."""
    if (loaded.timed_out and not snapshot.cancelled) or loaded.owned != "[]":
        return True
    turn = advance(program, snapshot, inputs_of(loaded, snapshot, outcomes, mail, "", loaded.now))
    return not (isinstance(turn, Suspended) and turn.snapshot is snapshot)


def timers_of(plan: Plan | None) -> Iterator[int]:
    """The numbers of the timers that are awaited. One that was started earlier and is awaited by its id could be anything."""
    if plan is not None and ("items" in plan or "first" in plan):
        for item in items_of(plan):
            yield from timers_of(item)
    elif plan is not None and (plan["op"] == "sleep" or (plan["op"] == "signal" and plan.get("timeout", 0) > 0)):
        yield plan["n"]


def waits_of(plan: Plan | None) -> list[Plan]:
    """What an execution waits for, thing by thing."""
    return list(leaves(plan)) if plan else []
