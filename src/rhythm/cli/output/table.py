"""Tables and colours for a terminal; where standard output is not one, nothing is cut and nothing
coloured."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Sequence
from typing import TextIO

from rhythm.cli.output import print, styled
from rhythm.cli.output.words import printable

COLOURS = {
    "completed": "32", "failed": "31", "cancelled": "33", "blocked": "35", "paused": "33",
    "running": "36", "suspended": "34",
    "pending": "2",
    "live": "32", "draining": "33", "dead": "31", "active": "32", "ended": "2",
}  # fmt: skip
GAP = 2


def width_of(out: TextIO) -> int | None:
    """How wide a line may be; None where nobody looks at it."""
    if (columns := os.environ.get("COLUMNS", "")).isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(out.fileno()).columns if out.isatty() else None
    except (OSError, ValueError):
        return None


def print_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], status: int | None = None
) -> None:
    """A table whose last column gets the room that is left. `status`: the column with the status,
    which is coloured."""
    lines = [tuple(map(printable, row)) for row in (heads, *rows)]
    widths = [max(map(columns, cells)) for cells in zip(*lines, strict=True)]
    room = width_of(sys.stdout)
    if room is not None:
        widths[-1] = min(
            widths[-1], max(room - sum(widths[:-1]) - GAP * (len(widths) - 1), columns(heads[-1]))
        )
    for number, cells in enumerate(lines):
        padded = [_padded(cell, width) for cell, width in zip(cells, widths, strict=True)]
        if status is not None and number:
            padded[status] = paint(padded[status], cells[status])
        print((" " * GAP).join(padded).rstrip())


def print_fields(fields: Sequence[tuple[str, str]]) -> None:
    """Names and values below each other; an empty value is left out, a long one goes on below
    itself."""
    margin = max(len(name) for name, _ in fields) + GAP
    for name, value in fields:
        for number, line in enumerate(value.split("\n") if value else ()):
            print(f"{name if number == 0 else '':<{margin}}{line}".rstrip())


def paint(text: str, status: str, out: TextIO | None = None) -> str:
    """The text in the colour of a status."""
    if status not in COLOURS or not coloured(out or sys.stdout):
        return text
    return styled(text, COLOURS[status])


def coloured(out: TextIO) -> bool:
    return out.isatty() and "NO_COLOR" not in os.environ


def _padded(cell: str, width: int) -> str:
    cell = cut(cell, width)
    return cell + " " * (width - columns(cell))


def cut(text: str, width: int) -> str:
    """The text in at most so many columns."""
    if columns(text) <= width:
        return text
    room, kept = width - 1, 0
    for c in text:
        room -= columns(c)
        if room < 0:
            break
        kept += 1
    return text[:kept].rstrip() + "…"


def columns(text: str) -> int:
    """How many columns of a terminal the text fills."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
