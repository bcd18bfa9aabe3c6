"""What callers see of what executions have said: lines, and pages of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rhythm.app.views import PageOf, moment
from rhythm.engine.levels import LEVELS, level_name
from rhythm.engine.payload import load
from rhythm.record import Record
from rhythm.store.interfaces.logs import LINE_KINDS, LogLine


class LogLineView(Record):
    """Something that an execution has said. Times are in UTC."""

    # It grows with every line of a family, in the order in which they were stored: the microseconds
    # since 1970 at that time, or one more than the line before.
    position: int
    at: datetime  # when it was said
    execution_id: str
    kind: str  # log, progress (of a workflow) or heartbeat (of a task)
    level: str  # debug, info, warning, error, critical
    message: str
    fields: dict[str, Any]  # of progress: `fraction`
    name: str  # of the workflow or task
    attempt: int  # of the task, from 1; of a workflow 0
    worker: str

    def in_words(self) -> str:
        """Returns the message; of progress, after how much is done."""
        fraction = self.fields.get("fraction")
        part = f"{fraction:.0%}" if self.kind == "progress" and _is_part(fraction) else ""
        return " ".join(text for text in (part, self.message) if text)


class LogPage(PageOf[LogLineView]):
    """One page of lines, in their order: a sequence of them.

    `cursor` asks for the next page; None means that there are no more now. `dropped` counts the
    lines of the whole family that were not kept, because they were too many.
    """

    dropped: int = 0


def line_view(line: LogLine) -> LogLineView:
    """Returns a line as callers see it."""
    return LogLineView(
        line.position,
        moment(line.at),
        line.execution_id,
        LINE_KINDS[line.kind],
        level_name(line.level),
        line.message,
        load(line.fields) if line.fields else {},
        line.name,
        line.attempt,
        line.worker,
    )


def valid_level(level: Any) -> int:
    """Returns the number of a level. Raises `ValueError` if there is no such level."""
    if not isinstance(level, str) or level not in LEVELS:
        raise ValueError(f"level is one of {', '.join(LEVELS)}, not {level!r:.80}")
    return LEVELS[level]


def _is_part(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
