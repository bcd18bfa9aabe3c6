"""The way out: everything that the command line writes goes through `print` here, which has the
name of Python's own.

What executions, files and people bring along can have anything in it, and a terminal obeys some of
it. So only what is printable passes, and the sequences that are ours: whoever styles a text marks
them (`control`), with a mark that nobody else can know. What tasks print is theirs, and does not
come this way.
"""

from __future__ import annotations

import builtins
import os
import sys
from typing import TextIO

from rhythm.printable import indented, visible

MARK, END = f"\x1b{os.urandom(8).hex()}", "\x1f"
KEPT_CONTROLS = "\n\t"


def print(
    *values: object,
    sep: str = " ",
    end: str = "\n",
    file: TextIO | None = None,
    flush: bool = False,
) -> None:
    """Prints as Python does, without what a terminal would obey."""
    text = shown(sep.join(map(str, values)))
    builtins.print(text, end=end, file=sys.stdout if file is None else file, flush=flush)


def shown(text: str) -> str:
    """The text as it is written out: what is not printable has a stand-in, and marked sequences are
    what they stand for."""
    first, *rest = text.split(MARK)
    out = [visible(first, KEPT_CONTROLS)]
    for piece in rest:
        sequence, _, more = piece.partition(END)
        out += (sequence, visible(more, KEPT_CONTROLS))
    return "".join(out)


def control(sequence: str) -> str:
    """A sequence of ours for the terminal, as part of a text for `print`."""
    return f"{MARK}{sequence}{END}"


def styled(text: str, style: str) -> str:
    """The text in a style, such as 32 (green)."""
    return control(f"\x1b[{style}m") + text + control("\x1b[0m")


def print_problem(problem: object, more: str = "") -> None:
    """Says on standard error what is wrong. What follows the first line is indented, and never
    taken for a line of ours; then `more`."""
    print(f"rhythm: {indented(str(problem))}{more}", file=sys.stderr)


def print_source(text: str) -> None:
    """Writes the text of a file as it is, in UTF-8 whatever the terminal is; where a terminal shows
    it, what it would obey is left out."""
    if sys.stdout.isatty():
        print(text, end="")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
