"""Loops: `for`, `while`, `else`, `break`, `continue`, and what they walk."""

from __future__ import annotations

from typing import Any

import rhythm
from tests.python.given import given
from tests.python.programs._tasks import double, echo, is_even, numbers

XS: list[dict[str, Any]] = [{"xs": xs} for xs in ([], [1], [1, 2, 3, 4])]


@given(*XS)
@rhythm.workflow
async def for_else(xs: list[int]) -> Any:
    for x in xs:
        if x == 3:
            break
    else:
        return "not found"
    return x


@given({"n": 0}, {"n": 2}, {"n": 10})
@rhythm.workflow
async def while_else(n: int) -> Any:
    out: list[Any] = []
    while n < 5:
        n += 1
        if n == 4:
            out.append("broke")
            break
        out.append(n)
    else:
        out.append("else")
    return out


@given(*XS)
@rhythm.workflow
async def continues(xs: list[int]) -> Any:
    out = []
    for x in xs:
        if x % 2:
            continue
        out.append(x)
    return out


@given({"xs": ["a", "b"]}, {"xs": []}, {"xs": "xy"}, {"xs": {"k": 1}})
@rhythm.workflow
async def enumerates(xs: Any) -> Any:
    out: list[Any] = []
    for i, x in enumerate(xs):
        out.append([i, x])
    for i, x in enumerate(xs, start=1):
        out.append([i, x])
    for i, x in enumerate(xs, 5):
        out.append(f"{i}{x}")
    return out


@given({"xs": [1, 2, 3], "ys": ["a", "b"]}, {"xs": [], "ys": ["a"]})
@rhythm.workflow
async def zips(xs: list[int], ys: list[str]) -> Any:
    out: list[Any] = []
    for x, y in zip(xs, ys):
        out.append(y * x)
    for x, y, z in zip(xs, ys, range(9), strict=False):
        out.append(f"{x}{y}{z}")
    return out


@given({"xs": [1, 2], "ys": [1]}, {"xs": [1], "ys": [2]})
@rhythm.workflow
async def zips_strictly(xs: list[int], ys: list[int]) -> Any:
    return [x + y for x, y in zip(xs, ys, strict=True)]


@given(
    {"a": 0, "b": 5, "c": 1},
    {"a": 5, "b": 0, "c": -2},
    {"a": 0, "b": 5, "c": 0},
    {"a": 3, "b": 3, "c": 1},
)
@rhythm.workflow
async def ranges(a: int, b: int, c: int) -> Any:
    out = []
    for i in range(a, b, c):
        out.append(i)
    for i in range(b):
        out.append(i)
    return [out, list(range(a, b)), 3 in range(a, b), sum(range(b)), len(range(a, b, c))]


@given({"d": {"a": 1, "b": 2}}, {"d": {}})
@rhythm.workflow
async def walks_dicts(d: dict[str, int]) -> Any:
    out: list[Any] = []
    for k in d:
        out.append(k)
    for k, v in d.items():
        out.append(f"{k}={v}")
    for v in d.values():
        out.append(v)
    for k in d.keys():
        out.append(k)
    for i, (k, v) in enumerate(d.items()):
        out.append([i, k, v])
    return out


@given({"x": 3}, {"x": None})
@rhythm.workflow
async def walks_wrong_type(x: Any) -> Any:
    for y in x:
        return y
    return None


@given({"n": 4})
@rhythm.workflow
async def nested_loops(n: int) -> Any:
    out = []
    for i in range(n):
        for j in range(n):
            if j > i:
                break
            if (i + j) % 2:
                continue
            out.append([i, j])
        else:
            out.append([i])
    return out


@given({"n": 3})
@rhythm.workflow
async def variable_after_loop(n: int) -> Any:
    i = -1
    for i in range(n):
        pass
    last = i
    for i in []:
        pass
    return [last, i]


@given({"n": 3})
@rhythm.workflow
async def loop_variable_is_set_again(n: int) -> Any:
    out = []
    for i in range(n):
        i = i * 10
        out.append(await echo(i))
    return out


@given({"n": 3})
@rhythm.workflow
async def walked_list_is_rebound(n: int) -> Any:
    xs = list(range(n))
    out = []
    for x in xs:
        xs = [9]
        out.append(x)
    return [out, xs]


@given({"n": 6})
@rhythm.workflow
async def awaits_in_conditions(n: int) -> Any:
    out: list[Any] = []
    while await is_even(n):
        n //= 2
        out.append(n)
        if n == 0:
            break
    else:
        out.append("odd")
    for i in await numbers(3, start=n):
        if not await is_even(i):
            continue
        out.append(await double(i))
    return out


@given({"n": 5})
@rhythm.workflow
async def endless_until_return(n: int) -> Any:
    i = 0
    while True:
        i = await echo(i + 1)
        if i > n:
            return i


@given({"n": 5})
@rhythm.workflow
async def endless_with_else(n: int) -> Any:
    while 1:
        n -= 1
        if n < 0:
            break
    else:
        n = 100
    return n


@given({"xs": [[1, 2], [3]]}, {"xs": [[1, 2], 3]})
@rhythm.workflow
async def loops_over_elements(xs: list[Any]) -> Any:
    total = 0
    for row in xs:
        for x in row:
            total += x
    return total


@given({"pairs": [[1, [2, 3]], [4, [5, 6]]]}, {"pairs": [[1, [2]]]})
@rhythm.workflow
async def nested_targets(pairs: list[Any]) -> Any:
    out = []
    for a, (b, c) in pairs:
        out.append(a * 100 + b * 10 + c)
    return out


@given({"rows": [[1, 2, 3], [4]]}, {"rows": [[]]})
@rhythm.workflow
async def starred_targets(rows: list[list[int]]) -> Any:
    out: list[Any] = []
    for first, *rest in rows:
        out.append([first, rest])
    return out


@given({"n": 4})
@rhythm.workflow
async def reversed_walks(n: int) -> Any:
    return [
        [i for i in reversed(range(n))],
        list(reversed([1, 2])),
        [x for x in sorted([3, 1], reverse=True)],
    ]


@given({"n": 3})
@rhythm.workflow
async def element_as_target(n: int) -> Any:
    d: dict[str, int] = {}
    for d["i"] in range(n):
        pass
    return d


@given({"n": 3})
@rhythm.workflow
async def loop_with_try(n: int) -> Any:
    out: list[Any] = []
    for i in range(n):
        try:
            if i == 1:
                continue
            out.append(i)
        finally:
            out.append(f"f{i}")
    return out
