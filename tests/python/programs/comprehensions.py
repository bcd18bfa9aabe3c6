"""Comprehensions, with and without awaits inside."""

from __future__ import annotations

from typing import Any

import rhythm
from tests.python.given import given
from tests.python.programs._tasks import double, echo, is_even, numbers

XS: list[dict[str, Any]] = [{"xs": xs} for xs in ([], [1], [1, 2, 3, 4])]


@given(*XS)
@rhythm.workflow
async def lists(xs: list[int]) -> Any:
    return [
        [x + 1 for x in xs],
        [x for x in xs if x % 2],
        [x for x in xs if x if x > 1],
        [[x, y] for x in xs for y in xs if x < y],
    ]


@given(*XS)
@rhythm.workflow
async def dicts(xs: list[int]) -> Any:
    return [
        {str(x): x for x in xs},
        {f"k{x}": [x] for x in xs if x > 2},
        {k: v for k, v in {"a": 1}.items()},
    ]


@given(*XS)
@rhythm.workflow
async def nested_lists(xs: list[int]) -> Any:
    return [[[y * x for y in xs] for x in xs], [z for row in [[x, -x] for x in xs] for z in row]]


@given({"d": {"a": 1, "b": 2}})
@rhythm.workflow
async def over_items(d: dict[str, int]) -> Any:
    return [
        [f"{k}{v}" for k, v in d.items()], {v2: k2 for k2, v2 in [["x", "y"]]},
        [i * v for i, v in enumerate(d.values())], [a + b for a, b in zip([1, 2], [3, 4], strict=True)],
        [k for k in d], sum(v for v in d.values()), sorted(k.upper() for k in d), [i for i, _ in enumerate(d)],
    ]  # fmt: skip


@given({"rows": [[1, [2, 3]], [4, [5, 6]]]}, {"rows": [[1, [2]]]}, {"rows": [1]})
@rhythm.workflow
async def taken_apart(rows: Any) -> Any:
    return [a + b * c for a, (b, c) in rows]


@given({"rows": [[1, 2, 3], [4]]})
@rhythm.workflow
async def with_stars(rows: Any) -> Any:
    return [[head, tail] for head, *tail in rows]


@given(*XS)
@rhythm.workflow
async def own_scope(xs: list[int]) -> Any:
    x = "outer"
    inner = [x for x in xs]
    return [x, inner, [x for _ in xs], [[x for x in [y]] for y in xs]]


@given(*XS)
@rhythm.workflow
async def awaits_in_elements(xs: list[int]) -> Any:
    return [
        [await double(x) for x in xs],
        {str(x): await double(x) for x in xs},
        [x for x in await numbers(3)],
    ]


@given(*XS)
@rhythm.workflow
async def awaits_in_tests(xs: list[int]) -> Any:
    return [x for x in xs if await is_even(x)]


@given(*XS)
@rhythm.workflow
async def awaits_in_nested(xs: list[int]) -> Any:
    return [await echo(x * y) for x in xs if x > 1 for y in await numbers(x) if y]


@given(*XS)
@rhythm.workflow
async def awaits_in_any(xs: list[int]) -> Any:
    return [any([await is_even(x) for x in xs]), all([await is_even(x) for x in xs])]


@given({"xs": [1, 0, 2]}, {"xs": [0]})
@rhythm.workflow
async def fails_inside(xs: list[int]) -> Any:
    return [10 // x for x in xs]


@given({"words": ["a", "bb", "a"]})
@rhythm.workflow
async def keys_win_last(words: list[str]) -> Any:
    return {w: i for i, w in enumerate(words)}


@given({"n": 3})
@rhythm.workflow
async def conditionals_inside(n: int) -> Any:
    return ["even" if i % 2 == 0 else "odd" for i in range(n)] + [i or "zero" for i in range(2)]


@given({"n": 3})
@rhythm.workflow
async def key_is_no_text(n: int) -> Any:
    pairs = {str(i): {str(j): i * j for j in range(n)} for i in range(n)}
    return pairs["2"]["2"]


@given({"xs": [3, 1, 2]})
@rhythm.workflow
async def in_arguments(xs: list[int]) -> Any:
    return [
        max(x * 2 for x in xs),
        sorted((x for x in xs), reverse=True),
        list(x for x in xs),
        ",".join(str(x) for x in xs),
        min([x for x in xs if x > 1]),
        dict((str(x), x) for x in xs),
    ]
