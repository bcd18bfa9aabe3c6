"""What `verify` refuses, one case for each reason, and that it lets the like of it pass that is
right."""

from __future__ import annotations

from typing import Any

import pytest

from rhythm.errors import InvalidProgram
from rhythm.ir import instructions as ir
from rhythm.ir.program import Program
from rhythm.ir.verify import HEIGHT, verify
from tests.ir.samples import ORDER, compiled

ONE, X = ir.Const(1), ir.Local("x")
END = ir.Return(ONE)
SET = ir.Set("x", ONE)
TASK = ir.Operation("task", (ir.Const("t"),))


def program(
    *code: Any, handlers: tuple[ir.Handler, ...] = (), branches: tuple[int, ...] = ()
) -> Program:
    return Program("p", "flow", "v", code, handlers, branches)


def nested(depth: int) -> ir.Expression:
    value: ir.Expression = ONE
    for _ in range(depth):
        value = ir.Unary("!", value)
    return value


REFUSED: list[tuple[str, Program]] = [
    ("program 'p' is empty", program()),
    ("instruction 0: is not an instruction", program(ONE)),
    ("instruction 0: goes to 2, outside the program", program(ir.Jump(2), END)),
    ("instruction 0: goes to -1, outside the program", program(ir.JumpUnless(ONE, -1), END)),
    (
        "instruction 1: goes to 9, outside the program",
        program(ir.Iterate("s", ONE), ir.Next("s", ("a",), 9), END),
    ),
    ("instruction 0: goes to 7, outside the program", program(ir.Pend("f", 0, 7), END)),
    ("instruction 0: runs off the end of the program", program(SET)),
    (
        "instruction 0: holds a constant that is not JSON: nan",
        program(ir.Return(ir.Const(float("nan")))),
    ),
    (
        "instruction 0: holds a constant that is not JSON: 1267650",
        program(ir.Return(ir.Const(2**100))),
    ),
    (
        "instruction 0: holds a constant that is not JSON: {1: 2}",
        program(ir.Return(ir.Const({1: 2}))),
    ),
    (
        "instruction 0: holds a constant that is not JSON: [{'a': (",
        program(ir.Return(ir.Const([{"a": ()}]))),
    ),
    ("instruction 0: uses an unknown operator '~'", program(ir.Return(ir.Unary("~", ONE)))),
    ("instruction 0: uses an unknown operator '**'", program(ir.Return(ir.Binary("**", ONE, ONE)))),
    ("instruction 0: uses an unknown operator '+'", program(ir.Return(ir.Logic("+", ONE, ONE)))),
    (
        "instruction 0: calls 'eval', which does not exist",
        program(ir.Return(ir.Call("eval", (ONE,)))),
    ),
    ("instruction 0: calls 'len' with 2 arguments", program(ir.Return(ir.Call("len", (ONE, ONE))))),
    (
        "instruction 0: calls 'teleport', which does not exist",
        program(ir.Await(ir.Operation("teleport", (ONE,))), END),
    ),
    (
        "instruction 0: calls 'sleep' with 0 arguments",
        program(ir.Await(ir.Operation("sleep", ())), END),
    ),
    ("instruction 0: calls 'shout', which does not exist", program(ir.Emit("shout", (ONE,)), END)),
    ("instruction 0: calls 'cancel' with 0 arguments", program(ir.Emit("cancel", ()), END)),
    (
        "instruction 0: has an unknown group 'most'",
        program(ir.Await(ir.Group("most", ir.OperandList((TASK,)))), END),
    ),
    (
        "instruction 0: starts branch 0, which does not exist",
        program(ir.Await(ir.Branch(0, ())), END),
    ),
    (
        "instruction 2: starts branch 0 with other locals than elsewhere",
        program(
            SET, ir.Await(ir.Branch(0, ())), ir.Await(ir.Branch(0, ("x",))), END, branches=(3,)
        ),
    ),
    ("a branch begins at 4, outside the program", program(END, branches=(4,))),
    (
        "instruction 1: walks with neither one nor two names",
        program(ir.Iterate("s", ONE), ir.Next("s", (), 2), END),
    ),
    ("instruction 0: walks with neither one nor two names", program(ir.Iterate("s", ONE, 3), END)),
    (
        "instruction 0: walks with neither one nor two names",
        program(ir.Return(ir.Comprehension(ONE, ("a", "b", "c"), ONE))),
    ),
    (
        "instruction 1: sets an element without saying which",
        program(SET, ir.SetPath("x", (), ONE), END),
    ),
    ("instruction 0: keeps what is no value", program(ir.Await(TASK, None, ("$m",)), END)),
    ("instruction 0: spreads outside a list or object", program(ir.Return(ir.Spread(ONE)))),
    (
        "instruction 0: spreads outside a list or object",
        program(ir.Return(ir.ObjectOf((("a", ir.Spread(ONE)),)))),
    ),
    ("instruction 0: has an entry without a key", program(ir.Return(ir.ObjectOf(((None, ONE),))))),
    (
        "instruction 0: starts operations inside an expression",
        program(ir.Return(ir.Comprehension(TASK, ("a",), ONE))),
    ),
    (
        "instruction 0: takes `completed` for another group",
        program(ir.Await(ir.Group("completed", ONE)), END),
    ),
    (
        "instruction 0: takes `completed` for another group",
        program(ir.Gather("s", ir.Group("all", ONE)), END),
    ),
    ("instruction 0: is nested too deep", program(ir.Return(nested(HEIGHT)))),
    ("instruction 0: uses '$m' as a variable", program(ir.Set("$m", ONE), END)),
    ("instruction 0: uses '$started' as a variable", program(ir.Await(TASK, "$started"), END)),
    ("instruction 0: uses '$origins' as a variable", program(ir.Set("$origins", ONE), END)),
    ("uses '$m' as a variable", program(END, handlers=(ir.Handler(0, 1, 0, "$m", "catch"),))),
    (
        "instruction 1: uses 's' as a variable; elsewhere it is a loop with 1 names",
        program(ir.Iterate("s", ONE), ir.Set("s", ONE), END),
    ),
    (
        "instruction 1: uses 's.i' as a variable; elsewhere it is a position",
        program(ir.Iterate("s", ONE), ir.Set("s.i", ONE), END),
    ),
    (
        "elsewhere it is a loop with 1 names",
        program(ir.Iterate("s", ONE), ir.Next("s", ("a", "b"), 2), END),
    ),
    ("elsewhere it is a variable", program(SET, ir.Take("x", "r", 2), END)),
    ("elsewhere it is a variable", program(SET, ir.EndFinally("x"))),
    (
        "uses 'x' as a pending finally",
        program(SET, END, handlers=(ir.Handler(0, 1, 1, "x", "finally"),)),
    ),
    ("is out of place", program(END, handlers=(ir.Handler(0, 5, 0, "e", "catch"),))),
    ("is out of place", program(END, handlers=(ir.Handler(1, 0, 0, "e", "catch"),))),
    ("is out of place", program(END, handlers=(ir.Handler(0, 1, 1, "e", "catch"),))),
    ("is out of place", program(END, handlers=(ir.Handler(0, 1, 0, "e", "maybe"),))),
]


