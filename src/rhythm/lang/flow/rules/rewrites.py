"""Help that shows the author's own code, with an `await` moved to a line of its own."""

from __future__ import annotations

import re

from rhythm.ir.operations import GROUPS
from rhythm.lang.flow import nodes
from rhythm.lang.flow.nodes import Node
from rhythm.lang.flow.rules.scopes import Scopes
from rhythm.lang.flow.tokens import RESERVED

# A line up to its comment.
CODE = r"""(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`|/(?!/)|[^"'`/])*"""


class Rewrites(Scopes):
    """Makes the help text for an await or an operation inside an expression: how to rewrite it."""

    repeated: Node | None = None  # the condition of the `while` whose head is being checked
    # the one whose element or condition is being checked
    comprehension: nodes.Comprehension | None = None
    depends = False  # inside an operand that is not always evaluated

    def _hoisted(self, node: Node, line: str, name: str) -> tuple[str, ...]:
        """Returns help that moves an await out of an expression, to a line of its own.

        For the condition of a `while`, that line is inside the loop.
        """
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
        """Returns help for an await in a comprehension: start all, then await them together."""
        operation = node.value if isinstance(node, nodes.Await) else node
        rest = " ".join(self.source.text[around.element.end : around.end].split())
        return (
            "start them all and wait for all of them:",
            f"let results = await all([{self._text(operation)} {rest})",
        )

    def _rewritten(self, node: Node, name: str) -> str:
        """Returns the line of the node, with the name in its place."""
        number, column = self.source.position(node.start)
        line = self.source.line(number)
        end = column - 1 + (node.end - node.start)
        rest = line[end:] if end <= len(line) else " …"
        if len(line) > 200:
            return f"… {line[max(column - 61, 0) : column - 1]}{name}{rest[:60]} …"
        return _without_comment(f"{line[: column - 1]}{name}{rest}").strip()

    def _fresh_name(self, node: Node) -> str:
        """Returns an unused name for the value: the task's own name if it can be one."""
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
