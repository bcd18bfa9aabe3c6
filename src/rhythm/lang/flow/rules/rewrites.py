"""Help that shows the author's own code: what awaits inside an expression, rewritten so that it
stands on a line of its own."""

from __future__ import annotations

import re

from rhythm.ir.operations import GROUPS
from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.flow.rules.scopes import Scopes
from rhythm.lang.flow.tokens import RESERVED

# a line up to its comment
CODE = r"""(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`|/(?!/)|[^"'`/])*"""


class Rewrites(Scopes):
    repeated: Node | None = None  # the condition of the `while` whose head is being checked
    comprehension: nodes.Comprehension | None = None  # whose element or condition is being checked
    depends = False  # inside an operand that is not always computed

    def _hoisted(self, node: Node, line: str, name: str) -> tuple[str, ...]:
        """How to write what awaits inside an expression: the await on a line of its own, which in
        the head of a loop is inside it."""
        if self.comprehension is not None:
            return self._gathered(node, self.comprehension)
        if self.depends:
            return (
                "await it in an `if` of its own, so that it runs only when it should:",
                f"let {name} = null",
                f"if (…) {{ {line.removeprefix('let ')} }}",
            )
        if self.repeated is None:
            return "await it first, on a line of its own:", line, self._rewritten(node, name)
        text = self.source.text
        before, after = text[self.repeated.start : node.start], text[node.end : self.repeated.end]
        condition = " ".join(f"{before}{name}{after}".split())
        return (
            "await it in the loop:",
            "while (true) {",
            f"  {line}",
            f"  if (!({condition})) {{ break }}",
            "  …",
        )

    def _gathered(self, node: Node, around: nodes.Comprehension) -> tuple[str, ...]:
        """What awaits in a comprehension is started for every element, and awaited together."""
        operation = node.value if isinstance(node, nodes.Await) else node
        rest = " ".join(self.source.text[around.element.end : around.end].split())
        return (
            "start them all and wait for all of them:",
            f"let results = await all([{self._text(operation)} {rest})",
        )

    def _rewritten(self, node: Node, name: str) -> str:
        """The line of the node with the name in its place."""
        number, column = self.source.position(node.start)
        line = self.source.line(number)
        end = column - 1 + (node.end - node.start)
        rest = line[end:] if end <= len(line) else " …"
        if len(line) > 200:
            return f"… {line[max(column - 61, 0) : column - 1]}{name}{rest[:60]} …"
        return _without_comment(f"{line[: column - 1]}{name}{rest}").strip()

    def _fresh_name(self, node: Node) -> str:
        """A name for the value: the task's own if it has one."""
        base = "result"
        if isinstance(node, nodes.Call):
            first = node.args[0] if node.args else None
            wanted = (
                first.value
                if isinstance(first, nodes.Literal)
                else "results"
                if node.name in GROUPS
                else node.name
            )
            if (
                isinstance(wanted, str)
                and wanted.isascii()
                and wanted.isidentifier()
                and wanted not in RESERVED
            ):
                base = wanted
        name, number = base, 2
        while self._find(name):
            name, number = f"{base}{number}", number + 1
        return name


def _without_comment(line: str) -> str:
    code = re.match(CODE, line)
    return code[0] if code and line.startswith("//", code.end()) else line
