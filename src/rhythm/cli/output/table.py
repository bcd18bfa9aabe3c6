"""Prints tables and lists of fields.

On a terminal they fit its width. If standard output is not a terminal, nothing is wrapped, and
nothing is coloured unless FORCE_COLOR asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from rhythm.cli.output import print, styled
from rhythm.cli.output.terminal import coloured, width_of
from rhythm.cli.output.words import printable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

STYLES = {
    "completed": "green", "failed": "red", "cancelled": "yellow", "blocked": "magenta",
    "paused": "yellow", "running": "cyan", "suspended": "blue", "pending": "dim",
    "live": "green", "draining": "yellow", "dead": "red", "active": "green", "ended": "dim",
    "open": "cyan", "approved": "green", "rejected": "red", "expired": "yellow",
}  # fmt: skip
CODES = {
    "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35",
    "cyan": "36",
}  # fmt: skip
GAP = 2
# the least width of the last column: if there is less, each row is printed as a record
LEAST = 16
SHORT_NAME = 12  # the longest name in columns that stands beside its value
WRAPPED = 20_000  # the longest value in characters that we wrap; the terminal wraps longer ones
Row = Sequence[str]


def print_table(heads: Row, rows: Sequence[Row], status: int | None = None) -> None:
    """Prints a table; its last column gets the width that is left.

    `status` is the index of the status column, which is coloured. On a terminal that is too narrow,
    each row is printed as a record.
    """
    from rhythm.cli.output.drawing import draw

    cells = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(columns, column)) for column in zip(heads, *cells, strict=True)]
    room, first = width_of(sys.stdout), sum(widths[:-1]) + GAP * (len(widths) - 1)
    if not sys.stdout.isatty():
        last = None if room is None else max(room - first, columns(heads[-1]))
        draw(_table(heads, [_cut_last(row, last) for row in cells], status), None)
    elif room is None or first + min(widths[-1], LEAST) <= room:
        draw(_table(heads, cells, status), room)
    else:
        _print_records(heads, cells, status)


def print_fields(fields: Sequence[tuple[str, str]]) -> None:
    """Prints names and values, one pair per line. Empty values are left out.

    A long value continues below itself. The first word of the field `status` is coloured.
    """
    shown = [(name, value) for name, value in fields if value]
    margin = max(len(name) for name, _ in fields) + GAP
    if sys.stdout.isatty() and all(len(value) <= WRAPPED for _, value in shown):
        return _draw_fields(shown, margin)
    for name, value in shown:
        status = value.split(" ")[0] if name == "status" else ""
        value = paint(status, status) + value.removeprefix(status)
        for number, line in enumerate(value.split("\n")):
            print(f"{name if number == 0 else '':<{margin}}{line}".rstrip())


def paint(text: str, status: str, out: TextIO | None = None) -> str:
    """Returns the text in the colour of a status, if `out` (else standard output) shows colours."""
    if status not in STYLES or not coloured(out or sys.stdout):
        return text
    return styled(text, CODES[STYLES[status]])


def cut(text: str, width: int) -> str:
    """Returns the text in at most `width` columns; `…` marks where it was cut."""
    from rich.cells import set_cell_size

    if columns(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"


def columns(text: str) -> int:
    """Returns how many columns of a terminal the text fills."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _cut_last(row: Row, width: int | None) -> Row:
    return row if width is None else (*row[:-1], cut(row[-1], width))


def _table(heads: Row, rows: Sequence[Row], status: int | None) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for head in heads[:-1]:
        table.add_column(Text(head), no_wrap=True, min_width=columns(head))
    table.add_column(Text(heads[-1]), overflow="fold")
    for row in rows:
        table.add_row(*(_text(cell, cell if at == status else "") for at, cell in enumerate(row)))
    return table


def _print_records(heads: Row, rows: Sequence[Row], status: int | None) -> None:
    """Prints each row as a record, with a line for each cell that is not empty.

    This is for a terminal that is too narrow for the table.
    """
    margin = max(len(head) for head in heads if len(head) <= SHORT_NAME) + GAP
    for number, row in enumerate(rows):
        if number:
            print()
        names = ["status" if at == status else head.lower() for at, head in enumerate(heads)]
        _draw_fields([(name, cell) for name, cell in zip(names, row, strict=True) if cell], margin)


def _draw_fields(fields: Sequence[tuple[str, str]], margin: int) -> None:
    from rich.table import Table
    from rich.text import Text

    from rhythm.cli.output.drawing import draw

    width = width_of(sys.stdout)
    for name, value in fields:
        word, shown = value.split(" ")[0] if name == "status" else "", name
        if len(name) >= margin:  # a long name gets its own line
            draw(Text(name, "dim"), width)
            shown = ""
        grid = Table.grid()
        grid.add_column(width=margin)
        grid.add_column(overflow="fold")
        grid.add_row(Text(shown, "dim"), _text(value, word))
        draw(grid, width)


def _text(value: str, status: str = "") -> Text:
    """Returns a text for rich; the status at its beginning is coloured."""
    from rich.text import Text

    text = Text(value)
    if status in STYLES:
        text.stylize(STYLES[status], 0, len(status))
    return text
