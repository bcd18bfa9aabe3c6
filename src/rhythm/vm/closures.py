"""Closures for operators whose operands are mostly integers, with the common cases written out.

Each is made from the operator on integers, and from `general`, which computes all other cases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rhythm.ir import instructions as ir
from rhythm.limits import INT_MAX, INT_MIN
from rhythm.vm.values import Fault

T = TypeVar("T")
Frame = dict[str, Any]
Compiled = Callable[[Frame], Any]
Compile = Callable[[Any], Compiled]
General = Callable[[Frame, Any, Any], Any]


def placed(at: int | None, function: Callable[..., T], *args: Any) -> T:
    """Calls the function; a fault that does not say where it arose gets the place `at`."""
    try:
        return function(*args)
    except Fault as fault:
        if fault.at is None:
            fault.at = at
        raise


def with_integers(
    operands: Sequence[Any],
    closure_of: Compile,
    compute: Callable[[int, int], int],
    general: General,
) -> Compiled:
    """Returns the closure of `+`, `-` or `*`; what does not fit 64 bits is left to `general`."""
    left, right = operands
    match left, right:
        case ir.Local(name), ir.Const(int() as number) if type(number) is int:

            def with_constant(frame: Frame) -> Any:
                a = frame[name]
                if type(a) is int and INT_MIN <= (result := compute(a, number)) <= INT_MAX:
                    return result
                return general(frame, a, number)

            return with_constant
        case ir.Local(name), _:
            value = closure_of(right)

            def with_value(frame: Frame) -> Any:
                a, b = frame[name], value(frame)
                if (
                    type(a) is int
                    and type(b) is int
                    and INT_MIN <= (result := compute(a, b)) <= INT_MAX
                ):
                    return result
                return general(frame, a, b)

            return with_value
    first, second = closure_of(left), closure_of(right)

    def of_values(frame: Frame) -> Any:
        a, b = first(frame), second(frame)
        if type(a) is int and type(b) is int and INT_MIN <= (result := compute(a, b)) <= INT_MAX:
            return result
        return general(frame, a, b)

    return of_values


def in_order(
    operands: Sequence[Any],
    closure_of: Compile,
    compare: Callable[[int, int], bool],
    general: General,
) -> Compiled:
    """Returns the closure of a comparison."""
    left, right = operands
    if isinstance(left, ir.Local) and isinstance(right, ir.Const) and type(right.value) is int:
        local, number = left.name, right.value

        def with_constant(frame: Frame) -> Any:
            a = frame[local]
            return compare(a, number) if type(a) is int else general(frame, a, number)

        return with_constant
    second = closure_of(right)
    if isinstance(left, ir.Local):
        name = left.name

        def of_local(frame: Frame) -> Any:
            a, b = frame[name], second(frame)
            if type(a) is int and type(b) is int:
                return compare(a, b)
            return general(frame, a, b)

        return of_local
    first = closure_of(left)

    def of_values(frame: Frame) -> Any:
        a, b = first(frame), second(frame)
        if type(a) is int and type(b) is int:
            return compare(a, b)
        return general(frame, a, b)

    return of_values


def divided(
    operands: Sequence[Any],
    closure_of: Compile,
    divide: Callable[[int, int], int],
    general: General,
) -> Compiled:
    """Returns the closure of Python's `//` or `%`; only a divisor above 0 is taken here."""
    left, right = operands
    match left, right:
        case ir.Local(name), ir.Const(int() as number) if type(number) is int and number > 0:

            def by_constant(frame: Frame) -> Any:
                a = frame[name]
                return divide(a, number) if type(a) is int else general(frame, a, number)

            return by_constant
    first, second = closure_of(left), closure_of(right)

    def of_values(frame: Frame) -> Any:
        a, b = first(frame), second(frame)
        if type(a) is int and type(b) is int and b > 0:
            return divide(a, b)
        return general(frame, a, b)

    return of_values
