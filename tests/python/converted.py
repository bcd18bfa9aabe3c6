"""Python workflows that are hard to write in `.flow`, each with the inputs that it is run with.

None of them is registered: other tests do not see them.
"""

# What people write, and converting must take.
# ruff: noqa: B002, B007, B020, PERF401, PERF402, PIE800, RET504, RET505, RUF006, RUF021

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import rhythm
from rhythm.authoring.workflow import Workflow
from rhythm.worker.handlers import Task

CASES: dict[str, tuple[Workflow[..., Any], list[dict[str, Any]]]] = {}
TASKS: dict[str, Task[..., Any]] = {}


def case(*inputs: dict[str, Any]) -> Callable[[Any], Any]:
    """Makes a function a workflow that is run with each of these inputs."""

    def add(function: Any) -> Workflow[..., Any]:
        made: Workflow[..., Any] = Workflow(function, function.__name__, {})
        CASES[made.name] = made, list(inputs)
        return made

    return add


def task(function: Any) -> Task[..., Any]:
    made: Task[..., Any] = Task(function, function.__name__, None, 0, None, None, (), False)
    TASKS[made.name] = made
    return made


@task
async def double(n: int) -> int:
    return 2 * n


@task
async def refuse(why: str) -> None:
    raise ValueError(why)


@case({"xs": [1, 2, 3]})
async def loop_variable_after_its_loop(xs: list[int]) -> Any:
    x = 0
    for x in xs:
        pass
    return x


@case({"rows": [[1, 2], [3], []]})
async def one_variable_for_two_loops(rows: list[list[int]]) -> Any:
    seen = []
    for x in rows:
        for x in x:  # type: ignore[assignment]
            seen.append(x)
    return seen


@case({"xs": [1, 2]}, {"xs": []})
async def same_loop_variable_twice(xs: list[int]) -> Any:
    out = []
    for x in xs:
        out.append(x)
    for x in xs:
        x += 1
        out.append(x)
    return out


@case({"xs": [1, 5, 2, 7]})
async def value_kept_from_round_to_round(xs: list[int]) -> Any:
    best, place = None, 0
    found: list[Any] = []
    for x in xs:
        if best is None or x > best:
            best = x
            place = len(found)
        found.append([x, place])
    return found


@case({"xs": [3, 0, 4]})
async def set_in_each_branch(xs: list[int]) -> Any:
    out = []
    for x in xs:
        if x:
            word = "some"
        else:
            word = "none"
        out.append(word)
    return out


@case({"let": 1, "null": 2, "inputs": 3, "ctx": 4, "py": 5, "new": 6})
async def words_of_flow_as_names(
    let: int, null: int, inputs: int, ctx: int, py: int, new: int
) -> Any:
    catch, throw, function, of, const = let, null, inputs, ctx, py
    var = switch = new
    match = undefined = typeof = delete = True
    workflow = [catch, throw, function, of, const, var, switch, match, undefined, typeof, delete]
    branch = [_ for _ in workflow if _]
    for _ in range(2):
        branch += [_]
    return {"let": let, "null": null, "inputs": inputs, "branch": branch}


@case({"größe": 2})
async def letters_of_other_alphabets(größe: int) -> Any:
    名 = größe + 1
    名名 = 名 * 2
    grosse = 7
    return [größe, 名, 名名, grosse]


@case({"value": 1})
async def names_that_hidden_ones_would_get(value: int) -> Any:
    item, given, held, done, error = value, value + 1, None, "", 0
    both = [await double(n) for n in [item, given]]
    return [held or both, done or error or given, both and held]


@case({"a": 0, "b": ""}, {"a": 1, "b": ""}, {"a": [], "b": {"x": 0}})
async def and_and_or(a: Any, b: Any) -> Any:
    c = {"a": a}
    one = c["a"] or b or "neither"
    two = (c["a"] or b) and (b or c["a"]) and "both"
    three = [x or y and "last" for x in [a, b] for y in [b, a, 1]]
    four = 1 if (a and not b) or (b and not a) else 2
    return [one, two, three, four, not (a or b)]


@case({"n": 0}, {"n": 3})
async def short_circuit_awaits(n: int) -> Any:
    first = n or await double(4)
    second = n and await double(n)
    return [first, second, n > 1 and await double(n) > 5]


@case({})
async def chance_is_asked_once() -> Any:
    kept = random.random() + 1 or 2
    again = [(random.random() + 1 or 2) - 1 < 1 for _ in range(3)]
    return [1 <= kept < 2, again]


@case({"why": 'a "b" `c` ${d} \\ e\n\t\x07é😀\u202e'})
async def texts_with_signs(why: str) -> Any:
    text = 'a "b" `c` ${d} \\ e\n\t\x07é😀\u202e'
    return [
        text == why,
        f'{why!r} "x" `y` ${{z}} \\ \n{text:>5}',
        "${",
        f"${why}",
        {"a b": 1, "in": 2},
    ]


