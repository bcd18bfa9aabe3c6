"""Python's operators on numbers, texts, lists and dicts.

Where an operand has another type, Python's own TypeError says so.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rhythm.vm.prices import LONG, characters, entries, looked_up
from rhythm.vm.python.conversions import entries_of
from rhythm.vm.python.raised import number, too_large
from rhythm.vm.values import Fault, LimitFault, check_entries, check_text

if TYPE_CHECKING:
    from rhythm.vm.machine import Machine

BITS = 64


def _truth(m: Machine, x: Any) -> bool:
    return bool(x)


def add(m: Machine, a: Any, b: Any) -> Any:
    """Returns `a + b`."""
    kind = type(a)
    if kind is type(b) and (kind is str or kind is list):
        size = len(a) + len(b)
        m.charge(size // 16)
        if kind is str:
            _check_length(m, size)
            return check_text(a + b, m.limits)
        check_entries(size, m.limits)
    return number(a + b)


def _iadd(m: Machine, a: Any, b: Any) -> Any:
    """Returns what `a += b` gives: a list takes any iterable."""
    if type(a) is list and type(b) is not list:
        iter(b)  # raises TypeError for what is not iterable
        check_entries(len(a) + len(b), m.limits)
        m.charge((len(a) + len(b)) // 4)
        return [*a, *b]
    return add(m, a, b)


def _unshared(operation: Callable[..., Any], kind: type, sign: str) -> Callable[..., Any]:
    """Returns `a += b` where something else may hold `a`: a list is not changed in place there."""

    def call(m: Machine, a: Any, b: Any) -> Any:
        if type(a) is kind:
            raise Fault(
                "TypeError",
                f"this {kind.__name__} is also held elsewhere, where Python would show the change, "
                f"too; write a = a {sign} b, or change a copy",
            )
        return operation(m, a, b)

    return call


def _multiply(m: Machine, a: Any, b: Any) -> Any:
    whole, times = (a, b) if isinstance(b, int) else (b, a)
    if isinstance(times, int) and type(whole) in (str, list):
        size = len(whole) * max(times, 0)
        if type(whole) is str:
            _check_length(m, size)
            m.charge(size // 16)
            return check_text(whole * times, m.limits)
        check_entries(size, m.limits)
        m.charge(size // 4)
    return number(a * b)


def _check_length(m: Machine, size: int) -> None:
    if size > m.limits.text_bytes:
        raise LimitFault(f"a text over {m.limits.text_bytes // 1024:,} KiB")


def _remainder(m: Machine, a: Any, b: Any) -> Any:
    if type(a) is str:
        raise Fault("TypeError", "text has no % here: write an f-string, or call py.percent")
    return number(a % b)


def _power(m: Machine, a: Any, b: Any) -> Any:
    # |a| ** b is at least 2 ** (b * (bits - 1)): what is computed has at most 128 bits.
    if isinstance(a, int) and isinstance(b, int) and max(b, 0) * (abs(a).bit_length() - 1) >= BITS:
        raise too_large(f"{a} ** {b}")
    return number(a**b)


def _shift_left(m: Machine, a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and a and b > BITS:
        raise too_large(f"{a} << {b}")
    return number(a << b)


def _or(m: Machine, a: Any, b: Any) -> Any:
    if type(a) is dict and type(b) is dict:
        check_entries(max(len(a), len(b)), m.limits)
        m.charge((len(a) + len(b)) // 2 + looked_up(a) + looked_up(b))
        merged = a | b
        check_entries(len(merged), m.limits)
        return merged
    return a | b


def _ior(m: Machine, a: Any, b: Any) -> Any:
    """Returns what `a |= b` gives: a dict takes pairs, too."""
    return _or(m, a, entries_of(m, b)) if type(a) is dict else _or(m, a, b)


def _invert(m: Machine, x: Any) -> Any:
    # Python is about to refuse `~True`, and warns of it already.
    return ~int(x) if type(x) is bool else ~x


def computed(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function of an operator that needs no care but for the size of its result."""
    return lambda m, *args: number(operation(*args))


def _append(m: Machine, x: Any, v: Any) -> list[Any]:
    if type(x) is not list:
        raise AttributeError(f"'{type(x).__name__}' object has no attribute 'append'")
    check_entries(len(x) + 1, m.limits)
    m.charge(len(x) // 16)
    return [*x, v]


def _sum(m: Machine, x: Any, start: Any = 0) -> Any:
    total = sum((), start)  # refuses a start that is text
    if start_is_number := isinstance(total, int | float):
        plain = all(isinstance(item, int | float) for item in x)
    if start_is_number and plain:
        return number(sum(x, total))
    for item in x:
        m.charge(2 + (entries(item) + characters(item)) // LONG)
        total = add(m, total, item)
    return total


def _round(m: Machine, x: Any, digits: Any = None) -> Any:
    # With so many digits below zero nothing is left of 64 bits; Python would compute the power.
    if isinstance(x, int) and isinstance(digits, int) and digits < -20:
        return 0
    return number(round(x, digits))


def _divmod(m: Machine, a: Any, b: Any) -> list[Any]:
    return [number(part) for part in divmod(a, b)]


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "truth": _truth, "add": add, "sub": computed(operator.sub), "mul": _multiply,
    "div": computed(operator.truediv), "floordiv": computed(operator.floordiv), "mod": _remainder,
    "pow": _power, "bitand": computed(operator.and_), "bitor": _or,
    "bitxor": computed(operator.xor), "lshift": _shift_left, "rshift": computed(operator.rshift),
    "iadd": _iadd, "iadd_unshared": _unshared(_iadd, list, "+"),
    "imul": _multiply, "imul_unshared": _unshared(_multiply, list, "*"),
    "ior": _ior, "ior_unshared": _unshared(_ior, dict, "|"), "append": _append,
    "neg": computed(operator.neg), "pos": computed(operator.pos),
    "invert": _invert, "sum": _sum, "abs": computed(abs), "round": _round, "divmod": _divmod,
}  # fmt: skip
