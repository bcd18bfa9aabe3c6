"""From the text of JSON steps to a verified program."""

from __future__ import annotations

from rhythm.ir.verify import verify
from rhythm.lang.flow.rules.surroundings import Surroundings
from rhythm.lang.report import Compilation
from rhythm.lang.steps.check import compiled
from rhythm.limits import DEFAULT_LIMITS, Limits


def compile_steps(
    text: str,
    file: str = "workflow.steps.json",
    known: Surroundings | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Compilation:
    """Compiles a file. Never raises, whatever the text is: problems are returned as diagnostics."""
    return verified(compiled(text, file, known, limits))


def verified(compilation: Compilation) -> Compilation:
    """Returns the compilation after its programs were verified."""
    for program in compilation.programs:
        verify(program)
    return compilation
