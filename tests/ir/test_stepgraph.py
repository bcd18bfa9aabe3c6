"""The graph of steps: each by its name, with where it leads."""

from __future__ import annotations

from rhythm.ir.drawing import as_mermaid, as_text
from rhythm.ir.graph import graph
from tests.support.steps import allow, approval, block, choice, compiled, end, parallel, task, wait

STEPS = (
    choice("big", {"field": "order.total", "operator": "gte", "value": 100}, "ask", "pay"),
    approval(reason="big"),
    task("pay", "charge", on_failure="stop"),
    parallel(
        "both",
        {
            "a": [task("x"), allow("done")],
            "b": [wait("y", event="e", timeout="1h", on_timeout="z"), end("z")],
        },
    ),
    wait("rest", **{"for": "1m"}, next="big"),
    block("stop", reason="no"),
)


def test_outline_names_the_steps_and_says_where_they_lead() -> None:
    outline = [line[7:] for line in as_text(graph(compiled(*STEPS))).splitlines()[1:]]
    assert outline == [
        "◇ big: if order.total >= 100  yes ⟶ ask  no ⟶ pay",
        (
            '◔ ask: approval({ role: "boss", timeout: "24h", reason: "big", data: $context }) '
            " yes ⟶ pay  no ⟶ block"
        ),
        "   ⊘ block `big: ${decision}`",
        '● pay: task("charge")  error ⟶ stop',
        "∥ both: all  ⟶ rest  error ⟶ block",
        "  ├─ a: branch 1",
        "  └─ b: branch 2",
        "   ⊘ block data?.error.message",
        "   ┬ branch 1",
        '      ● x: task("echo")',
        "      ■ done: end of the branch",
        "   ┬ branch 2",
        '      ◔ y: event("e", { timeout: "1h" })  error ⟶ z',
        '      ■ z: return "z"',
        '◔ rest: sleep("1m")  ⟶ big',
        '⊘ stop: block "no"',
    ]


def test_flow_chart_has_every_step_and_every_edge_leads_to_a_node() -> None:
    drawn = graph(compiled(*STEPS))
    assert [node.step for node in drawn.nodes if node.step] == [
        "big",
        "ask",
        "pay",
        "both",
        "x",
        "done",
        "y",
        "z",
        "rest",
        "stop",
    ]
    assert all(0 <= edge.target < len(drawn.nodes) for edge in drawn.edges)
    assert '(["stop: block #34;no#34;"])' in as_mermaid(drawn)
