"""The graph of a program: the whole outline and the whole chart for one program, laws for all the
others."""

from __future__ import annotations

import re
from functools import cache

import pytest

from rhythm.ir import instructions as ir
from rhythm.ir.drawing import as_mermaid, as_text
from rhythm.ir.graph import Graph, graph
from rhythm.ir.locals import falls_through, targets
from rhythm.ir.program import Program
from rhythm.lang.flow.compile import compile_flow
from tests.ir.samples import ORDER, compiled
from tests.support.cases import all_cases

SMALL = """\
workflow small(inputs) {
  while (inputs.again) {
    try {
      let ok = await signal("go", { timeout: "1h" })
      if (ok == "<b>") { break } else if (!ok) { throw "no [way]" } else { log(`${ok}`) }
    } catch (e) {
      await all({ mail: task("mail", { e }), first: any([sleep(1), branch { return e }]) })
    }
  }
  return await workflow("next")
}
"""

OUTLINE = """\
small
    2  ↻ while inputs.again
          ┄ try
    4        ◔ ok = signal("go", { timeout: "1h" })
    5        ◇ if ok == "<b>"
    5           ↪ break  ⟶ line 10
    5        ◇ else if !ok
    5           ✗ throw "no [way]"  ⟶ catch (e)
             else
    5           » log(`${ok}`)
          ┄ catch (e)
    7        ∥ all
               ├─ mail: task("mail", { e })
               └─ first: any
                  ├─ sleep(1)
                  └─ branch 1
    7           ┬ branch 1
    7              ■ return e
   10  ◉ workflow("next")
   10  ■ return the result"""

CHART = """\
flowchart TD
  n0(["small"])
  n1{{"while inputs.again"}}
  n2("try")
  n3[/"ok = signal(#34;go#34;, #123; timeout: #34;1h#34; #125;)"/]
  n4{"if ok == #34;#60;b#62;#34;"}
  n5("break")
  n6{"if !ok"}
  n7(["throw #34;no #91;way#93;#34;"])
  n8>"log(#96;$#123;ok#125;#96;)"]
  n9("catch (e)")
  n10[["all<br/>├─ mail: task(#34;mail#34;, #123; e #125;)<br/>└─ first: any<br/>   ├─ sleep(1)<br/>   └─ branch 1"]]
  n11(["branch 1"])
  n12(["return e"])
  n13[["workflow(#34;next#34;)"]]
  n14(["return the result"])
  n10 -. starts .-> n11
  n0 --> n1
  n1 -- yes --> n2
  n1 -- no --> n13
  n2 --> n3
  n3 --> n4
  n2 -. error .-> n9
  n4 -- yes --> n5
  n4 -- no --> n6
  n5 --> n13
  n6 -- yes --> n7
  n6 -- no --> n8
  n7 -. error .-> n9
  n8 --> n1
  n9 --> n10
  n10 --> n1
  n11 --> n12
  n13 --> n14"""

CASES = [case for case in all_cases() if not case.diagnostics and case.text.count("\n") > 4]
TEXTS = {**{str(case): case.text for case in CASES[::5]}, "small": SMALL, "order": ORDER}


@pytest.fixture(params=TEXTS)
def program(request: pytest.FixtureRequest) -> Program:
    """The longest program of a case; it is compiled when a test asks for it."""
    return _longest(request.param)


@cache
def _longest(name: str) -> Program:
    found = compile_flow(TEXTS[name], f"{name}.flow").programs
    return max(found, key=lambda program: len(program.code))


def test_the_outline_of_a_small_program() -> None:
    assert as_text(graph(compiled(SMALL))) == OUTLINE


def test_the_chart_of_a_small_program() -> None:
    assert as_mermaid(graph(compiled(SMALL))) == CHART


def drawn(body: str) -> Graph:
    return graph(compiled(f"workflow w(inputs) {{\n{body}\n}}", "w.flow"))


def edges(of: Graph) -> list[tuple[str, str, str]]:
    """The edges by labels of nodes."""
    return [
        (of.nodes[edge.source].label, edge.label, of.nodes[edge.target].label) for edge in of.edges
    ]


def test_a_return_passes_finally_and_leads_nowhere_else() -> None:
    found = edges(drawn('try { return 1 } finally { await task("tidy") }\nawait task("never")'))
    assert ("return 1", "next", "finally") in found
    assert not [edge for edge in found if "never" in edge[0] + edge[2]]
    assert [edge for edge in found if edge[0] == 'task("tidy")'] == []


def test_break_and_continue_pass_finally_to_where_they_lead() -> None:
    found = edges(
        drawn(
            "while (inputs) { try { if (inputs.a) { break }; continue } finally { "
            'log("x") } }\nawait task("after")'
        )
    )
    assert ("break", "next", "finally") in found
    assert ("continue", "next", "finally") in found
    assert {edge[2] for edge in found if edge[0] == 'log("x")'} == {'task("after")', "while inputs"}


def test_a_loop_that_a_try_begins_with_does_not_begin_the_try_again() -> None:
    found = edges(drawn('try { while (inputs) { await task("a") } } catch { log("x") }'))
    assert ('task("a")', "next", "while inputs") in found
    assert [edge[0] for edge in found if edge[2] == "try"] == ["w"]


def test_a_throw_leads_to_the_innermost_handler() -> None:
    found = edges(drawn('try { try { throw "x" } finally { log("in") } } catch (e) { log("out") }'))
    assert ('throw "x"', "error", "finally") in found
    assert ("try", "error", "catch (e)") in found


