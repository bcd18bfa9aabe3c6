"""Shows the program a workflow compiles to: one instruction a line, with the line of the source it
comes from."""

from __future__ import annotations

from rhythm.cli.options import Arguments, Option
from rhythm.cli.output import print
from rhythm.cli.output.documents import print_json
from rhythm.cli.programs import FILE, WORKFLOW, choose, compile_file
from rhythm.ir.codec import dump_program
from rhythm.ir.listing import listing

OPTIONS = (
    FILE,
    WORKFLOW,
    Option(
        "--format",
        "text for people; json is what is stored",
        choices=("text", "json"),
        default="text",
    ),
)


def run(args: Arguments) -> int:
    programs = compile_file(args.file, quiet=True)
    chosen = (choose(programs, args.file, args.workflow),) if args.workflow else programs
    if args.format == "text":
        print("\n\n".join(listing(program) for program in chosen))
    else:
        print_json("\n\n".join(dump_program(program) for program in chosen))
    return 0
