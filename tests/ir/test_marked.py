"""The graph of an execution: the nodes where it is, and where it has been."""

from __future__ import annotations

import pytest

from rhythm.ir import instructions as ir
from rhythm.ir.drawing import as_mermaid, as_text
from rhythm.ir.graph import Graph, graph, marked
from rhythm.ir.program import Program
from rhythm.lang.languages import compile_text

TEXT = """workflow w(inputs) {
  let a = await task("one")
  let b = a
  if (b) {
    await all([branch { await task("two") }, branch { await sleep(1) }])
  }
  await signal("go")
}"""
STEPS = """{"workflow_id": "s", "steps": [
  {"id": "first", "type": "task", "task": "t", "next": "second"},
  {"id": "second", "type": "action", "action": "allow"}
]}"""


def compiled(text: str, name: str) -> Program:
    (program,) = compile_text(text, name).programs_or_raise()
    return program


@pytest.fixture(scope="module")
def program() -> Program:
    return compiled(TEXT, "w.flow")


def at(program: Program, call: str) -> int:
    """The instruction that awaits this."""
    return next(
        pc
        for pc, each in enumerate(program.code)
        if isinstance(each, ir.Await) and call in repr(each)
    )


def marks(drawn: Graph) -> dict[str, str]:
    return {node.label: node.mark for node in drawn.nodes if node.mark}


def test_graph_without_an_execution_has_no_marks(program: Program) -> None:
    assert marks(graph(program)) == {}
    assert "▶" not in as_text(graph(program))
    assert "classDef" not in as_mermaid(graph(program))


def test_nodes_say_where_it_is_and_where_it_has_been(program: Program) -> None:
    one, go = at(program, "'one'"), at(program, "'go'")
    drawn = marked(graph(program), {go}, {one})
    assert marks(drawn) == {'a = task("one")': "passed", 'signal("go")': "here"}
    lines = as_text(drawn).splitlines()
    assert lines[1] == '    2✓ ● a = task("one")'
    assert lines[-2 if "return" in lines[-1] else -1] == '    7▶ ◔ signal("go")'
    # without the marks it is drawn as before
    plain = as_text(graph(program)).splitlines()
    assert [line.replace("✓", " ").replace("▶", " ") for line in lines] == plain


def test_branches_that_are_awaited_are_places_too(program: Program) -> None:
    both = {at(program, "'two'"), at(program, "'sleep'")}
    drawn = marked(graph(program), {*both, at(program, "'one'")}, both)
    assert list(marks(drawn).values()) == ["here"] * 3  # here is more than passed


def test_one_that_has_not_begun_is_at_the_beginning(program: Program) -> None:
    drawn = marked(graph(program), {-1}, ())
    assert marks(drawn) == {"w": "here"}
    assert as_text(drawn).splitlines()[0] == "w ▶"


def test_what_is_not_drawn_belongs_to_what_is_before_it(program: Program) -> None:
    assert isinstance(program.code[1], ir.Set)
    assert marks(marked(graph(program), {1}, ())) == {'a = task("one")': "here"}
    assert marks(marked(graph(program), {10_000}, ()))  # of a program that was another one


def test_flow_chart_has_a_class_for_each_mark(program: Program) -> None:
    drawn = marked(graph(program), {at(program, "'go'")}, {at(program, "'one'")})
    chart = as_mermaid(drawn).splitlines()
    numbers = {node.mark: f"n{i}" for i, node in enumerate(drawn.nodes)}
    for mark in ("here", "passed"):
        assert f"  class {numbers[mark]} {mark}" in chart
        assert any(line.startswith(f"  classDef {mark} ") for line in chart)


def test_step_is_one_node_however_many_instructions_it_has() -> None:
    program = compiled(STEPS, "s.steps.json")
    first, second = (first for first, _, _ in program.steps)
    for statement in range(first, second):
        drawn = marked(graph(program), {statement}, ())
        assert [node.step for node in drawn.nodes if node.mark] == ["first"]