def test_nested_finallys_are_passed_one_after_the_other() -> None:
    found = edges(drawn('try { try { return 1 } finally { log("in") } } finally { log("out") }'))
    assert ('log("in")', "next", "finally") in found
    assert [edge for edge in found if edge[0] == 'log("out")'] == []


def test_a_try_that_is_left_in_several_ways_is_drawn_once() -> None:
    shown = drawn(
        "for (i in inputs) { try { if (i) { break }; if (inputs.a) { return 1 }; log(i) } "
        "finally { log(2) } }"
    )
    assert [node.label for node in shown.nodes if node.kind in ("try", "finally")] == [
        "try",
        "finally",
    ]
    assert {node.depth for node in shown.nodes if node.label in ("break", "log(i)")} == {4, 3}


def test_what_is_computed_only_is_not_drawn() -> None:
    assert [
        node.label for node in drawn("let a = 1\nif (a) { a += 1 } else { a = 2 }\nreturn a").nodes
    ] == ["w", "if a", "return a"]


def test_control_characters_and_long_texts_stay_on_one_line() -> None:
    program = compiled(
        "workflow w(inputs) { await task(`a\n\\u001b[31m" + "b" * 300 + "`) }", "w.flow"
    )
    outline = as_text(graph(program))
    assert len(outline.splitlines()) == 3
    assert "\x1b" not in outline
    assert max(map(len, outline.splitlines())) < 120


def test_jumps_that_no_block_explains_are_drawn_as_jumps() -> None:
    """Another front end may jump as it likes."""
    task = ir.Await(ir.Operation("task", (ir.Const("t"),)))
    code = (task, ir.Jump(3), task, ir.JumpUnless(ir.Local("inputs"), 0), ir.Return(ir.Const(1)))
    outline = as_text(graph(Program("w", "json", "v", code)))
    assert "↪ go on  ⟶ line 1" in outline
    assert "↪ unless inputs  ⟶ line 1" in outline


def test_edges_lead_from_known_nodes_to_known_nodes(program: Program) -> None:
    of = graph(program)
    numbers = range(len(of.nodes))
    assert of.nodes[0].kind == "start"
    assert all(edge.source in numbers and edge.target in numbers for edge in of.edges)
    assert len(set(of.edges)) == len(of.edges)


def test_every_operation_that_can_be_reached_is_drawn_once(program: Program) -> None:
    reached = [program.code[pc] for pc in sorted(reachable(program))]
    waits = [
        program.position(i.at)[0] for i in reached if isinstance(i, ir.Await | ir.Start | ir.Gather)
    ]
    nodes = [
        node.line
        for node in graph(program).nodes
        if node.kind in ("task", "workflow", "wait", "group")
    ]
    assert sorted(nodes) == sorted(waits)


def reachable(program: Program) -> set[int]:
    ahead, reached = [0, *program.branches], set[int]()
    while ahead:
        pc = ahead.pop()
        if pc not in reached:
            reached.add(pc)
            ahead += following(program.code[pc], pc)
            ahead += [
                handler.target for handler in program.handlers if handler.first <= pc < handler.last
            ]
    return reached


def following(instruction: ir.Instruction, pc: int) -> list[int]:
    match instruction:
        case ir.JumpUnless(ir.Const(True)):  # `while (true)` goes on only by `break`
            return [pc + 1]
    return targets(instruction) + ([pc + 1] if falls_through(instruction) else [])


def test_every_node_can_be_reached_from_the_start(program: Program) -> None:
    of = graph(program)
    reached, ahead = set[int](), [0]
    while ahead:
        number = ahead.pop()
        if number not in reached:
            reached.add(number)
            ahead += [edge.target for edge in of.edges if edge.source == number]
    assert [of.nodes[number] for number in range(len(of.nodes)) if number not in reached] == []


@pytest.mark.parametrize("leaves", ["return 1", 'throw "x"'])
def test_what_follows_a_finally_that_always_leaves_is_not_drawn(leaves: str) -> None:
    body = f"try {{ await sleep(1) }} finally {{ {leaves} }}\nlog(2)"
    outline = as_text(graph(compiled(f"workflow w {{ {body} }}")))
    assert "finally" in outline
    assert "log" not in outline


def test_the_chart_has_a_line_for_each_node_and_edge_and_nothing_to_trip_over(
    program: Program,
) -> None:
    of = graph(program)
    head, *rest = as_mermaid(of).split("\n")
    boxes, arrows = rest[: len(of.nodes)], rest[len(of.nodes) :]
    assert head == "flowchart TD"
    for number, box in enumerate(boxes):
        match = re.fullmatch(rf'  n{number}[\[({{>/]+"(.+)"[\])}}/]+', box)
        assert match, box
        assert not re.search(r'["\[\]{}<>&`|\\]', match[1].replace("<br/>", "")), box
    assert all(
        re.fullmatch(r"  n\d+ (-->|-- \w+ -->|-\. \w+ \.->) n\d+", arrow) for arrow in arrows
    )
    assert len(arrows) == len(of.edges)


def test_the_outline_shows_every_node(program: Program) -> None:
    of, outline = graph(program), as_text(graph(program))
    assert all(node.label in outline for node in of.nodes)
    assert len(outline.splitlines()) >= len(of.nodes)
