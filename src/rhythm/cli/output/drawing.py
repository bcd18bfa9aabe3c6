"""Draws with rich, and prints the drawing through `print`, as all other output.

Texts of executions, files and people are given to rich as `Text`, which has no markup: `[red]` in
them is shown as it is.
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

UNLIMITED_COLUMNS = 1_000_000  # the width where nothing limits a line


def draw(drawing: RenderableType, width: int | None) -> None:
    """Prints a drawing of rich on standard output, at most `width` columns wide; None: no limit."""
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
    """Returns the terminal sequences before and after a text of this style."""
    from rich.color import ColorSystem

    begin, _, end = style.render("\0", color_system=ColorSystem.STANDARD).partition("\0")
    return begin, end
