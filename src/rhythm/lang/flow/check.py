"""From `.flow` text to a tree in which nothing is wrong, or to everything that is.

`rhythm check` and editors need no more than this: what passes here can be lowered.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Sequence
from typing import Any

from rhythm.lang.flow.grammar.parser import Parser
from rhythm.lang.flow.lexer import Lexer
from rhythm.lang.flow.nodes import Block, File, Node, Workflow
from rhythm.lang.flow.problems import Problems, TooManyProblems
from rhythm.lang.flow.rules.resolver import Resolver
from rhythm.lang.flow.rules.surroundings import Surroundings
from rhythm.lang.report import Checked, Compilation
from rhythm.lang.source import Diagnostic, Source, in_order
from rhythm.limits import DEFAULT_LIMITS, Limits

# so that passes and interpreter may recurse over an expression within Python's own limit
EXPRESSION_HEIGHT = 150
# the one thing that could still go wrong in the recursive passes, as the diagnostic it is
TOO_DEEP = Diagnostic(
    "F006", "error", "nested too deep to be read", 0, 0, help=("name the inner parts with `let`",)
)


def check_flow(
    text: str,
    file: str = "workflow.flow",
    known: Surroundings | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Checked:
    """Checks a file. Never raises, whatever the text is: problems come back as diagnostics."""
    return ParsedFlow(text, file, limits).check(known)


class ParsedFlow:
    """A file that was read, and is to be checked: once it is known what there is besides it."""

    def __init__(self, text: str, file: str, limits: Limits = DEFAULT_LIMITS) -> None:
        self.source, self.limits = Source(file, text), limits
        self.problems = Problems(limits.diagnostics)
        self.workflows: tuple[Workflow, ...] = ()
        try:
            self.workflows = _read(self.source, self.problems, limits)
        except (TooManyProblems, RecursionError) as problem:
            self._give_up(problem)

    @property
    def names(self) -> frozenset[str]:
        """The names of its workflows, as far as it can be read."""
        return frozenset(workflow.name for workflow in self.workflows)

    def check(self, known: Surroundings | None = None) -> Checked:
        """Everything that is wrong with it. Once only: the problems are collected."""
        checked: tuple[tuple[Workflow, dict[str, Any]], ...] = ()
        try:
            checked = tuple(self._resolved(known or Surroundings()))
        except (TooManyProblems, RecursionError) as problem:
            self._give_up(problem)
        found = in_order(self.problems.found)
        return Checked(self.source, found, () if self.problems.errors else checked)

    def compile(self, known: Surroundings | None = None) -> Compilation:
        """Its programs, if nothing is wrong with it. Only here what makes programs is imported."""
        from rhythm.lang.flow.compile import compile_parsed

        return compile_parsed(self, known)

    def _resolved(self, known: Surroundings) -> Iterator[tuple[Workflow, dict[str, Any]]]:
        source, problems, limits = self.source, self.problems, self.limits
        siblings = self.names if len(self.workflows) > 1 else frozenset[str]()
        for workflow in self.workflows:
            yield workflow, Resolver(workflow, source, problems, known, limits, siblings).check()

    def _give_up(self, problem: Exception) -> None:
        if isinstance(problem, RecursionError):
            found = self.problems.found
            self.problems.found = [TOO_DEEP, *(d for d in found if d.severity == "error")]
        self.workflows = ()


def workflow_texts(text: str, file: str) -> dict[str, str]:
    """The text of each workflow in a file, with its annotations, as far as it can be read."""
    begins = (
        (workflow, min(node.start for node in (workflow, *workflow.annotations)))
        for workflow in ParsedFlow(text, file).workflows
    )
    return {workflow.name: text[start : workflow.end] for workflow, start in begins}


def _read(source: Source, problems: Problems, limits: Limits) -> tuple[Workflow, ...]:
    """The workflows of a file, none if it is too large to be looked at any further."""
    size = len(source.text.encode("utf-8", "surrogatepass"))
    if size > limits.source_bytes:
        message = f"the file has {size:,} bytes; the limit is {limits.source_bytes:,}"
        problems.report("F006", message, 0, 0, help="split it into several workflows")
        return ()
    tree = _parse(source, problems, limits)
    if _holds_too_much(tree, problems, limits):
        return ()
    if high := _too_high(tree):
        message = "an expression with too many parts"
        help = "name the inner parts with `let`"
        problems.report("F006", message, high.start, high.end, help=help)
        return ()
    return tuple(tree.workflows)


def _holds_too_much(tree: File, problems: Problems, limits: Limits) -> bool:
    """Whether there is more of something than may be, which is reported."""
    schedules = [a for w in tree.workflows for a in w.annotations if a.name == "schedule"]
    of_a_file: tuple[tuple[str, Sequence[Node], int], ...] = (
        ("workflows", tree.workflows, limits.workflows),
        ("schedules", schedules, limits.schedules),
    )
    for what, found, most in of_a_file:
        if len(found) > most:
            message = f"the file has {len(found):,} {what}; the limit is {most:,}"
            at = found[most].start
            problems.report("F006", message, at, at, help="split it into several files")
            return True
    for workflow in tree.workflows:
        if len(workflow.annotations) > limits.annotations:
            extra = workflow.annotations[limits.annotations]
            message = f"more than {limits.annotations} annotations"
            problems.about("F006", message, extra, help="split the workflow into several")
            return True
    return False


def _parse(source: Source, problems: Problems, limits: Limits) -> File:
    tokens = Lexer(source.text, problems, limits).run()
    name = os.path.splitext(os.path.basename(source.name))[0]
    return Parser(source.text, tokens, problems, limits, name or "workflow").parse_file()


def _too_high(root: Node) -> Node | None:
    """A node over which recursion would go too deep. Counts without recursing."""
    stack: list[tuple[Node, int]] = [(root, 0)]
    while stack:
        node, height = stack.pop()
        if height > EXPRESSION_HEIGHT:
            return node
        below = 0 if isinstance(node, Block) else height + 1
        for field in node.__dict__.values():
            if isinstance(field, Node):
                stack.append((field, below))
            elif isinstance(field, tuple):
                stack += [(item, below) for item in _flat(field) if isinstance(item, Node)]
    return None


def _flat(items: tuple[object, ...]) -> list[object]:
    return [inner for item in items for inner in (item if isinstance(item, tuple) else (item,))]
