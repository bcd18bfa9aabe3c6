"""The output of the command line: everything goes through `print` here, which makes it safe to
show.

It has the name of Python's own `print`. Texts of executions, files and people can contain anything,
also control sequences that a terminal obeys. So `print` lets through only printable characters and
our own sequences. Code that styles a text marks these with `control`; the mark is random, so that
nobody else can know it. What tasks print is not changed: it does not come through here.
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
    """Prints like Python's `print`, without characters that a terminal would obey."""
    text = shown(sep.join(map(str, values)))
    builtins.print(text, end=end, file=sys.stdout if file is None else file, flush=flush)


def shown(text: str) -> str:
    """Returns the text as it is written out.

    Each character that is not printable is replaced by a stand-in, each marked sequence by the
    sequence itself.
    """
    first, *rest = text.split(MARK)
    out = [visible(first, KEPT_CONTROLS)]
    for piece in rest:
        sequence, _, more = piece.partition(END)
        out += (sequence, visible(more, KEPT_CONTROLS))
    return "".join(out)


def control(sequence: str) -> str:
    """Marks a terminal sequence as ours, so that `print` lets it through."""
    return f"{MARK}{sequence}{END}"


def styled(text: str, style: str) -> str:
    """Returns the text in a terminal style, such as 32 (green)."""
    return control(f"\x1b[{style}m") + text + control("\x1b[0m")


def print_problem(problem: object, more: str = "") -> None:
    """Prints on standard error what is wrong, and then `more`.

    Lines after the first are indented, so that they are not taken for messages of Rhythm.
    """
    print(f"rhythm: {indented(str(problem))}{more}", file=sys.stderr)


def print_source(text: str) -> None:
    """Writes the text of a file to standard output: unchanged, in UTF-8.

    On a terminal it goes through `print`, which replaces characters that the terminal would obey.
    """
    if sys.stdout.isatty():
        print(text, end="")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
