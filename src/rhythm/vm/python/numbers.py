"""Functions of Python's `math`: by name, with integers that fit 64 bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rhythm.vm.prices import entries
from rhythm.vm.python.methods import check_call
from rhythm.vm.python.raised import named, number, too_large

if TYPE_CHECKING:
    from rhythm.vm.machine import Machine

LAST_FACTORIAL = 20  # 21! does not fit 64 bits


def _factorial(*args: Any) -> int:
    if len(args) == 1 and isinstance(args[0], int) and args[0] > LAST_FACTORIAL:
        raise too_large(f"factorial({args[0]})")
    return math.factorial(*args)


def _comb(*args: Any) -> int:
    if len(args) == 2 and all(isinstance(arg, int) for arg in args):
        n, k = args
        # With 64 chosen of 128 or more, the result has more than 64 bits.
        if 0 <= k <= n and min(k, n - k) > 64:
            raise too_large(f"comb({n}, {k})")
    return math.comb(*args)


def _perm(*args: Any) -> int:
    if args and len(args) <= 2 and all(isinstance(arg, int) for arg in args):
        n, k = args[0], args[-1]
        if LAST_FACTORIAL < k <= n:
            raise too_large(f"perm({n}, {k})")
    return math.perm(*args)


_MATH: dict[str, Callable[..., Any]] = {
    name: getattr(math, name)
    for name in (
        "floor ceil trunc sqrt log log2 log10 exp pow fabs fsum gcd isclose hypot degrees radians "
        "sin cos tan"
    ).split()
} | {"factorial": _factorial, "comb": _comb, "perm": _perm}


def _math(m: Machine, name: Any, args: Any, kwargs: Any = None) -> Any:
    function = _MATH.get(name) if type(name) is str else None
    if function is None:
        raise AttributeError(f"module 'math' has no attribute '{named(name)}'")
    args, kwargs = check_call(args, kwargs)
    m.charge(entries(args) + 4 * sum(map(entries, args)))
    return number(function(*args, **kwargs))


NUMBERS: dict[str, Callable[..., Any]] = {"math": _math}
