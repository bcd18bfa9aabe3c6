"""Time and random values, from the turn's inputs: computed twice, they are the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rhythm.vm.python.raised import number

if TYPE_CHECKING:
    from rhythm.vm.machine import Machine

DRAW = 10  # the price of a draw


def _time(m: Machine) -> float:
    m.drew = True
    return datetime.fromisoformat(m.inputs.now).timestamp()


def _below(m: Machine, count: int) -> int:
    """Returns a number from 0 up to, not including, the count (of at most 65 bits)."""
    return int.from_bytes(m.draw()) % count  # of 256 bits, so no remainder is favoured


def _randint(m: Machine, a: Any, b: Any) -> int:
    for arg in (a, b):
        if not isinstance(arg, int):
            raise TypeError(f"'{type(arg).__name__}' object cannot be interpreted as an integer")
    if b < a:
        raise ValueError(f"empty range in randint({a}, {b})")
    return int(a) + _below(m, b - a + 1)


def _uniform(m: Machine, a: Any, b: Any) -> float:
    share = (int.from_bytes(m.draw()[:8]) >> 11) / 2**53
    result: float = number(a + (b - a) * share)
    return result


def _choice(m: Machine, x: Any) -> Any:
    _check_sequence(x)
    if not x:
        raise IndexError("Cannot choose from an empty sequence")
    return x[_below(m, len(x))]


def _sample(m: Machine, x: Any, k: Any) -> list[Any]:
    _check_sequence(x)
    if not isinstance(k, int):
        raise TypeError(f"'{type(k).__name__}' object cannot be interpreted as an integer")
    if not 0 <= k <= len(x):
        raise ValueError("Sample larger than population or is negative")
    m.charge(len(x) // 16 + DRAW * k)
    pool = list(x)
    for i in range(k):
        j = i + _below(m, len(pool) - i)
        pool[i], pool[j] = pool[j], pool[i]
    return pool[:k]


def _shuffled(m: Machine, x: Any) -> list[Any]:
    if type(x) is not list:
        raise TypeError(f"'{type(x).__name__}' object does not support item assignment")
    return _sample(m, x, len(x))


def _check_sequence(x: Any) -> None:
    if type(x) not in (list, str):
        raise TypeError(f"a list or text, not {type(x).__name__}")


RANDOM_VALUES: dict[str, Callable[..., Any]] = {
    "time": _time, "randint": _randint, "uniform": _uniform, "choice": _choice,
    "sample": _sample, "shuffled": _shuffled,
}  # fmt: skip
