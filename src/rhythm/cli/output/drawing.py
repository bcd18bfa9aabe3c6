"""Draws with rich, and writes what it has drawn through `print`, as everything else.

Whatever comes from executions, files and people is given to rich as `Text`, which has no markup: a
`[red]` in it is what it is.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from io import StringIO
from typing import TYPE_CHECKING

from rhythm.cli.output import control, print
from rhythm.cli.output.terminal import coloured

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.style import Style

UNLIMITED_COLUMNS = 1_000_000  # columns, where nothing limits a line


def draw(drawing: RenderableType, width: int | None) -> None:
    """Prints a drawing of rich on standard output, in so many columns."""
    console = _console(width or UNLIMITED_COLUMNS)
    colour = coloured(sys.stdout)
    for line in console.render_lines(drawing, pad=False):
        pieces = [
            _painted(piece.text, piece.style) if colour and piece.style else piece.text
            for piece in line
        ]
        print("".join(pieces).rstrip())


@lru_cache(4)
def _console(width: int) -> Console:
    from rich.console import Console

    return Console(width=width, file=StringIO(), _environ={})


def _painted(text: str, style: Style) -> str:
    begin, end = _sequences(style)
    return f"{control(begin)}{text}{control(end)}" if begin else text


@lru_cache(64)
def _sequences(style: Style) -> tuple[str, str]:
    """What a terminal is told before and after a text of this style."""
    from rich.color import ColorSystem

    begin, _, end = style.render("\0", color_system=ColorSystem.STANDARD).partition("\0")
    return begin, end
