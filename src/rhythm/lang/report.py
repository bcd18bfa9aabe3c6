"""The result of checking or compiling a file, whichever language it is in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rhythm.lang.source import Diagnostic, Source, render_all
from rhythm.record import Record

if TYPE_CHECKING:
    from rhythm.ir.program import Program


class Checked(Record):
    """The diagnostics of a file, and its workflows with their options: none if there are errors."""

    source: Source
    diagnostics: list[Diagnostic]
    # Trees of the file's language, each with a `name` and a `start`.
    workflows: tuple[tuple[Any, dict[str, Any]], ...] = ()

    @property
    def errors(self) -> list[Diagnostic]:
        """The diagnostics that are errors."""
        return [diagnostic for diagnostic in self.diagnostics if diagnostic.severity == "error"]


def named_twice(files: Iterable[Checked]) -> dict[str, list[str]]:
    """Returns each name that several workflows have, with the places of these workflows.

    A call by it would be ambiguous, so no database takes them together.
    """
    places: dict[str, list[str]] = {}
    for one in files:
        for workflow, _ in one.workflows:
            line = one.source.position(workflow.start)[0]
            places.setdefault(workflow.name, []).append(f"{one.source.name}:{line}")
    return {name: found for name, found in places.items() if len(found) > 1}


class Compilation(Checked):
    """The result of compiling a file: its programs (none if there are errors) and diagnostics."""

    programs: tuple[Program, ...] = ()

    def programs_or_raise(self) -> tuple[Program, ...]:
        """Returns the programs. Raises `FlowError` with all diagnostics if the file has errors."""
        if self.errors:
            from rhythm.errors import FlowError

            raise FlowError(self.diagnostics, render_all(self.source, self.diagnostics))
        return self.programs
