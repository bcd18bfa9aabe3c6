"""The properties of an output stream: how wide a line may be, and whether it shows colours."""

from __future__ import annotations

import os
from typing import TextIO


def width_of(out: TextIO) -> int | None:
    """Returns how wide a line may be, in columns; None means no limit.

    COLUMNS sets it; else it is the width of the terminal, and without a terminal there is no limit.
    """
    if (columns := os.environ.get("COLUMNS", "")).isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(out.fileno()).columns if out.isatty() else None
    except (OSError, ValueError):
        return None


def coloured(out: TextIO) -> bool:
    """Returns whether to write colours to this stream.

    That is so on a terminal, except a dumb one. NO_COLOR turns colours off, FORCE_COLOR on, and
    FORCE_COLOR=0 off. A variable that is empty says nothing.
    """
    force = os.environ.get("FORCE_COLOR")
    if os.environ.get("NO_COLOR") or force == "0":
        return False
    return bool(force) or (out.isatty() and os.environ.get("TERM") != "dumb")
