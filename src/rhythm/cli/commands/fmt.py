"""Formats workflow files: spacing, indentation and blank lines.

Comments and line breaks are kept.
"""

from __future__ import annotations

import difflib
import sys

from rhythm.cli.command import Arguments, UsageError, argument, command, option
from rhythm.cli.files import find_files, is_python, read_source, write_source
from rhythm.cli.output import print, print_source
from rhythm.cli.types import FileName
from rhythm.errors import FlowError
from rhythm.lang.flow.format import format_source


@command(__doc__)
@argument(
    "files",
    type=FileName(),
    nargs=-1,
    required=True,
    help="a .flow file, a folder of them, or - to read standard input and print the result",
)
@option("--check", is_flag=True, help="change nothing; exit 1 if a file would change")
@option(
    "--diff",
    is_flag=True,
    help="change nothing; show what would change, and exit 1 if anything would",
)
def run(args: Arguments) -> int:
    results = [_format(name, args) for name in find_files(args.files, (".flow",))]
    return max(results, default=0)


def _format(name: str, args: Arguments) -> int:
    if name.endswith(".json"):
        raise UsageError(
            f"{name} is JSON: any formatter of JSON will do; this one is for .flow files"
        )
    if is_python(name):
        raise UsageError(
            f"{name} is Python, and is left as it is: any formatter of Python will do; this one "
            "is for .flow files"
        )
    text = read_source(name)
    try:
        new = format_source(text, name)
    except FlowError as problem:
        print(problem, file=sys.stderr)
        return 2
    if args.diff:
        print_source(
            "".join(
                difflib.unified_diff(
                    text.splitlines(True), new.splitlines(True), name, f"{name} (formatted)"
                )
            )
        )
    elif args.check and new != text:
        print(f"would change {name}")
    elif name == "-":
        print_source(new)
    elif new != text and not args.check:
        write_source(name, new)
        print(f"formatted {name}")
    return 1 if new != text and (args.check or args.diff) else 0
