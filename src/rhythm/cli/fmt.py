"""Puts workflow files into the one layout: spacing, indentation, blank lines. Comments and line breaks stay yours."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from rhythm.cli.files import find_files, read_source
from rhythm.errors import FlowError
from rhythm.lang.flow.format import format_source


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a .flow file, a folder of them, or - to read standard input and print")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a file would change")
    parser.add_argument("--diff", action="store_true", help="change nothing; show what would change, and exit 1 if anything would")


def run(args: argparse.Namespace) -> int:
    results = [_format(name, args) for name in find_files(args.files)]
    return max(results, default=0)


def _format(name: str, args: argparse.Namespace) -> int:
    text = read_source(name)
    try:
        new = format_source(text, name)
    except FlowError as problem:
        print(problem, file=sys.stderr)
        return 2
    if args.diff:
        sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), new.splitlines(True), name, f"{name} (formatted)"))
    elif args.check and new != text:
        print(f"would change {name}")
    elif name == "-":
        sys.stdout.write(new)
    elif new != text and not args.check:
        Path(name).write_text(new, encoding="utf-8", newline="\n")
        print(f"formatted {name}")
    return 1 if new != text and (args.check or args.diff) else 0
