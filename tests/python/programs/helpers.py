"""Helper functions of the module that are written in place."""

from __future__ import annotations

from typing import Any

import rhythm
from tests.python.given import given
from tests.python.programs._tasks import echo

RATE = 0.5


def tax(x: float) -> float:
    """A part of the price."""
    return x * RATE


def clamp(x: int, low: int = 0, high: int = 10) -> int:
    return max(low, min(high, x))


def full(first: str, last: str) -> str:
    return f"{first} {last}".strip()


def twice(x: Any) -> Any:
    return clamp(x) + clamp(x + 1)


def picked(rows: list[dict[str, Any]], key: str) -> list[Any]:
    return [row[key] for row in rows if key in row]


def within(x: int, xs: list[int]) -> bool:
    return xs[0] <= x <= xs[-1]


@given({"x": 3}, {"x": 30}, {"x": -3})
@rhythm.workflow
async def helped(x: int) -> Any:
    return [tax(x), clamp(x), clamp(x, 1), clamp(x, high=5), twice(x), clamp(await echo(x))]


@given({"a": "ada", "b": "l"}, {"a": "", "b": ""})
@rhythm.workflow
async def helped_with_names(a: str, b: str) -> Any:
    return full(last=a, first=b) + full(a, b)


@given({"rows": [{"a": 1}, {"b": 2}]})
@rhythm.workflow
async def helped_in_comprehension(rows: list[dict[str, Any]]) -> Any:
    return [
        picked(rows, "a"),
        [clamp(r.get("a", 99)) for r in rows],
        sum(tax(r.get("a", 0)) for r in rows),
    ]


@given({"x": 3, "xs": []}, {"x": 3, "xs": [1, 5]})
@rhythm.workflow
async def helped_in_a_branch(x: int, xs: list[int]) -> Any:
    return [within(x, xs) if xs else None, bool(xs) and within(x, xs), not xs or within(9, xs)]


@given({"x": 2})
@rhythm.workflow
async def helper_hides_names(x: int) -> Any:
    low = 100
    return [clamp(x), low, clamp(low)]


@given({"xs": [3, 20]})
@rhythm.workflow
async def helper_as_key(xs: list[int]) -> Any:
    return sorted(xs, key=lambda v: -clamp(v))


def has_even(xs: list[int]) -> bool:
    return any(x % 2 == 0 for x in xs)


@given({"rows": [[1, 2], [3], []]})
@rhythm.workflow
async def helper_that_needs_a_loop(rows: list[list[int]]) -> Any:
    return [
        [has_even(row) for row in rows],
        {str(len(row)): has_even(row) for row in rows},
        [row for row in rows if has_even(row)],
        has_even(rows[0]) and not has_even(rows[1]),
    ]
