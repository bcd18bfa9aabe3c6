"""A graph as text: an outline for the terminal, or a Mermaid flow chart."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rhythm.ir.graph import Graph, GraphNode
from rhythm.ir.labels import Item

_MARKS = {
    "task": "●", "workflow": "◉", "wait": "◔", "group": "∥", "decision": "◇", "loop": "↻",
    "emit": "»", "return": "■", "throw": "✗",
    "block": "⊘",
    "jump": "↪", "try": "┄", "catch": "┄", "finally": "┄", "branch": "┬",
}  # fmt: skip
# Nodes that do not go on with the line below: the outline says where they go.
_LEAVING = ("return", "throw", "jump")

_SHAPES = {  # the brackets that Mermaid puts around a label
    "start": ("([", "])"), "return": ("([", "])"), "throw": ("([", "])"), "block": ("([", "])"),
    "branch": ("([", "])"),
    "workflow": ("[[", "]]"),
    "wait": ("[/", "/]"), "decision": ("{", "}"), "loop": ("{{", "}}"), "group": ("[[", "]]"),
    "emit": (">", "]"), "task": ("[", "]"),
    "jump": ("(", ")"), "try": ("(", ")"), "catch": ("(", ")"), "finally": ("(", ")"),
}  # fmt: skip
# in the outline, before the node: where an execution is, and what it has passed
PLACES = {"here": "▶", "passed": "✓"}
_CLASSES = {"here": "stroke-width:4px,stroke:#d33", "passed": "stroke:#393"}
_ARROWS = {"next": "-->", "error": "-. error .->", "branch": "-. starts .->"}
_SPECIAL = re.compile(r"[^\w\s.,:=+*/?!()'$%…├└│─-]")


def as_text(graph: Graph) -> str:
    """Returns an outline: one line for each node, with its source line, indented like its block."""
    first, gone_to = graph.nodes[0], _gone_to(graph)
    lines = [f"{graph.name} {PLACES[first.mark]}" if first.mark else graph.name]
    for number, node in enumerate(graph.nodes[1:], 1):
        if node.opens_else:
            lines.append(_line(0, node.depth - 1, "else"))
        lines.append(
            _line(
                node.line,
                node.depth,
                f"{_MARKS[node.kind]} {node.label}{gone_to.get(number, '')}",
                PLACES.get(node.mark, " "),
            )
        )
        lines += [_line(0, node.depth, f"  {row}") for row in _tree(node.items)]
    return "\n".join(lines)


def _line(line: int, depth: int, text: str, place: str = " ") -> str:
    return f"{line or '':>5}{place} {'   ' * (depth - 1)}{text}"


def _gone_to(graph: Graph) -> dict[int, str]:
    """Returns, by node number, the text that says where the node leads."""
    arrows: dict[int, str] = {}
    if graph.by_name:
        return _led_to(graph)
    for edge in graph.edges:
        target = graph.nodes[edge.target]
        if graph.nodes[edge.source].kind in _LEAVING and edge.label != "yes":
            arrows[edge.source] = (
                f"{arrows.get(edge.source, '')}  ⟶ "
                f"{f'line {target.line}' if target.line else target.label}"
            )
    return arrows


def _led_to(graph: Graph) -> dict[int, str]:
    """Returns where each step leads, if not simply to the next line."""
    arrows: dict[int, str] = {}
    for edge in graph.edges:
        plain = edge.label == "next" and edge.target == edge.source + 1
        if not plain and edge.label != "branch" and edge.source:
            target, how = graph.nodes[edge.target], "" if edge.label == "next" else f"{edge.label} "
            arrows[edge.source] = (
                f"{arrows.get(edge.source, '')}  {how}⟶ {target.step or target.kind}"
            )
    return arrows


def _tree(items: tuple[Item, ...]) -> Iterator[str]:
    for i, item in enumerate(items):
        last = i == len(items) - 1
        yield f"{'└' if last else '├'}─ {item.label}"
        yield from (f"{' ' if last else '│'}  {row}" for row in _tree(item.items))


def as_mermaid(graph: Graph) -> str:
    """Returns a flow chart in Mermaid's notation, for Markdown."""
    lines = ["flowchart TD"]
    for i, node in enumerate(graph.nodes):
        left, right = _SHAPES[node.kind]
        lines.append(f'  n{i}{left}"{_box(node)}"{right}')
    arrows = [
        f"  n{edge.source} {_ARROWS.get(edge.label, f'-- {edge.label} -->')} n{edge.target}"
        for edge in graph.edges
    ]
    return "\n".join([*lines, *arrows, *_classes(graph)])


def _classes(graph: Graph) -> Iterator[str]:
    """Yields the lines that make the marked nodes look different."""
    for mark, style in _CLASSES.items():
        if numbers := [f"n{i}" for i, node in enumerate(graph.nodes) if node.mark == mark]:
            yield f"  classDef {mark} {style}"
            yield f"  class {','.join(numbers)} {mark}"


def _box(node: GraphNode) -> str:
    return "<br/>".join(
        _escaped(row) for row in (node.label.removeprefix("else "), *_tree(node.items))
    )


def _escaped(text: str) -> str:
    """Returns the text with special characters as Mermaid's entities, and spaces kept.

    Special are the characters that mean something to Mermaid or to HTML.
    """
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", text).replace("  ", "\u00a0\u00a0")
