"""Compiles the workflows of a file for a command, and chooses the workflow that is meant."""

from __future__ import annotations

import os
import sys

from rhythm.cli.command import UsageError
from rhythm.cli.files import is_python, read_source
from rhythm.cli.output import print
from rhythm.ir.program import Program
from rhythm.lang.flow.rules.surroundings import Surroundings
from rhythm.lang.languages import compile_text
from rhythm.lang.report import Compilation
from rhythm.lang.source import render_all
from rhythm.suggest import nearest


def compile_file(
    name: str, known: Surroundings | None = None, quiet: bool = False
) -> tuple[Program, ...]:
    """Returns the programs of a file; one of Python is imported. `UsageError` if it has none.

    Errors and warnings are printed on standard error; with `quiet`, only errors.
    """
    compiled = (
        compile_python(name) if is_python(name) else [compile_text(read_source(name), name, known)]
    )
    for compilation in compiled:
        shown = [
            d
            for d in compilation.diagnostics
            if d.severity == "error" or (d.severity == "warning" and not quiet)
        ]
        if shown:
            print(render_all(compilation.source, shown), file=sys.stderr, end="\n\n")
    if any(compilation.errors for compilation in compiled):
        raise UsageError(f"{name} does not compile")
    return tuple(program for compilation in compiled for program in compilation.programs)


def compile_python(name: str) -> list[Compilation]:
    """Imports a Python file, and returns its workflows, compiled. `UsageError` if it has none."""
    from rhythm.cli.app import load_workflows

    found = [workflow.compilation for workflow in load_workflows(name)]
    if not found:
        raise UsageError(
            f"{name} has no workflow: write `@rhythm.workflow` above an `async def`; if its tasks "
            f"are meant, give the .flow file, and --app {name}"
        )
    return found


def choose(programs: tuple[Program, ...], file: str, wanted: str | None) -> Program:
    """Returns the program named `wanted`; `UsageError` if the file has none of that name.

    Without `wanted` it is the program with the name of the file, else the first.
    """
    by_name = {program.name: program for program in programs}
    if wanted is None:
        return by_name.get(os.path.splitext(os.path.basename(file))[0], programs[0])
    if wanted in by_name:
        return by_name[wanted]
    near = nearest(wanted, by_name)
    raise UsageError(
        f"{file} has no workflow `{wanted}`; "
        + (f"did you mean `{near}`?" if near else f"it has {', '.join(by_name)}")
    )
