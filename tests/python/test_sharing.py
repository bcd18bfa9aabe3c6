"""A change in place of what another name can reach is refused; every other change is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

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


async def ok_inner_rows(a: dict, b: dict, c: dict):
    out = []
    for row in a["rows"]:
        row["x"] = 1
        out.append(row)
    for i, row in enumerate(b["rows"]):
        row["i"] = i
        out.append(row)
    for key, row in c["rows"].items():
        row["key"] = key
        out.append(row)
    return out


@dataclass
class Line:
    sku: str
    count: int
    tags: list[str]


async def ok_fields_that_hold_nothing(lines: list[Line]):
    counts = {line.sku: line.count for line in lines}
    lines[0].count += 1
    lines.sort(key=lambda line: line.count)
    return [counts, lines]


class State(TypedDict):
    steps: list[dict[str, int]]
    n: int


async def ok_typed_state(n: int):
    state: State = {"steps": [], "n": 0}
    while state["n"] < n:
        state["steps"].append({"i": state["n"]})
        state["n"] += 1
    return state


async def bad_field_that_holds(lines: list[Line]):
    tags = [line.tags for line in lines]
    lines[0].tags.append("x")
    return [tags, lines]


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


TABLE = {"rows": [[1], [2]]}


async def ok_constant_copied(n: int):
    rows = [list(row) for row in TABLE["rows"]]
    rows[0].append(n)
    return [rows, TABLE]


async def ok_started_then_awaited(n: int):
    xs = [n]
    started = asyncio.create_task(t(xs))
    ys = await started
    xs.append(2)
    return [xs, ys]


async def ok_doubled(xs: list, n: Any):
    xs *= 2
    n *= 2
    return [xs, n]


async def ok_merged(d: Any):
    d |= {"b": 2}
    return d


async def ok_numbers_by_name(items: list):
    seen = {}
    log = []
    for i in items:
        seen[i] = seen.get(i, 0)
        seen[i] += 1
        log.append(dict(seen))
    return log


async def bad_finally(k: int):
    log = []
    try:
        if k:
            return [log]
    finally:
        log.append("done")
    return log


async def bad_constant(n: int):
    rows = TABLE["rows"]
    rows.append([n])
    return rows


async def bad_constant_row(n: int):
    for row in TABLE["rows"]:
        row.append(n)
    return n


async def bad_default(n: int, xs: list = [0]):  # noqa: B006  # that is what is refused
    xs.append(n)
    return xs


async def bad_started(n: int):
    xs = [n]
    started = asyncio.create_task(t(xs))
    xs.append(2)
    return await started


async def bad_enumerate(rows: list):
    for i, row in enumerate(rows):
        row.append(i)
    return rows


async def bad_items(d: dict):
    for k, v in d.items():
        v.append(k)
    return d


async def bad_zip(a: list, b: list):
    for x, _ in zip(a, b, strict=True):
        x.append(1)
    return a


async def bad_index(xs: list):
    by = {x["id"]: x for x in xs}
    by["a"]["seen"] = True
    return xs


async def bad_pairs(xs: list):
    by = dict(zip(["a"], [xs], strict=True))
    by["a"].append(1)
    return xs


async def bad_update(xs: list):
    by = {}
    by.update(a=xs)
    by["a"].append(1)
    return xs


async def bad_popitem(d: dict):
    held = list(d.values())
    _, last = d.popitem()
    last.append(1)
    return held


async def bad_flat(rows: list):
    flat = [x for row in rows for x in row]
    flat[0].append(1)
    return rows


async def bad_count(n: int):
    state = {"n": 0}
    log = []
    for _ in range(n):
        state["n"] += 1
        log.append(state)
    return log


async def ok_starred(xs: list):
    first, *rest, last = xs
    rest.append(first)
    return [xs, rest, last]


async def bad_starred(xs: list):
    first, *rest = xs
    rest[0].append(first)
    return xs


async def bad_starred_in_loop(rows: list):
    for _first, *rest in rows:
        for each in rest:
            each.append(1)
    return rows


async def bad_in_every_entry(names: list):
    base: list[int] = []
    by_name = {name: base for name in names}  # noqa: C420  # the comprehension is what is tested
    by_name["a"].append(1)
    return by_name


async def bad_inside_every_element(names: list):
    base: list[int] = []
    rows = [{"name": name, "seen": base} for name in names]
    rows[0]["seen"].append(1)
    return rows


async def bad_added_to_itself(n: int):
    rows = [[n]]
    both = rows + rows
    both[0].append(1)
    return both


FINE: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (ok_typed_state, {"n": 3}),
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
    (ok_inner_rows, {"a": {"rows": [{}, {}]}, "b": {"rows": [{}]}, "c": {"rows": {"a": {}}}}),
    (ok_fields_that_hold_nothing, {"lines": [Line("a", 2, []), Line("b", 1, [])]}),
    (ok_constant_copied, {"n": 3}),
    (ok_started_then_awaited, {"n": 3}),
    (ok_doubled, {"xs": [1], "n": 4}),
    (ok_doubled, {"xs": [1], "n": [4]}),
    (ok_merged, {"d": {"a": 1}}),
    (ok_numbers_by_name, {"items": ["a", "b", "a"]}),
    (ok_starred, {"xs": [1, [2], 3]}),
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
    (bad_field_that_holds, "P040"),
    (bad_finally, "P040"),
    (bad_constant, "P025"),
    (bad_constant_row, "P025"),
    (bad_default, "P025"),
    (bad_started, "P040"),
    (bad_enumerate, "P040"),
    (bad_items, "P040"),
    (bad_zip, "P040"),
    (bad_index, "P040"),
    (bad_pairs, "P040"),
    (bad_update, "P040"),
    (bad_popitem, "P040"),
    (bad_flat, "P040"),
    (bad_count, "P040"),
    (bad_starred, "P040"),
    (bad_starred_in_loop, "P040"),
    (bad_in_every_entry, "P040"),
    (bad_inside_every_element, "P040"),
    (bad_added_to_itself, "P040"),
]


@pytest.mark.parametrize(("function", "inputs"), FINE, ids=lambda x: getattr(x, "__name__", ""))
def test_change_of_what_one_name_reaches_gives_what_python_gives(
    function: Callable[..., Any], inputs: dict[str, Any]
) -> None:
    import copy

    from tests.python.corpus import normal
    from tests.python.engine import run_in_process

    workflow: Workflow[..., Any] = Workflow(function, function.__name__, {})
    ended = run_in_process(workflow, normal(inputs))
    assert ended == normal(asyncio.run(workflow.local(**copy.deepcopy(inputs))))


@pytest.mark.parametrize(("function", "code"), SHARED, ids=lambda x: getattr(x, "__name__", ""))
def test_change_that_python_would_show_elsewhere_is_refused(
    function: Callable[..., Any], code: str
) -> None:
    compiled: Compilation = Workflow(function, function.__name__, {}).compilation
    assert [wrong.code for wrong in compiled.errors] == [code]
    assert compiled.errors[0].help


@pytest.mark.parametrize("held", [{"b": 1}, [1]])
def test_change_of_what_may_be_shared_by_an_operator_is_asked_when_it_runs(held: Any) -> None:
    from rhythm.errors import ExecutionFailed
    from tests.python.engine import run_in_process

    async def merged(d: Any):
        other = d
        if isinstance(d, dict):
            d |= {"a": 1}
        else:
            d *= 2
        return other

    workflow: Workflow[..., Any] = Workflow(merged, "merged", {})
    with pytest.raises(ExecutionFailed, match="also held elsewhere"):
        run_in_process(workflow, {"d": held})


def test_addition_to_what_may_be_a_shared_list_is_asked_when_it_runs() -> None:
    from rhythm.errors import ExecutionFailed
    from tests.python.engine import run_in_process

    workflow: Workflow[..., Any] = Workflow(ok_total, "ok_total", {})
    order = {"total": [1], "items": [{"price": [2]}]}
    with pytest.raises(ExecutionFailed, match="also held elsewhere"):
        run_in_process(workflow, {"order": order})
