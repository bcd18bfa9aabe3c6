"""Several things at once: gather, all, any, race, completed, task groups, limits of time."""

from __future__ import annotations

import asyncio
from typing import Any

import rhythm
from tests.python.given import given
from tests.python.programs._tasks import add, double, echo, fails, maybe, plain


@given({"xs": [1, 2, 3]}, {"xs": []})
@rhythm.workflow
async def gathers(xs: list[int]) -> Any:
    a, b = await asyncio.gather(double(1), add(2, 3))
    many = await asyncio.gather(*[double(x) for x in xs])
    return [a, b, many, await rhythm.gather(echo(1), echo("b"))]


@given({"xs": [1, 2, 3]}, {"xs": []})
@rhythm.workflow
async def all_of_list(xs: list[int]) -> Any:
    some = await rhythm.all([double(x) for x in xs if x != 2])
    two = await rhythm.all([echo(1), plain.run(2)])
    both = await rhythm.all([add(x, y) for x in xs for y in xs if x < y])
    return [some, two, both]


@given({"x": 4})
@rhythm.workflow
async def all_of_dict(x: int) -> Any:
    found = await rhythm.all({"a": double(x), "b": echo(x)})
    return [found["a"], found["b"], found]


@given({"xs": [1, 2, 3]})
@rhythm.workflow
async def all_with_limit(xs: list[int]) -> Any:
    return await rhythm.all([double(x) for x in xs], concurrency=2)


@given({"xs": [1, 2], "bad": 2}, {"xs": [1], "bad": 5})
@rhythm.workflow
async def gather_fails(xs: list[int], bad: int) -> Any:
    try:
        return await asyncio.gather(*[maybe(x, bad) for x in xs])
    except ValueError as e:
        return str(e)


@given({"xs": [1, 2], "bad": 2})
@rhythm.workflow
async def gather_fails_uncaught(xs: list[int], bad: int) -> Any:
    return await asyncio.gather(*(maybe(x, bad) for x in xs))


@given({"x": 1})
@rhythm.workflow
async def first_of(x: int) -> Any:
    found = await rhythm.any([echo(x), rhythm.sleep("1h")])
    raced = await rhythm.race({"fast": double(x), "slow": rhythm.sleep(3600)})
    return [found["key"], found["result"], raced["key"], raced["status"], raced["result"]]


@given({"xs": [1, 2, 3]}, {"xs": []})
@rhythm.workflow
async def as_completed(xs: list[int]) -> Any:
    out = []
    async for done in rhythm.completed([double(x) for x in xs]):
        out.append([done["key"], done["result"]])
    return sorted(out)


@given({"xs": [1, 2, 3]})
@rhythm.workflow
async def completed_until(xs: list[int]) -> Any:
    n = 0
    async for _ in rhythm.completed([double(x) for x in xs], concurrency=2):
        n += 1
        if n == 2:
            break
    else:
        n = 100
    return n


@given({"x": 1})
@rhythm.workflow
async def created_tasks(x: int) -> Any:
    first = asyncio.create_task(double(x))
    second = asyncio.create_task(echo(x))
    middle = await echo("middle")
    return [await second, middle, await first]


@given({"x": 1})
@rhythm.workflow
async def task_group(x: int) -> Any:
    async with asyncio.TaskGroup() as group:
        a = group.create_task(double(x))
        b = group.create_task(add(x, 1))
    return [a.result(), b.result(), await a]


@given({"xs": [1, 2]})
@rhythm.workflow
async def task_group_in_loop(xs: list[int]) -> Any:
    started = []
    async with asyncio.TaskGroup() as group:
        for x in xs:
            started.append(group.create_task(double(x)))
    return [task.result() for task in started]


@given({"xs": [1, 2]}, {"xs": []})
@rhythm.workflow
async def created_in_comprehension(xs: list[int]) -> Any:
    started = [asyncio.create_task(double(x)) for x in xs]
    first = [await task for task in started]
    return [first, await asyncio.gather(*started)]


@given({"x": 1})
@rhythm.workflow
async def in_time(x: int) -> Any:
    a = await asyncio.wait_for(double(x), timeout=60)
    b = await asyncio.wait_for(echo(x), 5)
    async with asyncio.timeout(60):
        c = await double(b)
    with rhythm.timeout("5m"):
        d = await echo(c)
        d += await echo(1)
    return [a, b, c, d]


@given({"x": 1})
@rhythm.workflow
async def too_late(x: int) -> Any:
    first = "in time"
    try:
        await asyncio.wait_for(rhythm.sleep(100), timeout=1)
    except TimeoutError:
        first = "late"
    try:
        async with asyncio.timeout(1):
            await asyncio.sleep(100)
            await echo(x)
    except TimeoutError:
        return [first, "later"]
    return x


@given({"x": 1})
@rhythm.workflow
async def fails_in_time(x: int) -> Any:
    try:
        await asyncio.wait_for(fails("KeyError", "k"), timeout=60)
    except KeyError as e:
        return str(e)


@given({"x": 1})
@rhythm.workflow
async def sleeps(x: int) -> Any:
    await rhythm.sleep(1)
    await asyncio.sleep(0.5)
    await rhythm.sleep("1h30m")
    return await echo(x)


@given({"xs": [3, 1, 2]})
@rhythm.workflow
async def gathered_values(xs: list[int]) -> Any:
    results = await asyncio.gather(*[double(x) for x in xs])
    pairs = {str(x): r for x, r in zip(xs, results, strict=True)}
    return [sum(results), pairs, max(await rhythm.gather(*[echo(x) for x in xs]))]


@given({"xs": [[1, 2], [3, 4]]})
@rhythm.workflow
async def fan_out_taken_apart(xs: list[list[int]]) -> Any:
    return [
        await asyncio.gather(*[add(a, b) for a, b in xs]),
        await rhythm.all([add(i, x[0]) for i, x in enumerate(xs)]),
    ]


@given({"xs": [1, 2, 3, 4, 5]})
@rhythm.workflow
async def batches(xs: list[int]) -> Any:
    out: list[int] = []
    for i in range(0, len(xs), 2):
        out += await asyncio.gather(*[double(x) for x in xs[i : i + 2]])
    return out


@given({"inner": 1, "outer": 50}, {"inner": 50, "outer": 1}, {"inner": 500, "outer": 500})
@rhythm.workflow
async def cleans_up_after_a_timeout(inner: int, outer: int) -> Any:
    """Hours, so that the time a worker takes to come back does not matter."""
    log: list[str] = []
    try:
        with rhythm.timeout(outer * 3600):
            try:
                with rhythm.timeout(inner * 3600):
                    try:
                        await rhythm.sleep(200 * 3600)
                    finally:
                        log.append(await echo("inner cleanup"))
            finally:
                await rhythm.sleep(1)
                log.append(await echo("outer cleanup"))
    except rhythm.Timeout:
        log.append("late")
    return log
