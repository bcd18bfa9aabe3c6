"""Awaits inside expressions: the order of evaluation is Python's."""

from __future__ import annotations

from typing import Any

import rhythm
from tests.python.given import given
from tests.python.programs._tasks import (
    add,
    double,
    echo,
    is_even,
    maybe,
    nothing,
    numbers,
    plain,
    upper,
)


@given({"a": 1, "b": 2})
@rhythm.workflow
async def in_arguments_of_calls(a: int, b: int) -> Any:
    return [
        await add(await double(a), await double(b)),
        max(await echo(a), await echo(b)),
        len(await numbers(3)),
        str(await echo(a)),
        (await echo("x")).upper(),
    ]


@given({"a": 1, "b": 2})
@rhythm.workflow
async def in_operators(a: int, b: int) -> Any:
    return [
        await echo(a) + await echo(b) * 2,
        -(await echo(a)),
        not await echo(a),
        a - await echo(b) - a,
        (await echo([1, 2]))[1],
        (await echo({"k": 5}))["k"],
    ]


@given({"x": 0}, {"x": 3}, {"x": None})
@rhythm.workflow
async def in_short_circuits(x: Any) -> Any:
    calls: list[str] = []
    a = await echo(x) or await echo("default")
    b = await echo(x) and await echo("and")
    c = x or await echo(None) or await nothing() or "last"
    return [a, b, c, calls, not (await echo(x) and True)]


@given({"x": 0}, {"x": 3})
@rhythm.workflow
async def short_circuit_does_not_call(x: int) -> Any:
    return x == 0 or await maybe(x, bad=0)


@given({"x": 0}, {"x": 3})
@rhythm.workflow
async def short_circuit_guards(x: int) -> Any:
    return x != 0 and await echo(10 // x) > 2


@given({"x": 0}, {"x": 3})
@rhythm.workflow
async def in_ternaries(x: int) -> Any:
    return [
        await echo("yes") if x else await echo("no"),
        "even" if await is_even(x) else "odd",
        (await echo(1) if x else 2) + 1,
    ]


@given({"x": 5}, {"x": 50}, {"x": -5})
@rhythm.workflow
async def in_chains(x: int) -> Any:
    return [
        await echo(0) < x < await echo(10),
        0 < await echo(x) < 10,
        await echo(1) == 1 == await echo(x),
    ]


@given({"x": 5})
@rhythm.workflow
async def chain_does_not_call(x: int) -> Any:
    return 10 < x < await maybe(x, bad=5)


@given({"x": 5})
@rhythm.workflow
async def in_literals(x: int) -> Any:
    return {
        "list": [await echo(x), await double(x)],
        "dict": {"a": await echo(1), "b": {"c": await echo(2)}},
        "text": f"{await upper('a')}-{await echo(x):03d}",
        await echo("key"): 1,
    }


@given({"xs": [1, 2, 3]})
@rhythm.workflow
async def in_subscripts(xs: list[int]) -> Any:
    xs[await echo(0)] = await echo(9)
    xs[1] += await echo(10)
    return [xs[await echo(-1)], xs[await echo(0) : await echo(2)], xs]


@given({"xs": [1, 2]})
@rhythm.workflow
async def in_methods(xs: list[int]) -> Any:
    out: list[Any] = []
    out.append(await echo(xs[0]))
    out.extend(await numbers(2))
    out.insert(await echo(0), await echo("first"))
    return [out, ",".join(await echo(["a", "b"])), "abc".replace(await echo("b"), await echo("x"))]


@given({"x": 1})
@rhythm.workflow
async def in_conditions(x: int) -> Any:
    if await is_even(x):
        return "even"
    elif await echo(x) == 1 and not await is_even(x):
        return "one"
    else:
        return await echo("other")


@given({"x": 1})
@rhythm.workflow
async def value_before_await_is_kept(x: int) -> Any:
    xs = [1]
    pair = [len(xs), await echo(0), xs.append(2), len(xs)]  # type: ignore[func-returns-value]
    total = x + await echo(1) + x
    return [pair, total]


@given({"x": 1})
@rhythm.workflow
async def augmented_awaits(x: int) -> Any:
    total = 10
    total += await echo(x)
    total -= await echo(1) * 2
    d = {"n": 1}
    d["n"] += await echo(5)
    text = "a"
    text += await upper("b")
    return [total, d, text]


@given({"x": [1]})
@rhythm.workflow
async def plain_tasks(x: Any) -> Any:
    return [await plain.run(x), await echo.run(x=2), await echo.options(retries=2)(3)]


@given({"d": {"a": 1, "b": 2}})
@rhythm.workflow
async def spread_arguments(d: dict[str, Any]) -> Any:
    return [
        await add(**d),
        await add(1, **{"b": 5}),
        await add(b=1, a=2),
        await numbers(2),
        await numbers(n=1, start=4),
    ]


@given({"x": 2})
@rhythm.workflow
async def in_asserts_and_raises(x: int) -> Any:
    assert await is_even(x), await echo("odd")
    try:
        raise ValueError(await upper("why"))
    except ValueError as e:
        return str(e)


@given({"x": 2})
@rhythm.workflow
async def in_return_of_nothing(x: int) -> Any:
    await echo(x)
    return await nothing()


@given({"x": 2})
@rhythm.workflow
async def nested_deeply(x: int) -> Any:
    return await add(
        await add(await add(x, 1), await add(x, 2)), await echo(await double(await echo(x)))
    )


@given({"x": 2})
@rhythm.workflow
async def in_loops_and_slices(x: int) -> Any:
    return [n for n in (await numbers(5))[1:] if n > x] + [
        await echo(i) for i in range(await echo(2))
    ]


@given({"x": 1})
@rhythm.workflow
async def no_result(x: int) -> Any:
    y = await nothing()
    if x > 5:
        return 1
    await echo(y)


@given({"x": True}, {"x": False})
@rhythm.workflow
async def keyword_defaults(x: bool) -> Any:
    return await maybe(1, bad=None if x else 2)
