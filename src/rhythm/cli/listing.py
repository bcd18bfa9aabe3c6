"""Shows the program a workflow compiles to: one instruction a line, with the line of the source it comes from."""

from __future__ import annotations

import argparse

from rhythm.cli.programs import add_arguments, choose, compile_file
from rhythm.ir.codec import dump_program
from rhythm.ir.listing import listing


def configure(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="text for people; json is what is stored")


def run(args: argparse.Namespace) -> int:
    programs = compile_file(args.file, quiet=True)
    chosen = (choose(programs, args.file, args.workflow),) if args.workflow else programs
    show = listing if args.format == "text" else dump_program
    print("\n\n".join(show(program) for program in chosen))
    return 0
