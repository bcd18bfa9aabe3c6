"""Which IR version a program needs: the lowest that has everything that it uses."""

from __future__ import annotations

from collections.abc import Iterable

from rhythm.ir import instructions as ir
from rhythm.ir.locals import nodes
from rhythm.record import Record


def ir_version(code: Iterable[ir.Instruction]) -> int:
    """Returns the IR version of a program with this code.

    It is no newer than needed, so that workers that are older run the program, too.
    """
    return max(
        (version_of_node(node) for instruction in code for node, _ in nodes(instruction)), default=1
    )


def version_of_node(node: Record) -> int:
    """Returns the IR version that brought an instruction or an expression, without what is in it.

    2: Python's meaning: the builtins `py.*`, and the operators `and` and `or`; declared inputs:
    `check_inputs`.
    """
    match node:
        case ir.Call("check_inputs"):
            return 2
        case ir.Call(name) if name.startswith("py."):
            return 2
        case ir.Logic("and" | "or"):
            return 2
    return 1
