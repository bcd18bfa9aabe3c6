"""Where caught errors arose: `throw e` of a caught `e` is reported there, not at the `throw`.

Values have no identity, so the place is kept by variable: from the `catch` that sets one, through
plain copies (`failed = e`), to a `throw` of that variable. Any other write to the variable ends it:
that is another value. Only variables that some `throw` names are followed, so other programs pay
nothing and their snapshots hold nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rhythm.ir import instructions as ir
from rhythm.ir.locals import sets

Run = Callable[[dict[str, Any]], int]


def carriers(code: Sequence[ir.Instruction]) -> frozenset[str]:
    """Returns the variables that a `throw` names, and those that are copied into them."""
    found, copied = set[str](), dict[str, list[str]]()
    work = list[str]()
    for instruction in code:
        match instruction:
            case ir.Throw(ir.Local(name)):
                work.append(name)
            case ir.Set(name, ir.Local(source)):
                copied.setdefault(name, []).append(source)
    while work:
        name = work.pop()
        if name not in found:
            found.add(name)
            work += copied.get(name, ())
    return frozenset(found)


def followed(instruction: ir.Instruction, run: Run, carriers: frozenset[str]) -> Run:
    """Returns the compiled instruction, which also updates the places of carriers it writes to."""
    written = carriers.intersection(sets(instruction))
    if not written:
        return run
    match instruction:
        case ir.Set(_, ir.Local(source)):
            pass
        case _:
            source = ""  # not a copy of a variable: the value did not come from a `catch`

    def write(frame: dict[str, Any]) -> int:
        next = run(frame)
        if next >= 0:  # otherwise it suspends, and has written nothing yet
            origins: dict[str, int] = frame["$m"].origins
            at = origins.get(source)
            for name in written:
                if at is None:
                    origins.pop(name, None)
                else:
                    origins[name] = at
        return next

    return write


def encode_origins(origins: dict[str, int], locals: dict[str, Any]) -> list[list[Any]]:
    """Returns the places as a snapshot keeps them: those of variables that it has.

    They are pairs, because an object in a hidden local could be taken for the state of a loop.
    """
    return [[name, at] for name, at in origins.items() if name in locals]
