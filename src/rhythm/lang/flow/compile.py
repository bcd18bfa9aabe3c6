"""From `.flow` text to verified programs."""

from __future__ import annotations

from rhythm.errors import FlowError
from rhythm.ir.program import Program
from rhythm.ir.verify import verify
from rhythm.lang.flow.check import TOO_DEEP, Checked, check_flow
from rhythm.lang.flow.lower import lower
from rhythm.lang.flow.rules.known import Known
from rhythm.lang.source import render_all
from rhythm.limits import DEFAULT_LIMITS, Limits


class Compilation(Checked):
    """What became of a file: its programs (none if there are errors) and everything there is to say about it."""

    programs: tuple[Program, ...] = ()

    def programs_or_raise(self) -> tuple[Program, ...]:
        """The programs; `FlowError` with all diagnostics if the file has errors."""
        if self.errors:
            raise FlowError(self.diagnostics, render_all(self.source, self.diagnostics))
        return self.programs


def compile_flow(text: str, file: str = "workflow.flow", known: Known | None = None, limits: Limits = DEFAULT_LIMITS) -> Compilation:
    """Compiles a file. Never raises, whatever the text is: problems come back as diagnostics."""
    checked = check_flow(text, file, known, limits)
    try:
        programs = tuple(verify(lower(checked.source, workflow, options)) for workflow, options in checked.workflows)
    except RecursionError:
        return Compilation(checked.source, [TOO_DEEP])
    return Compilation(checked.source, checked.diagnostics, checked.workflows, programs)
