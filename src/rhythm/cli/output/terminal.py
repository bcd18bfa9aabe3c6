"""What a stream is written for: how wide its lines may be, and whether it shows colours."""

from __future__ import annotations

import os
from typing import TextIO


def width_of(out: TextIO) -> int | None:
    """How wide a line may be; None where nobody looks at it."""
    if (columns := os.environ.get("COLUMNS", "")).isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(out.fileno()).columns if out.isatty() else None
    except (OSError, ValueError):
        return None


def coloured(out: TextIO) -> bool:
    """Whether colours are wanted: on a terminal, and as NO_COLOR and FORCE_COLOR say."""
    if "NO_COLOR" in os.environ:
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (
        out.isatty() and os.environ.get("TERM") != "dumb"
    )
