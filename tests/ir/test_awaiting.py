"""What an await looks like, and the table of its kinds: whoever adds one is told here what is
missing."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, get_args

import pytest

from rhythm.ir import awaiting
from rhythm.ir.awaiting import (
    KINDS,
    Plan,
    Row,
    has_row,
    has_timer,
    in_words,
    is_forgotten,
    leaves,
    needs_all,
    rows_of,
    waits_for_mail,
)
from rhythm.ir.operations import GROUPS, OPERATIONS
from rhythm.vm.awaits import Reserved, resolve
from rhythm.vm.machine import Inputs, Machine
from rhythm.vm.operations import start_operation
from rhythm.vm.snapshot import Snapshot

ARGUMENTS: dict[str, list[Any]] = {  # of a call of each operation
    "task": ["t"], "workflow": ["w"], "sleep": [1], "sleep_until": ["2030-01-01T00:00:00Z"],
    "signal": ["s"], "event": ["e"],
    "approval": [{"role": "r"}],
}  # fmt: skip


def machine() -> Machine:
    from rhythm.limits import DEFAULT_LIMITS

    return Machine(
        Snapshot(),
        Inputs(now="2030-01-01T00:00:00Z", seed="0", inputs=None, ctx={"id": "run"}),
        DEFAULT_LIMITS,
    )


def test_every_operation_is_called_here() -> None:
    assert ARGUMENTS.keys() == OPERATIONS.keys()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_begins_asks_for_a_row_and_is_awaited_as_its_kind_says(operation: str) -> None:
    m = machine()
    plan = start_operation(m, operation, ARGUMENTS[operation])
    assert plan["op"] in KINDS, f"`{operation}` needs its row in ir/awaiting.py"
    assert bool(m.commands) == has_row(plan), (
        "a command makes the row that stands for it, or none does"
    )
    assert ("name" in plan) == KINDS[plan["op"]].named
    assert resolve(m, plan, Reserved()) is None, "nothing has happened yet"
    assert in_words(plan)


def test_every_kind_has_words_and_a_row_that_a_store_has() -> None:
    assert {kind.row for kind in KINDS.values()} == set(get_args(Row))
    assert all(in_words({"op": op, "n": 7}) for op in KINDS)


@pytest.mark.parametrize(
    ("leaf", "row", "timer", "forgotten"),
    [
        ({"op": "task"}, True, False, False),
        ({"op": "sleep"}, True, True, True),
        ({"op": "event"}, True, False, True),
        ({"op": "approval"}, True, False, False),
        ({"op": "signal"}, False, False, False),
        ({"op": "signal", "timeout": 0}, False, False, False),
        ({"op": "signal", "timeout": 3}, True, True, True),
        ({"op": "settled"}, False, False, False),
    ],
)
def test_what_stands_for_an_await(leaf: Plan, row: bool, timer: bool, forgotten: bool) -> None:
    plan = {"n": 1, "name": "x", **leaf}
    assert (has_row(plan), has_timer(plan), is_forgotten(plan)) == (row, timer, forgotten)


def test_leaves_are_what_is_still_waited_for() -> None:
    loop = {
        "op": "completed",
        "n": 1,
        "first": 2,
        "count": 3,
        "of": {"op": "task", "name": "t"},
        "taken": [1],
    }
    ended = {"op": "settled", "n": 8, "status": "completed", "value": 1, "at": 0}
    group = {"op": "all", "n": 6, "items": [loop, ended, {"op": "sleep", "n": 9}]}
    assert [leaf["n"] for leaf in leaves(group)] == [2, 4, 9]
    assert list(leaves(None)) == []


def test_the_kinds_of_a_plan() -> None:
    group = {
        "op": "race",
        "n": 1,
        "items": [
            {"op": "event", "n": 2},
            {"op": "all", "n": 3, "first": 4, "count": 9, "of": {"op": "task"}},
        ],
    }
    assert rows_of(group) == {"wait", "task"}
    assert {op for op, kind in KINDS.items() if kind.pauses} == {"event", "approval"}
    assert {op for op, kind in KINDS.items() if kind.from_outside} == {
        "event",
        "approval",
        "signal",
    }


@pytest.mark.parametrize(
    ("plan", "all_of_it"),
    [
        ({"op": "task", "n": 1}, True),
        ({"op": "child", "n": 1}, False),
        ({"op": "sleep", "n": 1}, False),
        ({"op": "all", "n": 1, "items": []}, True),
        ({"op": "all", "n": 1, "items": [], "need": 1}, False),
        ({"op": "all", "n": 1, "items": [], "concurrency": 1, "released": 1}, False),
        ({"op": "any", "n": 1, "items": []}, False),
        ({"op": "completed", "n": 1, "items": [], "taken": []}, False),
    ],
)
def test_what_ends_only_with_all_of_it(plan: Plan, all_of_it: bool) -> None:
    assert needs_all(plan) == all_of_it


def test_only_a_lone_signal_is_a_wait_for_mail() -> None:
    signal = {"op": "signal", "n": 2, "name": "s"}
    assert waits_for_mail(signal)
    assert not waits_for_mail({"op": "all", "n": 1, "items": [signal]})
    assert not waits_for_mail({"op": "event", "n": 2, "name": "s"})
    assert not waits_for_mail(None)


def test_nobody_else_asks_for_a_kind_by_its_name() -> None:
    """Everybody but the interpreter asks the table: so a new kind is known everywhere at once."""
    source = Path(awaiting.__file__).parents[1]
    asking = [
        f"{path.relative_to(source)}:{node.lineno}"
        for folder in ("app", "cli", "engine", "http", "store", "worker")
        for path in (source / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare) and _names_a_kind(node)
    ]
    assert asking == []


def _names_a_kind(node: ast.Compare) -> bool:
    """Whether a plan's `op` is compared with a kind, or with the mode of a group."""
    sides = [node.left, *node.comparators]
    op = any(isinstance(side, ast.Subscript) and _is(side.slice, {"op"}) for side in sides)
    return op and any(_is(each, {*KINDS, *GROUPS}) for side in sides for each in ast.walk(side))


def _is(node: ast.AST, values: set[str]) -> bool:
    return isinstance(node, ast.Constant) and node.value in values


def test_nobody_else_walks_a_plan() -> None:
    """The shape of a group is known here and to the interpreter: the others ask."""
    source = Path(awaiting.__file__).parents[1]
    shapes = ('"items" in', '"first" in', '"taken" in', '"concurrency" in', '["released"]')
    knowing = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if any(shape in path.read_text() for shape in shapes)
    }
    assert knowing == {
        "ir/awaiting.py",
        "vm/awaits.py",
        "vm/interpreter.py",
        "vm/operations.py",
    }
