"""Draws what a workflow does: an outline for the terminal, or a Mermaid flow chart."""

from __future__ import annotations

import argparse

from rhythm.cli.programs import add_arguments, choose, compile_file
from rhythm.ir.drawing import as_mermaid, as_text
from rhythm.ir.graph import graph


def configure(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser)
    parser.add_argument("--format", choices=("text", "mermaid"), default="text", help="an outline, or a flow chart for Markdown")


def run(args: argparse.Namespace) -> int:
    program = choose(compile_file(args.file, quiet=True), args.file, args.workflow)
    print((as_text if args.format == "text" else as_mermaid)(graph(program)))
    return 0
