"""Runs a builtin `py.*` and the same in CPython, and compares how they end."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from rhythm.limits import DEFAULT_LIMITS, INT_MAX, INT_MIN, Limits
from rhythm.vm.builtins import FUNCTIONS
from rhythm.vm.machine import Inputs, Machine
from rhythm.vm.prices import price_of
from rhythm.vm.snapshot import Snapshot
from rhythm.vm.values import Fault

INPUTS = Inputs("2026-11-15T09:00:00Z", "seed", None, {"id": "run"})
Ended = tuple[str, Any]

INTEGERS = st.one_of(
    st.integers(-3, 5), st.integers(-100, 100), st.sampled_from([INT_MIN, INT_MAX, 2**62, 10**18])
)
FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, 1.0, 1.5, 2.5, -2.5, 1e16, 1e300, -1e-300]),
    st.floats(allow_nan=False, allow_infinity=False),
)
NUMBERS = st.one_of(INTEGERS, FLOATS, st.booleans())
TEXTS = st.one_of(
    st.sampled_from(
        [
            "",
            "a",
            "b",
            "ab",
            "Hello World",
            "  x ",
            "1",
            "-12",
            "1.5",
            "ß",
            "ǅ",
            "a,b,,c",
            "\t a\n b",
        ]
    ),
    st.text(alphabet="ab ,.\n\tAß1", max_size=8),
)
SCALARS = st.one_of(st.none(), NUMBERS, TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
LISTS = st.one_of(st.lists(INTEGERS, max_size=6), st.lists(VALUES, max_size=5))
DICTS = st.dictionaries(TEXTS, VALUES, max_size=4)


def machine(limits: Limits = DEFAULT_LIMITS) -> Machine:
    return Machine(Snapshot(), INPUTS, limits)


def ours(name: str, *args: Any) -> Ended:
    """How the builtin ends. What it was given is as it was before."""
    before = copy.deepcopy(args)
    try:
        price_of(f"py.{name}")(*args)
        return "gives", FUNCTIONS[f"py.{name}"](machine(), *args)
    except Fault as fault:
        return "raises", fault.code
    finally:
        assert exactly(list(args), list(before))


def theirs(function: Callable[..., Any], *args: Any) -> Ended:
    """How CPython ends, with the differences that there are by design."""
    try:
        result = plain(function(*copy.deepcopy(args)))
    except Exception as error:
        return "raises", type(error).__name__
    return ("raises", refusal) if (refusal := refused(result)) else ("gives", result)


def plain(value: Any) -> Any:
    """The value as JSON: tuples and views are lists."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(
        value, (list, tuple, range, type({}.keys()), type({}.values()), type({}.items()))
    ):
        return [plain(item) for item in value]
    return value


def refused(value: Any) -> str:
    """The exception in place of a result that JSON does not have, or that does not fit."""
    if isinstance(value, list):
        return next(filter(None, map(refused, value)), "")
    if isinstance(value, dict):
        if not all(type(key) is str for key in value):
            return "TypeError"
        return refused(list(value.values()))
    if type(value) is int and not INT_MIN <= value <= INT_MAX:
        return "OverflowError"
    if type(value) is float and not math.isfinite(value):
        return "OverflowError"
    return "ValueError" if isinstance(value, complex) else ""


def exactly(left: Any, right: Any) -> bool:
    """Whether two values are equal, and all their parts of the same types and in the same order."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(exactly, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(exactly(left[key], right[key]) for key in left)
    # Zero has no sign here: a database would not keep it.
    return bool(left == right) and (left == 0 or str(left) == str(right))


def check(name: str, function: Callable[..., Any], *args: Any) -> None:
    """Asserts that both end alike.

    A sum may pass 64 bits before CPython meets what it cannot add: that is refused first.
    """
    here, there = ours(name, *args), theirs(function, *args)
    if name == "sum" and here == ("raises", "OverflowError") and there[0] == "raises":
        return
    check_ended(here, there, name, args)


def check_ended(here: Ended, there: Ended, *what: Any) -> None:
    assert exactly(list(here), list(there)), (what, here, there)
