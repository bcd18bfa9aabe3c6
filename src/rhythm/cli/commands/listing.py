"""Shows the program that a workflow compiles to: one instruction per line, with its line in the
source."""

from __future__ import annotations

from rhythm.cli.command import Arguments, command, option
from rhythm.cli.options import FILE, WORKFLOW_OF_FILE
from rhythm.cli.output import print
from rhythm.cli.output.documents import print_json
from rhythm.cli.programs import choose, compile_file
from rhythm.cli.types import OneOf
from rhythm.ir.codec import dump_program
from rhythm.ir.listing import listing


@command(__doc__)
@FILE
@WORKFLOW_OF_FILE
@option(
    "--format",
    type=OneOf("text", "json"),
    default="text",
    help="text for people; json: the program as it is stored",
)
def run(args: Arguments) -> int:
    programs = compile_file(args.file, quiet=True)
    chosen = (choose(programs, args.file, args.workflow),) if args.workflow else programs
    if args.format == "text":
        print("\n\n".join(listing(program) for program in chosen))
    else:
        print_json("\n\n".join(dump_program(program) for program in chosen))
    return 0
