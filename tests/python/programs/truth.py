"""What is true, what is equal, and what comes before what."""

from __future__ import annotations

from typing import Any

import rhythm
from tests.python.given import given
from tests.python.programs._tasks import echo

VALUES: list[Any] = [0, 1, -1, 0.0, 0.5, "", "0", "a", [], [0], {}, {"a": 0}, None, True, False]
EACH: list[dict[str, Any]] = [{"x": x} for x in VALUES]


@given(*EACH)
@rhythm.workflow
async def truth_of(x: Any) -> Any:
    if x:
        return ["true", bool(x), not x]
    return ["false", bool(x), not x]


@given(*EACH)
@rhythm.workflow
async def logic_gives_operands(x: Any) -> Any:
    return [x or "or", x and "and", x or None, not x or 3, (x and 1) or 2, x and x and "last"]


@given(*EACH)
@rhythm.workflow
async def while_truth(x: Any) -> Any:
    n = 0
    while x and n < 3:
        n += 1
    return n


@given(*EACH)
@rhythm.workflow
async def ternary(x: Any) -> Any:
    return "yes" if x else "no" if x is not None else "none"


@given(*EACH)
@rhythm.workflow
async def equal_to_others(x: Any) -> Any:
    return [x == 1, x == True, x == 0, x == "", x == [], x == {}, x == None, x != 0, x == 1.0]


@given(*EACH)
@rhythm.workflow
async def identity(x: Any) -> Any:
    return [x is None, x is not None, x is True, x is False, x is not True]


@given(*EACH)
@rhythm.workflow
async def types_of(x: Any) -> Any:
    return [
        isinstance(x, str), isinstance(x, int), isinstance(x, float), isinstance(x, bool),
        isinstance(x, list), isinstance(x, dict), isinstance(x, (int, float)),
        isinstance(x, str | None),
    ]  # fmt: skip


PAIRS: list[tuple[Any, Any]] = [
    (1, 2), (2, 1), (1, 1.0), ("a", "b"), ("B", "a"), ([1, 2], [1, 3]), ([1], [1, 0]),
    ([], []), (True, 2), ("a", 1), (None, 1), ([1, "a"], [1, 2]), ({"a": 1}, {"b": 1}), ([[1], 2], [[1], 1]),
]  # fmt: skip


@given(*[{"a": a, "b": b} for a, b in PAIRS])
@rhythm.workflow
async def orders(a: Any, b: Any) -> Any:
    return [a < b, a <= b, a > b, a >= b]


@given(*[{"a": a, "b": b} for a, b in PAIRS])
@rhythm.workflow
async def equalities(a: Any, b: Any) -> Any:
    return [a == b, a != b, [a] == [b], {"k": a} == {"k": b}, not a == b]


@given({"x": 5}, {"x": 0}, {"x": 10}, {"x": 11}, {"x": 2.5})
@rhythm.workflow
async def chained(x: Any) -> Any:
    return [0 < x < 10, 0 <= x <= 10, 0 < x != 5, 1 < x > 3, 0 == x == 0, 10 > x > 5 > 2]


@given({"xs": [1, 2], "i": 1}, {"xs": [3], "i": 1}, {"xs": [0, 5], "i": 1})
@rhythm.workflow
async def chain_stops_early(xs: list[int], i: int) -> Any:
    return 2 > xs[0] < xs[i] or "no"


@given({"xs": [5], "n": 3}, {"xs": [5, 1], "n": 9})
@rhythm.workflow
async def chain_in_a_branch(xs: list[int], n: int) -> Any:
    return (n < xs[1] < 10) if len(xs) > 1 else "short"


@given({"xs": [5], "n": 3}, {"xs": [5, 4], "n": 1}, {"xs": [], "n": 1})
@rhythm.workflow
async def chain_behind_and(xs: list[int], n: int) -> Any:
    return [len(xs) > 1 and n < xs[1] < 10, len(xs) < 2 or 1 < xs[1] < 4]


@given({"xs": [1, 2, 3]}, {"xs": []})
@rhythm.workflow
async def chain_in_while(xs: list[int]) -> int:
    i = 0
    while i < len(xs) and 0 < xs[i] < 3:
        i += 1
    return i


MEMBERS: list[tuple[Any, Any]] = [
    (1, [1, 2]), (3, [1, 2]), ("a", "cat"), ("", "cat"), ("a", {"a": 1}), ("b", {"a": 1}),
    (True, [1]), (1.0, [1]), ([1], [[1], 2]), (1, "abc"), (1, 5), (None, [None]), ({}, [{}]),
]  # fmt: skip


@given(*[{"x": x, "xs": xs} for x, xs in MEMBERS])
@rhythm.workflow
async def membership(x: Any, xs: Any) -> Any:
    return [x in xs, x not in xs, not x in xs]


@given({"x": "a"}, {"x": 2}, {"x": None})
@rhythm.workflow
async def membership_in_tuples(x: Any) -> Any:
    return [x in ("a", "b"), x in (1, 2), x not in (None,), x in {"a", "b"}]


@given({"xs": [1, 0, 2]}, {"xs": []}, {"xs": [0, ""]}, {"xs": "abc"}, {"xs": {"": 1}})
@rhythm.workflow
async def any_and_all(xs: Any) -> Any:
    return [any(xs), all(xs), any(x for x in xs), all(not x for x in xs), any([x == 2 for x in xs])]


@given({"xs": [1, 0, 2]}, {"xs": [0, 0]})
@rhythm.workflow
async def any_stops_early(xs: list[int]) -> Any:
    return any(10 / x > 5 for x in xs) if xs[0] else all(x > 0 and 1 / x for x in xs)


@given({"xs": [[1, 2], [3, 0]], "n": 3}, {"xs": [[]], "n": 3}, {"xs": [], "n": 1})
@rhythm.workflow
async def any_over_two_loops(xs: list[list[int]], n: int) -> Any:
    return [any(x == n for row in xs for x in row), all(x < n for row in xs for x in row if x)]


@given({"x": 0, "y": []}, {"x": 1, "y": [1]})
@rhythm.workflow
async def not_binds_loosely(x: Any, y: Any) -> Any:
    return [not x and not y, not (x and y), not x or y, (not x) == (not y)]


@given({"x": []}, {"x": [1]})
@rhythm.workflow
async def asserted(x: Any) -> Any:
    assert x, "it is empty"
    assert len(x) < 5
    return await echo(x)


@given({"x": []})
@rhythm.workflow
async def asserted_without_words(x: Any) -> Any:
    assert x
    return 1


@given({"x": 3})
@rhythm.workflow
async def asserted_with_a_value(x: Any) -> Any:
    assert x == 2, [x, None]
    return 1
