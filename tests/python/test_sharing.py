"""A change in place of what another name can reach is refused; every other change is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import rhythm
from rhythm.authoring.workflow import Workflow
from rhythm.lang.report import Compilation


@rhythm.task(name="sharing_same")
async def t(x: Any) -> Any:
    return x


async def ok_rows(items: list):
    rows = []
    for i in items:
        row = {"id": i}
        row["price"] = await t(i)
        rows.append(row)
    return rows


async def ok_dict(order: dict):
    order["a"] = 1
    order.setdefault("xs", []).append(3)
    return order


async def ok_count(items: list):
    n = {}
    for i in items:
        n[i] = n.get(i, 0) + 1
    total = 0
    for v in n.values():
        total += v
    return [n, total]


async def ok_balance(account: dict, deposit: dict):
    balance = account["balance"]
    balance += 5
    return [balance, account]


async def ok_stack(xs: list):
    out = []
    while xs:
        x = xs.pop()
        out.append(x)
    return out


async def ok_copy(xs: list):
    ys = list(xs)
    ys.append(1)
    return [xs, ys]


async def ok_grid(n: int):
    grid = [[0] * n for _ in range(n)]
    grid[0][1] = 5
    return grid


async def ok_swap(xs: list):
    xs[0], xs[1] = xs[1], xs[0]
    return xs


async def ok_walk(rows: list):
    out = []
    for row in rows:
        row["x"] = 1
        out.append(row)
    return out


async def ok_two(a: list, b: list):
    a.append(1)
    b.append(2)
    return [a, b]


async def ok_total(order: dict):
    total = order["total"]
    for item in order["items"]:
        total += item["price"]
    return [total, order]


async def ok_nested(d: dict):
    d["a"]["b"] = 1
    d["a"]["c"].append(2)
    return d


async def ok_state(n: int):
    state = {"done": [], "left": list(range(n))}
    while state["left"]:
        x = state["left"].pop(0)
        state["done"].append(await t(x))
    return state


async def ok_group(items: list):
    by = {}
    for i in items:
        if i["k"] not in by:
            by[i["k"]] = []
        by[i["k"]].append(i)
    return by


async def bad_alias(xs: list):
    ys = xs
    ys.append(1)
    return [xs, ys]


async def bad_inner(order: dict):
    items = order["items"]
    items.append(1)
    return order


async def bad_after(items: list):
    rows = []
    row = {}
    rows.append(row)
    row["x"] = 1
    return rows


async def bad_loop(xs: list):
    for x in xs:
        xs.insert(0, x)
    return xs


async def bad_item(rows: list):
    for row in rows:
        row["x"] = 1
    return rows


async def bad_mul(n: int):
    grid = [[0] * n] * n
    grid[0][1] = 5
    return grid


async def bad_twice(xs: list):
    d = {"a": xs, "b": xs}
    d["a"].append(1)
    return d


async def bad_dict_loop(d: dict):
    for k in d:
        d.pop(k)
    return d


async def bad_iadd(xs: list):
    ys = xs
    ys += [1]
    return xs


FINE: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (ok_rows, {"items": [1, 2]}),
    (ok_dict, {"order": {}}),
    (ok_count, {"items": ["a", "b", "a"]}),
    (ok_balance, {"account": {"balance": 3}, "deposit": {}}),
    (ok_stack, {"xs": [1, 2]}),
    (ok_copy, {"xs": [1]}),
    (ok_grid, {"n": 3}),
    (ok_swap, {"xs": [1, 2]}),
    (ok_walk, {"rows": [{}, {"x": 0}]}),
    (ok_two, {"a": [], "b": []}),
    (ok_total, {"order": {"total": 1, "items": [{"price": 2}]}}),
    (ok_nested, {"d": {"a": {"c": []}}}),
    (ok_state, {"n": 3}),
    (ok_group, {"items": [{"k": "a"}, {"k": "b"}, {"k": "a"}]}),
]
SHARED: list[tuple[Callable[..., Any], str]] = [
    (bad_alias, "P040"),
    (bad_inner, "P040"),
    (bad_after, "P040"),
    (bad_loop, "P041"),
    (bad_item, "P040"),
    (bad_mul, "P040"),
    (bad_twice, "P040"),
    (bad_dict_loop, "P041"),
    (bad_iadd, "P040"),
]


@pytest.mark.parametrize(("function", "inputs"), FINE, ids=lambda x: getattr(x, "__name__", ""))
def test_change_of_what_one_name_reaches_gives_what_python_gives(
    function: Callable[..., Any], inputs: dict[str, Any]
) -> None:
    import copy

    from tests.python.engine import run_in_process

    workflow: Workflow[..., Any] = Workflow(function, function.__name__, {})
    ended = run_in_process(workflow, copy.deepcopy(inputs))
    assert ended == asyncio.run(workflow.local(**copy.deepcopy(inputs)))


@pytest.mark.parametrize(("function", "code"), SHARED, ids=lambda x: getattr(x, "__name__", ""))
def test_change_that_python_would_show_elsewhere_is_refused(
    function: Callable[..., Any], code: str
) -> None:
    compiled: Compilation = Workflow(function, function.__name__, {}).compilation
    assert [wrong.code for wrong in compiled.errors] == [code]
    assert compiled.errors[0].help


def test_addition_to_what_may_be_a_shared_list_is_asked_when_it_runs() -> None:
    from rhythm.errors import ExecutionFailed
    from tests.python.engine import run_in_process

    workflow: Workflow[..., Any] = Workflow(ok_total, "ok_total", {})
    order = {"total": [1], "items": [{"price": [2]}]}
    with pytest.raises(ExecutionFailed, match="also held elsewhere"):
        run_in_process(workflow, {"order": order})
