"""Prints lines of logs: one for each, with its time, level and task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rhythm.cli.output import styled
from rhythm.printable import one_line

if TYPE_CHECKING:
    from rhythm.app.log_lines import LogLineView

LEVEL_STYLES = {"debug": "2", "warning": "33", "error": "31", "critical": "31;1"}
MARKS = {"log": "", "progress": "% ", "heartbeat": "♥ "}


def show_log_line(line: LogLineView, colour: bool) -> str:
    """Returns a line of a log: `17:20:01.123 warning  charge#2  the card was declined code=51`.

    The time is in UTC. `#2` is the number of a task's attempt, if it is not the first.
    """
    level = f"{line.level:<8}"
    paint = LEVEL_STYLES.get(line.level)
    shown = styled(level, paint) if colour and paint else level
    return f"{line.at:%H:%M:%S}.{line.at.microsecond // 1000:03} {shown} {who(line)}  {said(line)}"


def who(line: LogLineView) -> str:
    """Returns whose line it is: the workflow or task, with the attempt if it is not the first."""
    again = f"#{line.attempt}" if line.attempt > 1 else ""
    return f"{one_line(line.name)}{again}"


def said(line: LogLineView) -> str:
    """Returns what a line says, on one line: its mark, its message and its fields."""
    mark = MARKS.get(line.kind, "")
    rest = {name: value for name, value in line.fields.items() if name != "fraction"}
    text = f"{mark}{one_line(line.in_words())} {_fields(rest if mark == '% ' else line.fields)}"
    return text.rstrip()


def not_kept(dropped: int) -> str:
    """Returns how many lines were not kept, in words."""
    return f"{dropped:,} more {'line was' if dropped == 1 else 'lines were'} not kept"


def _fields(fields: Mapping[str, Any]) -> str:
    from rhythm.cli.output.words import brief

    return " ".join(
        f"{one_line(name)}={_value(value) if isinstance(value, str) else brief(value, 200)}"
        for name, value in fields.items()
    )


def _value(text: str) -> str:
    from rhythm.cli.output.words import brief

    plain = text and text.isprintable() and not any(c in text for c in ' "=')
    return text if plain and len(text) <= 200 else brief(text, 200)
