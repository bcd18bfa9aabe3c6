"""From `.flow` text to a tree without errors, or to a list of everything that is wrong.

`rhythm check` and editors need no more than this: a file that passes can be lowered.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Sequence
from typing import Any

from rhythm.lang.flow.grammar.parser import Parser
from rhythm.lang.flow.lexer import Lexer
from rhythm.lang.flow.nodes import Block, File, Node, Workflow, children
from rhythm.lang.flow.problems import Problems, TooManyProblems
from rhythm.lang.flow.rules.resolver import Resolver
from rhythm.lang.flow.rules.results import check_results
from rhythm.lang.flow.rules.surroundings import Surroundings
from rhythm.lang.report import Checked, Compilation
from rhythm.lang.source import Diagnostic, Source, in_order
from rhythm.limits import DEFAULT_LIMITS, Limits

# The compiler and the interpreter recurse over expressions: this keeps them within Python's limit.
EXPRESSION_HEIGHT = 150
# A RecursionError is the one thing that could still go wrong; it becomes this diagnostic.
TOO_DEEP = Diagnostic(
    "F006", "error", "nested too deep to be read", 0, 0, help=("name the inner parts with `let`",)
)


def check_flow(
    text: str,
    file: str = "workflow.flow",
    known: Surroundings | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Checked:
    """Checks a file. Never raises, whatever the text is: problems are returned as diagnostics."""
    return ParsedFlow(text, file, limits).check(known)


class ParsedFlow:
    """A file that was read but not checked yet.

    It is checked when it is known which tasks and workflows exist besides it.
    """

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
        """The names of its workflows, as far as the file can be read."""
        return frozenset(workflow.name for workflow in self.workflows)

    def check(self, known: Surroundings | None = None) -> Checked:
        """Returns everything that is wrong with the file, and its workflows if nothing is.

        Call it only once: the object collects the problems.
        """
        checked: tuple[tuple[Workflow, dict[str, Any]], ...] = ()
        try:
            checked = tuple(self._resolved(known or Surroundings()))
        except (TooManyProblems, RecursionError) as problem:
            self._give_up(problem)
        found = in_order(self.problems.found)
        return Checked(self.source, found, () if self.problems.errors else checked)

    def compile(self, known: Surroundings | None = None) -> Compilation:
        """Returns its programs, if nothing is wrong with the file.

        The code that makes programs is imported only here.
        """
        from rhythm.lang.flow.compile import compile_parsed

        return compile_parsed(self, known)

    def _resolved(self, known: Surroundings) -> Iterator[tuple[Workflow, dict[str, Any]]]:
        source, problems, limits = self.source, self.problems, self.limits
        siblings = self.names if len(self.workflows) > 1 else frozenset[str]()
        for workflow in self.workflows:
            yield workflow, Resolver(workflow, source, problems, known, limits, siblings).check()
            if known.tasks is not None:
                check_results(workflow, known.tasks, problems)

    def _give_up(self, problem: Exception) -> None:
        if isinstance(problem, RecursionError):
            found = self.problems.found
            self.problems.found = [TOO_DEEP, *(d for d in found if d.severity == "error")]
        self.workflows = ()


def workflow_texts(text: str, file: str) -> dict[str, str]:
    """Returns the text of each workflow in a file, with its annotations.

    Workflows that cannot be read are left out.
    """
    begins = (
        (workflow, min(node.start for node in (workflow, *workflow.annotations)))
        for workflow in ParsedFlow(text, file).workflows
    )
    return {workflow.name: text[start : workflow.end] for workflow, start in begins}


def _read(source: Source, problems: Problems, limits: Limits) -> tuple[Workflow, ...]:
    """Returns the workflows of a file; none if it is over a limit and is not checked further."""
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
    """Whether the file has more workflows, schedules or annotations than allowed; reports it."""
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
    """Returns a node that is too deep for the recursive passes, or None.

    It does not recurse itself.
    """
    stack: list[tuple[Node, int]] = [(root, 0)]
    while stack:
        node, height = stack.pop()
        if height > EXPRESSION_HEIGHT:
            return node
        below = 0 if isinstance(node, Block) else height + 1
        stack += [(inner, below) for inner in children(node)]
    return None
