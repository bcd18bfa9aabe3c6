"""What an await looks like, and the table of its kinds: whoever adds one is told here what is
missing."""

from __future__ import annotations

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
    operations,
)
from rhythm.ir.operations import OPERATIONS
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
    assert operations(group) == {"event", "task"}
    assert {op for op, kind in KINDS.items() if kind.pauses} == {"event", "approval"}
    assert {op for op, kind in KINDS.items() if kind.from_outside} == {
        "event",
        "approval",
        "signal",
    }


def test_nobody_else_walks_a_plan() -> None:
    """The shape of a group is known here and to the interpreter: the others ask."""
    from pathlib import Path

    source = Path(awaiting.__file__).parents[1]
    shapes = ('"items" in', '"first" in')
    knowing = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if any(shape in path.read_text() for shape in shapes)
    }
    assert knowing <= {
        "ir/awaiting.py",
        "vm/awaits.py",
        "vm/statements.py",
        "engine/inputs.py",
        "engine/planning.py",
        "engine/retry_plan.py",
    }