@case({"why": "no"})
async def failures(why: str) -> Any:
    seen = []
    for kind in ("task", "own", "none"):
        try:
            try:
                if kind == "task":
                    await refuse(why)
                elif kind == "own":
                    raise KeyError(why)
            except ValueError as problem:
                seen.append(str(problem))
            else:
                seen.append("fine")
            finally:
                seen.append(kind)
        except LookupError:
            seen.append("lookup")
            continue
    return seen


@case({"why": "over"})
async def failure_nobody_catches(why: str) -> Any:
    try:
        await refuse(why)
    except KeyError:
        return "never"
    finally:
        await double(1)
    return "neither"


@case({"n": 3}, {"n": 30})
async def loops_with_else(n: int) -> Any:
    out: list[Any] = []
    i = -1
    while n > 0:
        n -= 1
        if n == 20:
            out.append("broken")
            break
    else:
        out.append("ended")
    for i in range(3):
        if i == n:
            break
    else:
        out.append("for ended")
    return [*out, n, i]


@case({"n": 2})
async def endless_loops(n: int) -> Any:
    total = 0
    while True:
        n += 1
        if n % 2:
            continue
        while True:
            total += await double(n)
            break
        if n > 6:
            return total


@case({"n": 1}, {"n": 2})
async def code_that_is_never_reached(n: int) -> Any:
    if n == 1:
        return "one"
        n = 5
    else:
        raise ValueError("not one")
    left = n
    return left


@case({"xs": [1, 2, 3]})
async def groups(xs: list[int]) -> Any:
    listed = await asyncio.gather(*[double(x) for x in xs if x != 2])
    named = await rhythm.all({"a": double(1), "b": double(2)}, concurrency=1)
    pair = await asyncio.gather(double(xs[0]), double(xs[-1]))
    ended = []
    async for done in rhythm.completed([double(x) for x in xs], concurrency=1):
        ended.append(done["result"])
    return [listed, named, pair, ended]


@case({"n": 4})
async def started_and_awaited_later(n: int) -> Any:
    first = asyncio.create_task(double(n))
    asyncio.create_task(double(1))
    async with asyncio.TaskGroup() as group:
        second = group.create_task(double(n + 1))
        group.create_task(double(n + 2))
    return [await first, second.result()]


@case({"n": 4})
async def limits_of_time(n: int) -> Any:
    out = []
    try:
        with rhythm.timeout("1m"):
            out.append(await double(n))
            await rhythm.sleep("2m")
            out.append("never")
    except rhythm.Timeout:
        out.append("late")
    out.append(await asyncio.wait_for(double(n), 5))
    return out


@case({"n": 4})
async def child(n: int) -> Any:
    return {"n": n, "twice": await double(n)}


@case({"n": 4})
async def parent(n: int) -> Any:
    got = await child(n)
    return [got, await child(n=got["twice"])]


@case({"what": ["go", "north"]}, {"what": ["go"]}, {"what": {"to": 3}}, {"what": 5}, {"what": None})
async def shapes(what: Any) -> Any:
    match what:
        case ["go", where] if where == "south":
            return "warm"
        case ["go", where]:
            return where
        case ["go", *rest]:
            return rest
        case {"to": place}:
            found = place
        case 4 | 5 | 6:
            found = "number"
        case _:
            found = None
    return [found]


@case({"n": 5}, {"n": -5})
async def numbers(n: int) -> Any:
    inside = -10 < n < 10 <= 10
    far = -n + -2 - -3
    return [inside, far, -0.0, 1e300, 1e-7, -1, 10**15, n // 2, n % 3, -(-n), 1.0, not n < 0]


@case({"rows": [{"id": "a", "n": 2}, {"id": "b", "n": 1}]})
async def comprehensions(rows: list[dict[str, Any]]) -> Any:
    ids = {row["id"]: row["n"] for row in rows}
    flat = [[a, b] for a in ids for b in ids if a != b]
    ordered = sorted(rows, key=lambda row: row["n"])
    inner = [[n * m for m in range(n)] for n in ids.values()]
    if (size := len(rows)) > 1 and any(row["n"] > 1 for row in rows):
        flat.append([str(size)])
    return [ids, flat, ordered, inner]


@case({"xs": [1, 2]})
async def unpacking(xs: list[int]) -> Any:
    a, b = xs
    a, b = b, a
    first, *rest = [a, b, *xs]
    data: dict[str, Any] = {"list": [], **{"x": "y"}}
    data["list"].append("z")
    data.setdefault("more", []).extend(["w"])
    (c, [d, e]) = (a, [b, first])
    return [a, b, rest, data, c, d, e]


@case({"id": "7"}, {"id": "7", "note": "hi"})
async def inputs_with_defaults(id: str, note: str | None = None, tags: Any = ("a", "b")) -> Any:
    return {"id": id, "note": note or f"order {id}", "tags": tags}
