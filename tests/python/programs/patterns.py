"""`match` on literals and shapes."""

from __future__ import annotations

from typing import Any

import rhythm
from tests.python.given import given
from tests.python.programs._tasks import echo

VALUES: list[Any] = [
    0,
    1,
    2,
    1.0,
    True,
    None,
    "a",
    "b",
    "",
    [],
    [1],
    [1, 2],
    [1, 2, 3],
    {},
    {"k": 1},
    {"k": 2, "x": 3},
    -1,
    ["go", "n"],
    {"type": "a", "v": [1]},
]
EACH: list[dict[str, Any]] = [{"x": x} for x in VALUES]


@given(*EACH)
@rhythm.workflow
async def match_literals(x: Any) -> Any:
    match x:
        case 0:
            return "zero"
        case 1 | 2:
            return "few"
        case "a":
            return "text"
        case None:
            return "none"
        case True:
            return "true"
        case -1:
            return "negative"
    return "other"


@given(*EACH)
@rhythm.workflow
async def match_sequences(x: Any) -> Any:
    match x:
        case []:
            out: Any = "empty"
        case [y]:
            out = ["one", y]
        case ["go", direction]:
            out = direction
        case [first, *rest] if len(rest) > 1:
            out = ["many", first, rest]
        case [a, b]:
            out = ["two", a, b]
        case _:
            out = "no list"
    return out


@given(*EACH)
@rhythm.workflow
async def match_mappings(x: Any) -> Any:
    match x:
        case {"type": "a", "v": [n]}:
            return ["typed", n]
        case {"k": 1}:
            return "one"
        case {"k": k, **rest}:
            return [k, rest]
        case {}:
            return "any dict"
        case _:
            return "no dict"


@given(*EACH)
@rhythm.workflow
async def match_types(x: Any) -> Any:
    match x:
        case bool():
            return "bool"
        case int(n):
            return ["int", n]
        case float():
            return "float"
        case str(s) if s:
            return s
        case list() | dict():
            return "container"
        case other:
            return ["other", other]


@given(*EACH)
@rhythm.workflow
async def match_captures(x: Any) -> Any:
    match x:
        case [1, *_, 3] as whole:
            return whole
        case (1 | 2) as n:
            return n
        case [*items, 2]:
            return items
        case x:
            return [x]


@given(*EACH)
@rhythm.workflow
async def match_without_default(x: Any) -> Any:
    found = None
    match x:
        case "b":
            found = await echo("is b")
        case [1, y] if await echo(y) == 2:
            found = y
    return found


@given({"cmd": "go north"}, {"cmd": "stop"}, {"cmd": "a b c"}, {"cmd": ""})
@rhythm.workflow
async def match_expression(cmd: str) -> Any:
    match cmd.split():
        case ["go", where]:
            return where
        case ["stop"]:
            return None
        case [_, _, last]:
            return last
    return "?"


@given({"n": 3})
@rhythm.workflow
async def match_in_loop(n: int) -> Any:
    out: list[Any] = []
    for i in range(n + 3):
        match i:
            case 1:
                continue
            case 4:
                break
            case k if k % 2:
                out.append("odd")
            case _:
                out.append(i)
    else:
        out.append("else")
    return out


@given({"a": 1, "b": 2}, {"a": 1, "b": 1})
@rhythm.workflow
async def match_pairs(a: int, b: int) -> Any:
    match [a, b]:
        case [x, y] if x == y:
            return "same"
        case [x, y]:
            return [y, x]


@given({"a": 1, "b": 2}, {"a": 3, "b": 3}, {"a": 5, "b": 6})
@rhythm.workflow
async def pairs_are_matched(a: int, b: int) -> Any:
    match (a, await echo(b)):
        case (1, 2):
            return "both"
        case (x, y) if x == y:
            return ["same", x]
        case _:
            return "other"
