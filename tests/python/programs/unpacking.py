"""Assignments of several names, `:=`, and defaults."""

from __future__ import annotations

from typing import Any

import rhythm
from tests.python.given import given
from tests.python.programs._tasks import add, echo, numbers


@given({"a": 1, "b": 2})
@rhythm.workflow
async def swaps(a: Any, b: Any) -> Any:
    a, b = b, a
    x = y = [a, b]
    [c, d] = x
    return [a, b, c, d, y]


@given(
    {"xs": [1, 2, 3]},
    {"xs": [1]},
    {"xs": []},
    {"xs": "abc"},
    {"xs": 5},
    {"xs": {"a": 1, "b": 2, "c": 3}},
)
@rhythm.workflow
async def unpacks_three(xs: Any) -> Any:
    a, b, c = xs
    return [a, b, c]


@given({"xs": [1, 2, 3]}, {"xs": [1]}, {"xs": []}, {"xs": "abc"})
@rhythm.workflow
async def unpacks_with_star(xs: Any) -> Any:
    first, *rest = xs
    *init, last = xs
    more: list[Any] = [*xs, 9]
    a, *middle, z = more
    return [first, rest, init, last, a, middle, z]


@given({"x": [1, [2, [3, 4]]]}, {"x": [1, [2, 3]]})
@rhythm.workflow
async def unpacks_nested(x: Any) -> Any:
    a, (b, [c, d]) = x
    return [a, b, c, d]


@given({"n": 2})
@rhythm.workflow
async def unpacks_awaited(n: int) -> Any:
    a, b = await numbers(n)
    (c, d), e = [await numbers(2, start=5), await echo(n)]
    first, second = await add(1, 2), await add(a, b)
    return [a, b, c, d, e, first, second]


@given({"i": 0}, {"i": 1})
@rhythm.workflow
async def unpacks_into_elements(i: int) -> Any:
    xs: list[Any] = [0, 0]
    d: dict[str, Any] = {}
    xs[i], d["k"] = "a", "b"
    d["x"], d["y"] = [1, 2]
    i, xs[i] = 1, "z"
    return [xs, d, i]


@given({"n": 5}, {"n": 0})
@rhythm.workflow
async def walrus_in_conditions(n: int) -> Any:
    out: list[Any] = []
    if (m := n * 2) > 5:
        out.append(m)
    while (n := n - 1) > 2:
        out.append(n)
    return [out, m, n, (k := 3) + k]


@given({"n": 3}, {"n": 0})
@rhythm.workflow
async def walrus_with_await(n: int) -> Any:
    if (x := await echo(n)) and (y := await add(x, 1)) > 2:
        return [x, y]
    return [x]


@given({"xs": [1, 2, 3, 4]})
@rhythm.workflow
async def walrus_in_comprehension(xs: list[int]) -> Any:
    y = None
    big = [y for x in xs if (y := x * x) > 3]
    return [big, y]


@given({}, {"a": 5}, {"b": [1]}, {"a": 2, "c": None})
@rhythm.workflow
async def defaults(a: int = 1, b: Any = None, *, c: str | None = "c", d: float = 0.5) -> Any:
    return [a, b, c, d]


LIMIT = 10
NAMES = ["x", "y"]
TABLE: dict[str, Any] = {"low": 1, "high": {"at": LIMIT}}
PAIR = (1, 2)


@given({"n": 5}, {"n": 50})
@rhythm.workflow
async def constants(n: int) -> Any:
    level = "low" if n < LIMIT else "high"
    return [
        LIMIT + n,
        NAMES[0],
        NAMES + ["z"],
        TABLE[level],
        TABLE["high"]["at"],
        len(NAMES),
        level in TABLE,
    ]


@given({"n": 1})
@rhythm.workflow
async def constant_tuples(n: int) -> Any:
    a, b = PAIR
    return [a, b, n in PAIR, PAIR[0], [x for x in PAIR]]


@given({"x": 1})
@rhythm.workflow
async def annotated(x: int) -> Any:
    y: int
    y = x
    z: list[int] = [y]
    z += [2]
    return z


@given({"x": [1, 2]})
@rhythm.workflow
async def chain_of_targets(x: list[int]) -> Any:
    a, b = c = x
    return [a, b, c]


@given({"x": 1})
@rhythm.workflow
async def order_of_evaluation(x: int) -> Any:
    xs = [1, 2, 3]
    out = [xs.pop(), len(xs), xs.pop(0), xs, x, (x := 9), x]
    return [out, [x, await echo(1), (x := 2), x]]


@given({"x": 1})
@rhythm.workflow
async def order_with_awaits(x: int) -> Any:
    before = [x, await echo(x), (x := x + 1), await echo(x), x]
    d = {"a": x, "b": await echo(x), "c": (x := 7), "d": x}
    return [before, d, x + (x := 1) + x]


@given({"i": 0})
@rhythm.workflow
async def order_of_keys(i: int) -> Any:
    xs, d = [1, 2, 3], {"0": [0], "1": [1]}
    xs[(i := i + 1)] = i
    xs[i] += (i := 2)
    d[str(i - 1)].append((i := 0))
    xs[i] = xs[(i := 2)]
    return [xs, d, i]


@given()
@rhythm.workflow
async def nested_tuples_on_both_sides() -> Any:
    a, (b, *c), [d, (e,)] = 1, (2, 3, 4), (5, (6,))
    return [a, b, c, d, e]
