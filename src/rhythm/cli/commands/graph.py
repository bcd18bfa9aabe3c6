"""Draws what a workflow does: an outline for the terminal, or a Mermaid flow chart."""

from __future__ import annotations

from rhythm.cli.options import Arguments, Option
from rhythm.cli.output import print
from rhythm.cli.programs import FILE, WORKFLOW, choose, compile_file
from rhythm.ir.drawing import as_mermaid, as_text
from rhythm.ir.graph import graph

OPTIONS = (
    FILE,
    WORKFLOW,
    Option(
        "--format",
        "an outline, or a flow chart for Markdown",
        choices=("text", "mermaid"),
        default="text",
    ),
)


def run(args: Arguments) -> int:
    program = choose(compile_file(args.file, quiet=True), args.file, args.workflow)
    print((as_text if args.format == "text" else as_mermaid)(graph(program)))
    return 0
