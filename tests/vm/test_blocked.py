"""Ending blocked: neither a result nor a failure."""

from __future__ import annotations

from rhythm.ir import instructions as ir
from rhythm.ir.program import Program
from rhythm.ir.verify import verify
from rhythm.lang.flow.compile import compile_flow
from rhythm.vm import commands as c
from rhythm.vm.interpreter import Blocked, Failed, advance
from rhythm.vm.machine import Inputs
from rhythm.vm.snapshot import Snapshot
from tests.support.world import World

INPUTS = Inputs("2026-11-15T09:00:00Z", "seed", {"id": 7}, {"id": "run"})


def ending(*before: ir.Instruction) -> Program:
    reason, data = (
        ir.Template((ir.Const("order "), ir.Member(ir.Local("inputs"), "id"))),
        ir.Const({"step": "stop"}),
    )
    return verify(Program("blocking", "steps", "v", (*before, ir.Block(reason, data, 5))))


def test_a_block_ends_the_turn_with_its_reason() -> None:
    turn = advance(ending(), Snapshot(), INPUTS)
    assert turn == Blocked(
        (), False, {"code": "Blocked", "message": "order 7", "data": {"step": "stop"}}, 5
    )


def test_what_was_started_goes_on_when_its_execution_is_blocked() -> None:
    turn = advance(
        ending(ir.Start(ir.Operation("task", (ir.Const("notify"),)))), Snapshot(), INPUTS
    )
    assert isinstance(turn, Blocked)
    assert turn.commands == (c.StartTask(1, "notify", None, {}),)


def test_a_cancelled_execution_is_cancelled_also_where_it_would_be_blocked() -> None:
    turn = advance(ending(), Snapshot(cancelled=True), INPUTS.replace(cancel=True))
    assert isinstance(turn, Failed)
    assert turn.cancelled


def test_a_parent_sees_a_blocked_child_as_failed_with_the_reason_as_data() -> None:
    text = (
        'try { return await workflow("blocking", { id: 7 }) } catch (e) { return [e.code, '
        "e.message, e.data.error] }"
    )
    world = World(
        [*compile_flow(text, "main.flow").programs_or_raise(), ending()], through_json=True
    )
    error = {"code": "Blocked", "message": "order 7", "data": {"step": "stop"}}
    assert world.run("main").value == ["ChildFailed", "`blocking` was blocked: order 7", error]
