"""The ids of steps: those of their author, or the call and its line."""

from __future__ import annotations

import pytest

from rhythm.ir import instructions as ir
from rhythm.ir.program import Program
from rhythm.ir.step_ids import call_ids, steps_at
from rhythm.lang.languages import compile_text

TEXT = """workflow w(inputs) {
  let a = await task("charge", { n: 1 })
  let b = task("ship")
  await all([task("x"), task("y")])
  if (a) {
    await sleep(1); await sleep(2)
  }
  for (done of completed([task("x"), task("y")])) {
    log(done)
  }
  let c = await b
  await signal("go")
  return await workflow("child", {})
}"""


@pytest.fixture(scope="module")
def program() -> Program:
    (compiled,) = compile_text(TEXT, "w.flow").programs_or_raise()
    return compiled


def test_each_call_has_an_id_and_no_two_have_the_same(program: Program) -> None:
    ids = list(call_ids(program).values())
    assert ids == [
        "charge:2", "ship:3", "all:4", "sleep:6", "sleep:6.2", "completed:8", "completed:8.2",
        "await:11", "signal:12", "child:13",
    ]  # fmt: skip
    assert len({*ids}) == len(ids)


def test_step_that_follows_is_known_as_long_as_there_is_one_way(program: Program) -> None:
    following = {steps_at(program, pc)[0]: steps_at(program, pc)[1] for pc in call_ids(program)}
    assert following["charge:2"] == "ship:3"
    assert following["ship:3"] == "all:4"
    assert following["all:4"] is None  # that depends on `a`
    assert following["sleep:6"] == "sleep:6.2"
    assert following["completed:8.2"] is None
    assert following["signal:12"] == "child:13"
    assert following["child:13"] is None


def test_instruction_that_calls_nothing_is_no_step(program: Program) -> None:
    nothing = [pc for pc, each in enumerate(program.code) if not isinstance(each, ir.Await)]
    assert (None, None) in {steps_at(program, pc) for pc in nothing}
    assert steps_at(program, -1) == steps_at(program, 10_000) == (None, None)


def test_steps_of_a_python_workflow_have_its_lines() -> None:
    (made,) = compile_text('await_it = 1\ntask("t")\n', "plain.flow").programs_or_raise()
    assert list(call_ids(made).values()) == ["t:2"]


def test_endless_loop_without_a_call_has_no_step_after_it() -> None:
    text = "workflow w() {\n  await sleep(1)\n  while (true) { log(1) }\n}"
    (made,) = compile_text(text, "w.flow").programs_or_raise()
    assert [steps_at(made, pc) for pc in call_ids(made)] == [("sleep:2", None)]
