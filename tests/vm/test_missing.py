"""What is said of a property that is not there, in the words of each language; and `??`."""

from __future__ import annotations

from typing import Any

import rhythm
from rhythm.ir import instructions as ir
from rhythm.ir.program import Program
from rhythm.ir.verify import verify
from rhythm.lang.flow.compile import compile_flow
from rhythm.vm.interpreter import Completed, Failed, advance
from rhythm.vm.machine import Inputs
from rhythm.vm.snapshot import Snapshot
from tests.support.steps import choice, compiled, end


@rhythm.workflow(name="reads_what_is_not_there")
async def reads(order: dict[str, Any]) -> Any:
    return order["totl"]


def message(program: Program, inputs: Any) -> str:
    turn = advance(program, Snapshot(), Inputs("2026-11-15T09:00:00Z", "seed", inputs, {"id": "a"}))
    assert isinstance(turn, Failed)
    return f"{turn.error['code']}: {turn.error['message']}"


def test_flow_is_told_of_its_operator() -> None:
    program = compile_flow("return inputs.order.totl", "main.flow").programs_or_raise()[0]
    assert message(program, {"order": {"total": 1}}) == (
        "MissingProperty: there is no property `totl` (`?.` gives null); did you mean `total`?"
    )
    assert message(program, {"order": None}) == (
        "MissingProperty: null has no property `totl` (`?.` gives null)"
    )


def test_other_languages_are_not_told_of_an_operator_that_they_lack() -> None:
    condition = {"field": "order.totl", "operator": "gte", "value": 5}
    steps = compiled(choice("if", condition, "yes", "no"), end("yes"), end("no"))
    assert message(steps, {"order": None}) == "MissingProperty: null has no property `totl`"
    assert message(reads.program, {"order": {"total": 1}}) == "KeyError: 'totl'"


def test_a_stored_program_means_what_it_meant() -> None:
    """`??` takes a missing property since it is compiled to another access."""
    text = "return inputs.x ?? 1"
    (program,) = compile_flow(text, "main.flow").programs_or_raise()
    inputs = Inputs("2026-11-15T09:00:00Z", "seed", {}, {"id": "a"})
    ended = advance(program, Snapshot(), inputs)
    assert isinstance(ended, Completed)
    assert ended.result == 1
    access = ir.Logic("??", ir.Member(ir.Local("inputs"), "x"), ir.Const(1))
    before = verify(Program("main", "flow", program.version, (ir.Return(access),)))
    assert message(before, {}).startswith("MissingProperty: ")
