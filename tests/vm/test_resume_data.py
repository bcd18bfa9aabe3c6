"""What a person gives when resuming an execution: `ctx.resume_data`, and the context of a program
that has one."""

from __future__ import annotations

from typing import Any

import pytest

from rhythm.ir import instructions as ir
from rhythm.ir.program import Program
from rhythm.ir.verify import verify
from rhythm.lang.flow.compile import compile_flow
from rhythm.vm.interpreter import Completed, Suspended, advance
from rhythm.vm.machine import Inputs, Signal
from rhythm.vm.snapshot import Snapshot, decode_snapshot, encode_snapshot

INPUTS = Inputs("2026-11-15T09:00:00Z", "seed", {"a": 1, "b": 1}, {"id": "run"})
GO = (Signal("s", "go"),)
_CONTEXT = ir.Local("$context")
_GIVEN = ir.Logic("??", ir.Member(ir.Local("ctx"), "resume_data"), ir.Const({}))
STEPS = verify(
    Program(
        "steps",
        "steps",
        "v",
        (
            ir.Set("$context", ir.Call("merge", (ir.Local("inputs"), _GIVEN))),
            ir.Await(ir.Operation("signal", (ir.Const("go"),)), None, ("$context",)),
            ir.Return(_CONTEXT),
        ),
    )
)


def stored(turn: object) -> Snapshot:
    assert isinstance(turn, Suspended)
    return decode_snapshot(encode_snapshot(turn.snapshot))


def flow(text: str) -> Program:
    return compile_flow(text, "main.flow").programs_or_raise()[0]


def ended(program: Program, *given: Any) -> Any:
    """The result after a turn with each of these resume data, and one more with the signal `go`."""
    snapshot = Snapshot()
    for data in given:
        snapshot = stored(advance(program, snapshot, INPUTS.replace(resume_data=data)))
    turn = advance(program, snapshot, INPUTS.replace(signals=GO))
    assert isinstance(turn, Completed)
    return turn.result


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ([None], None),
        ([None, {"x": 1}], {"x": 1}),
        ([{"x": 1}], {"x": 1}),
        ([None, {"x": 1}, None], {"x": 1}),
        ([None, {"x": 1}, {"y": 2}], {"y": 2}),
        ([None, {"x": 1}, {}], {}),
    ],
)
def test_ctx_has_the_data_of_the_last_resume_until_the_next(given: list[Any], seen: Any) -> None:
    assert ended(flow('await signal("go")\nreturn ctx.resume_data'), *given) == seen


def test_data_is_seen_in_the_very_turn_that_it_comes_with() -> None:
    program = flow('await signal("go")\nreturn ctx.resume_data')
    snapshot = stored(advance(program, Snapshot(), INPUTS))
    turn = advance(program, snapshot, INPUTS.replace(signals=GO, resume_data={"x": 1}))
    assert isinstance(turn, Completed)
    assert turn.result == {"x": 1}


def test_a_turn_that_only_takes_resume_data_is_a_change_to_be_stored() -> None:
    program = flow('await signal("go")')
    snapshot = stored(advance(program, Snapshot(), INPUTS))
    turn = advance(program, snapshot, INPUTS.replace(resume_data={"x": 1}))
    assert isinstance(turn, Suspended)
    assert turn.snapshot is not snapshot
    unchanged = advance(program, turn.snapshot, INPUTS)
    assert isinstance(unchanged, Suspended)
    assert unchanged.snapshot is turn.snapshot


@pytest.mark.parametrize(
    ("given", "context"),
    [
        ([None], {"a": 1, "b": 1}),
        ([{"b": 2}], {"a": 1, "b": 2}),
        ([None, {"b": 2}], {"a": 1, "b": 2}),
        ([None, {"b": 2}, {"c": 3}], {"a": 1, "b": 2, "c": 3}),
        ([None, {"b": 2}, {"b": 3}, None], {"a": 1, "b": 3}),
    ],
)
def test_data_is_merged_into_the_context_of_a_program_that_has_one(
    given: list[Any], context: Any
) -> None:
    assert ended(STEPS, *given) == context
