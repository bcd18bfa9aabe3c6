"""The calls of `py.*` that programs make most, as closures with their common cases written out.

They cost what an operator costs: nothing but their instruction, and what the general function
counts for large operands.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from rhythm.ir import instructions as ir
from rhythm.vm.closures import (
    Compile,
    Compiled,
    Frame,
    General,
    divided,
    in_order,
    placed,
    with_integers,
)
from rhythm.vm.prices import LONG
from rhythm.vm.python.table import PYTHON_FUNCTIONS

_PLAIN = frozenset((int, float, str, bool, type(None)))


def _general(node: ir.Call) -> General:
    function, at = PYTHON_FUNCTIONS[node.name], node.at
    return lambda frame, a, b: placed(at, function, frame["$m"], a, b)


def _computed(compute: Callable[[int, int], int]) -> Callable[[ir.Call, Compile], Compiled]:
    return lambda node, closure_of: with_integers(node.args, closure_of, compute, _general(node))


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[ir.Call, Compile], Compiled]:
    return lambda node, closure_of: in_order(node.args, closure_of, compare, _general(node))


def _divided(divide: Callable[[int, int], int]) -> Callable[[ir.Call, Compile], Compiled]:
    return lambda node, closure_of: divided(node.args, closure_of, divide, _general(node))


def _equality(compare: Callable[[Any, Any], bool]) -> Callable[[ir.Call, Compile], Compiled]:
    def compiled(node: ir.Call, closure_of: Compile) -> Compiled:
        left, right, general = closure_of(node.args[0]), closure_of(node.args[1]), _general(node)
        match node.args[1]:
            case ir.Const(value) if type(value) in _PLAIN and len(str(value)) <= LONG:
                return lambda frame: compare(left(frame), value)

        def call(frame: Frame) -> Any:
            a, b = left(frame), right(frame)
            if type(a) in _PLAIN and (type(a) is not str or len(a) <= LONG):
                return compare(a, b)
            return general(frame, a, b)

        return call

    return compiled


def _item(node: ir.Call, closure_of: Compile) -> Compiled:
    target, key, general = closure_of(node.args[0]), closure_of(node.args[1]), _general(node)

    def call(frame: Frame) -> Any:
        x, k = target(frame), key(frame)
        if type(x) is list and type(k) is int and -len(x) <= k < len(x):
            return x[k]
        if type(x) is dict and type(k) is str and len(k) <= LONG and k in x:
            return x[k]
        return general(frame, x, k)

    return call


def _attribute(node: ir.Call, closure_of: Compile) -> Compiled:
    target, name, general = closure_of(node.args[0]), closure_of(node.args[1]), _general(node)
    match node.args[1]:
        case ir.Const(str() as field) if len(field) <= LONG:

            def of_field(frame: Frame) -> Any:
                x = target(frame)
                return x[field] if type(x) is dict and field in x else general(frame, x, field)

            return of_field
    return lambda frame: general(frame, target(frame), name(frame))


def _contains(node: ir.Call, closure_of: Compile) -> Compiled:
    container, item, general = closure_of(node.args[0]), closure_of(node.args[1]), _general(node)

    def call(frame: Frame) -> Any:
        x, k = container(frame), item(frame)
        if type(x) is dict and type(k) is str and len(k) <= LONG:
            return k in x
        return general(frame, x, k)

    return call


def _truth(node: ir.Call, closure_of: Compile) -> Compiled:
    value = closure_of(node.args[0])
    return lambda frame: bool(value(frame))


def _append(node: ir.Call, closure_of: Compile) -> Compiled:
    target, value, general = closure_of(node.args[0]), closure_of(node.args[1]), _general(node)
    return lambda frame: general(frame, target(frame), value(frame))


def _one(node: ir.Call, closure_of: Compile) -> Compiled:
    """Compiles a function of one value that counts what it does itself."""
    value, function, at = closure_of(node.args[0]), PYTHON_FUNCTIONS[node.name], node.at
    return lambda frame: placed(at, function, frame["$m"], value(frame))


COMPILED: dict[str, Callable[[ir.Call, Compile], Compiled]] = {
    f"py.{name}": compiled
    for name, compiled in {
        "add": _computed(operator.add), "iadd": _computed(operator.add),
        "sub": _computed(operator.sub), "mul": _computed(operator.mul),
        "imul": _computed(operator.mul),
        "floordiv": _divided(operator.floordiv), "mod": _divided(operator.mod),
        "lt": _ordered(operator.lt), "le": _ordered(operator.le), "gt": _ordered(operator.gt),
        "ge": _ordered(operator.ge), "eq": _equality(operator.eq), "ne": _equality(operator.ne),
        "item": _item, "attr": _attribute, "contains": _contains, "truth": _truth,
        "append": _append, "len": _one, "iter": _one,
    }.items()
}  # fmt: skip