@pytest.mark.parametrize(
    ("message", "wrong"), REFUSED, ids=[message[-60:] for message, _ in REFUSED]
)
def test_refuses(message: str, wrong: Program) -> None:
    with pytest.raises(InvalidProgram) as refused:
        verify(wrong)
    assert message in str(refused.value)


READS_TOO_EARLY: dict[str, tuple[int, str, Program]] = {
    "nothing set it": (0, "x", program(ir.Return(X))),
    "only one of two ways sets it": (2, "x", program(ir.JumpUnless(ONE, 2), SET, ir.Return(X))),
    "the await does not keep it": (2, "x", program(SET, ir.Await(TASK), ir.Return(X))),
    "an element is set of what is not there": (0, "x", program(ir.SetPath("x", (ONE,), ONE), END)),
    "the exit of a loop comes without its names": (2, "x",
        program(ir.Iterate("s", ONE), ir.Next("s", ("x",), 2), ir.Return(X))),
    "the loop's position was not kept": (
        1,
        "s.i",
        program(ir.Iterate("s", ONE), ir.Next("s", ("x",), 4), ir.Await(TASK, None, ("s",)),
            ir.Jump(1), END),
    ),
    "the failure came before it was set": (
        2,
        "x",
        program(ir.Await(TASK, "x"), END, ir.Return(X),
            handlers=(ir.Handler(0, 1, 2, "e", "catch"),)),
    ),
    "a branch does not take it": (2, "x",
        program(SET, ir.Return(ONE), ir.Return(X), branches=(2,))),
    "a branch takes what is not set": (0, "x",
        program(ir.Await(ir.Branch(0, ("x",))), END, branches=(1,))),
    "a comprehension's name is gone after it": (1, "x",
        program(ir.Set("y", ir.Comprehension(X, ("x",), ONE)), ir.Return(X))),
    "its source does not see the name": (0, "x",
        program(ir.Return(ir.Comprehension(X, ("x",), X)))),
    "nor does the rest of the expression": (0, "x",
        program(ir.Return(ir.ListOf((ir.Comprehension(X, ("x",), ONE), X))))),
    "the finally block on the way did not keep it": (
        4,
        "x",
        program(SET, ir.Pend("f", 4, 2), ir.Await(TASK, None, ("f",)), ir.EndFinally("f"),
            ir.Return(X)),
    ),
    "a finally that ended once has nothing pending": (1, "f",
        program(ir.Pend("f", 1, 2), ir.EndFinally("f"), ir.EndFinally("f"))),
}  # fmt: skip


