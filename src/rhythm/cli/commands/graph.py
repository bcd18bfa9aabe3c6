"""Draws the steps of a workflow: as an outline for the terminal, or as a Mermaid flow chart."""

from __future__ import annotations

from rhythm.cli.command import Arguments, command, option
from rhythm.cli.options import FILE, WORKFLOW_OF_FILE
from rhythm.cli.output import print
from rhythm.cli.programs import choose, compile_file
from rhythm.cli.types import OneOf
from rhythm.ir.drawing import as_mermaid, as_text
from rhythm.ir.graph import graph


@command(__doc__)
@FILE
@WORKFLOW_OF_FILE
@option(
    "--format",
    type=OneOf("text", "mermaid"),
    default="text",
    help="an outline, or a flow chart for Markdown",
)
def run(args: Arguments) -> int:
    program = choose(compile_file(args.file, quiet=True), args.file, args.workflow)
    print((as_text if args.format == "text" else as_mermaid)(graph(program)))
    return 0
