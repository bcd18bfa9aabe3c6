"""Compiling the workflows of one file for a command, and choosing the one that was meant."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rhythm.cli.files import read_source
from rhythm.cli.main import UsageError
from rhythm.errors import FlowError
from rhythm.ir.program import Program
from rhythm.lang.flow import Known, compile_flow
from rhythm.lang.source import nearest, render_all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a .flow file, or - for standard input")
    parser.add_argument(
        "--workflow", metavar="NAME", help="which workflow of the file (default: the one named like the file, else the first)"
    )


def compile_file(name: str, known: Known | None = None, quiet: bool = False) -> tuple[Program, ...]:
    """The programs of a file. Its problems are printed to standard error; errors end the command."""
    compilation = compile_flow(read_source(name), name, known)
    shown = [d for d in compilation.diagnostics if d.severity == "error" or (d.severity == "warning" and not quiet)]
    if shown:
        print(render_all(compilation.source, shown), file=sys.stderr, end="\n\n")
    try:
        return compilation.programs_or_raise()
    except FlowError:
        raise UsageError(f"{name} does not compile") from None


def choose(programs: tuple[Program, ...], file: str, wanted: str | None) -> Program:
    """The workflow that was asked for."""
    by_name = {program.name: program for program in programs}
    if wanted is None:
        return by_name.get(Path(file).stem, programs[0])
    if wanted in by_name:
        return by_name[wanted]
    near = nearest(wanted, by_name)
    raise UsageError(f"{file} has no workflow `{wanted}`; " + (f"did you mean `{near}`?" if near else f"it has {', '.join(by_name)}"))
