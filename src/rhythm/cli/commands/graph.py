"""Draws the steps of a workflow: as an outline for the terminal, or as a Mermaid flow chart.

With --id it draws the version that an execution runs, and marks where the execution is now (▶) and
where it has waited before (✓).

  rhythm graph order.flow
  rhythm graph --id 06fe1sz2n5qg7v0k4m8c3x9yte
"""

from __future__ import annotations

from rhythm.cli.command import Arguments, UsageError, argument, command, option
from rhythm.cli.connect import application, find_workflow
from rhythm.cli.options import DATABASE, FILE_HELP, WORKFLOW_OF_FILE
from rhythm.cli.output import print
from rhythm.cli.programs import choose, compile_file
from rhythm.cli.types import FileName, Known, OneOf
from rhythm.ir.drawing import as_mermaid, as_text
from rhythm.ir.graph import Graph, graph, marked


@command(__doc__)
@argument("file", type=FileName(), required=False, help=FILE_HELP)
@WORKFLOW_OF_FILE
@option(
    "--id",
    type=Known("executions"),
    metavar="ID",
    help="an execution in place of a file: mark where it is",
)
@option(
    "--format",
    type=OneOf("text", "mermaid"),
    default="text",
    help="an outline, or a flow chart for Markdown",
)
@DATABASE
def run(args: Arguments) -> int:
    if (args.file is None) == (args.id is None):
        raise UsageError("give a file, or an execution with --id")
    if args.id is not None and args.workflow is not None:
        raise UsageError("--workflow is for a file: an execution has one workflow")
    drawn = _of_execution(args) if args.file is None else _of_file(args)
    print((as_text if args.format == "text" else as_mermaid)(drawn))
    return 0


def _of_file(args: Arguments) -> Graph:
    return graph(choose(compile_file(args.file, quiet=True), args.file, args.workflow))


def _of_execution(args: Arguments) -> Graph:
    with application(args) as app:
        execution = find_workflow(app, args.id)
        program = app.program(execution.name, execution.version)
        if program is None:
            raise UsageError(f"the version that {execution.id} runs is not registered any more")
        places = app.details.places(execution.id)
        return marked(graph(program), places.here, places.passed)
