"""From `.flow` text to verified programs."""

from __future__ import annotations

from rhythm.ir.verify import verify
from rhythm.lang.flow.check import TOO_DEEP, ParsedFlow
from rhythm.lang.flow.lower import lower
from rhythm.lang.flow.rules.surroundings import Surroundings
from rhythm.lang.report import Compilation
from rhythm.limits import DEFAULT_LIMITS, Limits


def compile_flow(
    text: str,
    file: str = "workflow.flow",
    known: Surroundings | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Compilation:
    """Compiles a file. Never raises, whatever the text is: problems are returned as diagnostics."""
    return compile_parsed(ParsedFlow(text, file, limits), known)


def compile_parsed(parsed: ParsedFlow, known: Surroundings | None = None) -> Compilation:
    """Compiles a file that was already parsed. `known`: the tasks and workflows outside of it."""
    checked = parsed.check(known)
    try:
        programs = tuple(
            verify(lower(checked.source, workflow, options))
            for workflow, options in checked.workflows
        )
    except RecursionError:
        return Compilation(checked.source, [TOO_DEEP])
    return Compilation(checked.source, checked.diagnostics, checked.workflows, programs)
