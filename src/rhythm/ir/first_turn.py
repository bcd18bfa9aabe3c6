"""Whether a first turn that is taken again asks for the same, though things have happened since."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from rhythm.ir.locals import reads
from rhythm.ir.program import Program

_REPEATABLE: WeakKeyDictionary[Program, bool] = WeakKeyDictionary()


def first_turn_is_repeatable(program: Program) -> bool:
    """Returns whether the first turn of a program depends on nothing but its inputs.

    Other things that it could know may change before it is taken again: it may have been asked to
    end, which leads into `finally` blocks, or have been given data for a resume, which is in `ctx`.
    Whether it drew the time or a number, the turn itself says (`drew`).
    """
    found = _REPEATABLE.get(program)
    if found is None:
        cleans_up = any(handler.kind == "finally" for handler in program.handlers)
        found = not cleans_up and not any("ctx" in reads(each) for each in program.code)
        _REPEATABLE[program] = found
    return found
