"""`.flow` text to programs: lexer, parser, resolver, lowering. `compile_flow` is the way in."""

from __future__ import annotations

from pathlib import PurePath

from rhythm.errors import FlowError
from rhythm.ir.program import Program
from rhythm.ir.verify import verify
from rhythm.lang.flow.lexer import Lexer
from rhythm.lang.flow.lower import lower
from rhythm.lang.flow.nodes import File
from rhythm.lang.flow.parser import Parser, too_high
from rhythm.lang.flow.problems import Problems, TooManyProblems
from rhythm.lang.flow.resolver import Known, Resolver, TaskShape
from rhythm.lang.source import Diagnostic, Source, in_order, render_all
from rhythm.limits import DEFAULT_LIMITS, Limits
from rhythm.record import Record

__all__ = ["Compilation", "Known", "TaskShape", "compile_flow", "workflow_names"]


class Compilation(Record):
    """What became of a file: its programs (none if there are errors) and everything there is to say about it."""

    source: Source
    programs: tuple[Program, ...]
    diagnostics: list[Diagnostic]

    @property
    def errors(self) -> list[Diagnostic]:
        return [diagnostic for diagnostic in self.diagnostics if diagnostic.severity == "error"]

    def programs_or_raise(self) -> tuple[Program, ...]:
        """The programs; `FlowError` with all diagnostics if the file has errors."""
        if self.errors:
            raise FlowError(self.diagnostics, render_all(self.source, self.diagnostics))
        return self.programs


def compile_flow(text: str, file: str = "workflow.flow", known: Known | None = None, limits: Limits = DEFAULT_LIMITS) -> Compilation:
    """Compiles a file. Never raises, whatever the text is: problems come back as diagnostics."""
    source = Source(file, text)
    problems = Problems(limits.diagnostics)
    programs: tuple[Program, ...] = ()
    try:
        programs = _programs(source, problems, known or Known(), limits)
    except TooManyProblems:
        pass
    except RecursionError:
        _too_deep(problems)
    return Compilation(source, () if problems.errors else programs, in_order(problems.found))


def workflow_names(text: str, file: str) -> frozenset[str]:
    """The names of the workflows in a file, as far as it can be read."""
    try:
        tree = _parse(Source(file, text), Problems(DEFAULT_LIMITS.diagnostics), DEFAULT_LIMITS)
        return frozenset(workflow.name for workflow in tree.workflows)
    except (TooManyProblems, RecursionError):
        return frozenset()


def _programs(source: Source, problems: Problems, known: Known, limits: Limits) -> tuple[Program, ...]:
    size = len(source.text.encode("utf-8", "surrogatepass"))
    if size > limits.source_bytes:
        problems.report(
            "F006", f"the file has {size:,} bytes; the limit is {limits.source_bytes:,}", 0, 0, help="split it into several workflows"
        )
        return ()
    tree = _parse(source, problems, limits)
    high = too_high(tree)
    if high:
        problems.report("F006", "an expression with too many parts", high.start, high.end, help="name the inner parts with `let`")
        return ()
    resolver = Resolver(source, problems, known)
    options = [resolver.check(workflow) for workflow in tree.workflows]
    if problems.errors:
        return ()
    programs = tuple(lower(source, workflow, option) for workflow, option in zip(tree.workflows, options, strict=True))
    for program in programs:
        verify(program)
    return programs


def _parse(source: Source, problems: Problems, limits: Limits) -> File:
    tokens = Lexer(source.text, problems, limits).run()
    return Parser(source.text, tokens, problems, limits, PurePath(source.name).stem or "workflow").parse_file()


def _too_deep(problems: Problems) -> None:
    """The one thing that could still go wrong in the recursive passes, as the diagnostic it is."""
    problems.found = [d for d in problems.found if d.severity == "error"]
    problems.report("F006", "nested too deep to be read", 0, 0, help="name the inner parts with `let`")