@pytest.mark.parametrize("case", READS_TOO_EARLY)
def test_refuses_a_local_that_may_not_be_set(case: str) -> None:
    pc, name, wrong = READS_TOO_EARLY[case]
    with pytest.raises(InvalidProgram, match=rf"instruction {pc}: reads '{name}' before it is set"):
        verify(wrong)


ACCEPTED: dict[str, Program] = {
    "both ways set it": program(ir.JumpUnless(ONE, 3), SET, ir.Jump(4), SET, ir.Return(X)),
    "the await keeps it": program(SET, ir.Await(TASK, None, ("x",)), ir.Return(X)),
    "the await sets it": program(ir.Await(TASK, "x"), ir.Return(X)),
    "inputs and ctx are always there": program(ir.Await(TASK),
        ir.Return(ir.ListOf((ir.Local("inputs"), ir.Local("ctx"))))),
    "code that is never reached may read anything": program(END, ir.Return(X)),
    "a name inside its comprehension": program(ir.Return(ir.Comprehension(X, ("x",), ONE, X))),
    "the finally block keeps it": program(SET, ir.Pend("f", 4, 2), ir.Await(TASK, None, ("f", "x")),
        ir.EndFinally("f"), ir.Return(X)),
    "what leaves the finally block by another way does not count": program(
        SET, ir.Pend("f", 6, 2), ir.JumpUnless(ONE, 5), ir.Await(TASK), END, ir.EndFinally("f"),
        ir.Return(X)
    ),
    "not quite too deep": program(ir.Return(nested(HEIGHT - 1))),
    "a variable outlives a comprehension that uses its name": program(SET,
        ir.Set("y", ir.Comprehension(X, ("x",), ONE)), ir.Return(X)),
    "one name in two comprehensions side by side": program(
        ir.Return(ir.ListOf((ir.Comprehension(X, ("x",), ONE), ir.Comprehension(X, ("x",), ONE))))
    ),
    "everything at once": compiled(ORDER),
}  # fmt: skip


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepts(case: str) -> None:
    assert verify(ACCEPTED[case]) is ACCEPTED[case]
