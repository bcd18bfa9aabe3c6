"""What Python's loops and functions walk: elements of a list, keys of a dict, characters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rhythm.limits import INT_MAX
from rhythm.vm.python.raised import number
from rhythm.vm.values import Fault, check_entries

if TYPE_CHECKING:
    from rhythm.vm.machine import Machine


def items_of(m: Machine, x: Any) -> list[Any]:
    """Returns what a loop over the value walks. Raises TypeError if it cannot be walked."""
    if type(x) is list:
        return x
    iter(x)
    check_entries(len(x), m.limits)
    m.charge(len(x))
    return list(x)


def range_bounds(m: Machine, *args: Any) -> tuple[int, int, int]:
    """Returns start, stop and step of a `range` call. Raises what `range` raises.

    The numbers may be more than a list can hold: a loop only counts.
    """
    counted = range(*args)
    start, stop, step = int(counted.start), int(counted.stop), int(counted.step)
    if not 0 <= _length(start, stop, step) <= INT_MAX:
        raise Fault("OverflowError", "a range of more numbers than fit 64 bits")
    return start, stop, step


def _length(start: int, stop: int, step: int) -> int:
    return max(0, -((start - stop) // step))  # `len(range(…))` fails beyond 63 bits


def _range(m: Machine, *args: Any) -> list[int]:
    bounds = range_bounds(m, *args)
    check_entries(_length(*bounds), m.limits)
    return list(range(*bounds))


def _enumerate(m: Machine, x: Any, start: Any = 0) -> list[list[Any]]:
    items = items_of(m, x)
    m.charge(3 * len(items))
    pairs = [[i, item] for i, item in enumerate(items, start)]
    if pairs:
        number(pairs[-1][0])
    return pairs


def _zip(m: Machine, strict: Any, *args: Any) -> list[list[Any]]:
    for arg in args:
        iter(arg)
    if args:
        shortest = min(map(len, args))
        check_entries(shortest, m.limits)
        m.charge(shortest * (2 + len(args) // 2))
    return [list(row) for row in zip(*args, strict=bool(strict))]


def _reversed(m: Machine, x: Any) -> list[Any]:
    walk = reversed(x)
    check_entries(len(x), m.limits)
    return list(walk)


def _len(m: Machine, x: Any) -> int:
    return len(x)


def _any(m: Machine, x: Any) -> bool:
    return bool(x) if type(x) is str else any(x)


def _all(m: Machine, x: Any) -> bool:
    return type(x) is str or all(x)  # every character is true


def _unpack(m: Machine, x: Any, before: Any, after: Any = None) -> list[Any]:
    """Returns what the names of `a, b = x` get, or with `after` those of `a, *b, c = x`."""
    if type(x) not in (list, dict, str):
        raise TypeError(f"cannot unpack non-iterable {type(x).__name__} object")
    wanted, got = before + (after or 0), len(x)
    if got < wanted:
        least = "" if after is None else "at least "
        raise ValueError(f"not enough values to unpack (expected {least}{wanted}, got {got})")
    if after is None and got > wanted:
        raise ValueError(f"too many values to unpack (expected {wanted})")
    items = items_of(m, x)
    if after is None:
        return items
    m.charge(got)
    return [*items[:before], items[before : got - after], *items[got - after :]]


WALKS: dict[str, Callable[..., Any]] = {
    "iter": items_of, "range": _range, "enumerate": _enumerate, "zip": _zip,
    "reversed": _reversed, "len": _len, "any": _any, "all": _all, "unpack": _unpack,
}  # fmt: skip
