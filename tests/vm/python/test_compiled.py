"""The common cases that are written out give what the general functions give, in every shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rhythm.errors import InvalidProgram
from rhythm.ir import instructions as ir
from rhythm.ir.codec import dump_program, load_program
from rhythm.ir.listing import show
from rhythm.ir.operations import PYTHON
from rhythm.ir.program import Program
from rhythm.ir.verify import verify
from rhythm.ir.versions import ir_version
from rhythm.lang.flow.compile import compile_flow
from rhythm.limits import DEFAULT_LIMITS, INT_MAX, INT_MIN
from rhythm.vm.expressions import ExpressionCompiler
from rhythm.vm.interpreter import Completed, advance
from rhythm.vm.python.compiled import COMPILED
from rhythm.vm.snapshot import Snapshot
from rhythm.vm.values import Fault
from tests.support.length import sampled
from tests.vm.python.against import (
    DICTS,
    INPUTS,
    INTEGERS,
    LISTS,
    NUMBERS,
    TEXTS,
    VALUES,
    Ended,
    check_ended,
    machine,
    ours,
)

OPERANDS = st.one_of(
    st.tuples(INTEGERS, INTEGERS), st.tuples(NUMBERS, NUMBERS), st.tuples(VALUES, VALUES),
    st.tuples(LISTS, st.integers(-4, 4)), st.tuples(DICTS, TEXTS), st.tuples(TEXTS, TEXTS),
)  # fmt: skip
several = settings(max_examples=sampled(60, 1500), deadline=None)


def evaluated(node: ir.Expression, **frame: Any) -> Ended:
    compiled = ExpressionCompiler(DEFAULT_LIMITS).compile(node)
    try:
        return "gives", compiled({**frame, "$m": machine()})
    except Fault as fault:
        return "raises", fault.code if fault.at == 7 else "a fault without its place"


@pytest.mark.parametrize("name", COMPILED)
@given(pair=OPERANDS)
@several
def test_every_shape_of_a_call_gives_the_same(name: str, pair: tuple[Any, Any]) -> None:
    count = PYTHON[name].least
    args = pair[:count]
    if name == "py.mul" and any(isinstance(x, int) and abs(x) > 200 for x in args):
        args = (7, 8)
    wanted = ours(name.removeprefix("py."), *args)
    names = [ir.Local("a"), ir.Local("b")][:count]
    constants = [ir.Const(arg) for arg in args]
    for operands in (names, constants, [names[0], *constants[1:]], [constants[0], *names[1:]]):
        node = ir.Call(name, tuple(operands), 7)
        check_ended(evaluated(node, a=args[0], b=args[-1]), wanted, name, args)


@given(a=VALUES, b=VALUES)
@several
def test_and_and_or_take_the_truth_of_python(a: Any, b: Any) -> None:
    left, right = ir.Local("a"), ir.Local("b")
    assert evaluated(ir.Logic("and", left, right), a=a, b=b) == ("gives", a and b)
    assert evaluated(ir.Logic("or", left, right), a=a, b=b) == ("gives", a or b)


def test_the_right_side_is_evaluated_only_if_the_left_does_not_decide() -> None:
    failing = ir.Call("py.neg", (ir.Const("a"),), 7)
    assert evaluated(ir.Logic("and", ir.Const([]), failing)) == ("gives", [])
    assert evaluated(ir.Logic("or", ir.Const([0]), failing)) == ("gives", [0])


# counting


@pytest.mark.parametrize(("call", "start", "end"), [
    ("py.add(i, 1)", 1, 2), ("py.iadd(i, 2)", 1, 3), ("py.sub(i, 1)", 1, 0),
    ("py.add(i, 1)", 1.5, 2.5), ("py.sub(i, 1)", True, 0),
])  # fmt: skip
def test_a_counter_counts(call: str, start: Any, end: Any) -> None:
    assert run(f"let i = {json.dumps(start)}\ni = {call}\nreturn i") == end


def test_a_counter_overflows() -> None:
    for text in (f"let i = {INT_MAX}\ni = py.add(i, 1)", f"let i = {INT_MIN}\ni = py.sub(i, 1)"):
        (program,) = compile_flow(text).programs_or_raise()
        turn = advance(program, Snapshot(), INPUTS)
        assert turn.error["code"] == "OverflowError"  # type: ignore[union-attr]


def run(text: str) -> Any:
    (program,) = compile_flow(text).programs_or_raise()
    turn = advance(program, Snapshot(), INPUTS)
    assert isinstance(turn, Completed), turn
    return turn.result


# the version of a program


def program_of(value: ir.Expression, version: int) -> Program:
    return Program("w", "flow", "v", (ir.Return(value),), ir=version)


NEW = [ir.Call("py.neg", (ir.Const(1),)), ir.Logic("and", ir.Const(1), ir.Const(2)),
    ir.Unary("!", ir.Logic("or", ir.Const(1), ir.Const(2)))]  # fmt: skip
OLD = [ir.Const(1), ir.Call("abs", (ir.Const(1),)), ir.Logic("&&", ir.Const(1), ir.Const(2))]


@pytest.mark.parametrize("value", NEW, ids=show)
def test_a_program_with_the_meaning_of_python_is_of_version_2(value: ir.Expression) -> None:
    assert ir_version((ir.Return(value),)) == 2
    program = verify(program_of(value, 2))
    assert load_program(dump_program(program)) == program
    with pytest.raises(InvalidProgram, match="instruction 0: needs IR version 2"):
        verify(program_of(value, 1))


@pytest.mark.parametrize("value", OLD, ids=show)
def test_a_program_without_it_stays_of_version_1(value: ir.Expression) -> None:
    assert ir_version((ir.Return(value),)) == 1
    verify(program_of(value, 1))


def test_the_compiler_says_which_version_a_program_needs() -> None:
    for text, version in (
        ("return 1 + 1", 1),
        ("return py.add(1, 1)", 2),
        ("return [py.neg(x) for x in [1]]", 2),
    ):
        (program,) = compile_flow(text).programs_or_raise()
        assert program.ir == version


def test_a_listing_shows_the_meaning() -> None:
    assert [show(value) for value in NEW] == ["py.neg(1)", "1 and 2", "!(1 or 2)"]
