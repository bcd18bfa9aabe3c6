"""The logger of an attempt at a task: its records go to `logging`, and are kept as lines, too."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    LoggerAdapter = logging.LoggerAdapter[logging.Logger]
else:
    LoggerAdapter = logging.LoggerAdapter

TRACEBACK = 3000  # characters of a traceback that a line keeps, the last ones
Keep = Callable[[int, str, Any], None]  # is told the level, the message and the fields


class TaskLog(LoggerAdapter):
    """A standard logger whose records name the attempt.

    `keep` gets what has at least the level `least`, whatever `logging` is set up for.
    """

    def __init__(
        self, logger: logging.Logger, attempt: Mapping[str, object], least: int, keep: Keep
    ) -> None:
        super().__init__(logger, attempt)
        self._least, self._keep = least, keep

    def isEnabledFor(self, level: int) -> bool:
        """Returns whether anybody wants a record of this level."""
        return level >= self._least or super().isEnabledFor(level)

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Logs a message; `extra` becomes the fields of the line."""
        if level >= self._least:
            fields = dict(kwargs.get("extra") or {})
            if trace := _traceback(kwargs.get("exc_info")):
                fields["traceback"] = trace
            self._keep(level, _message(msg, args), fields)
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1  # who calls this, and not this
        super().log(level, msg, *args, **kwargs)


def _message(msg: object, args: tuple[object, ...]) -> str:
    """Returns the message with its values in place, as `logging` does."""
    try:
        text = str(msg)
        values = args[0] if len(args) == 1 and isinstance(args[0], Mapping) and args[0] else args
        return text % values if args else text
    except Exception:  # its own error is reported by `logging`
        return f"{type(msg).__name__} with values that do not fit"


def _traceback(given: Any) -> str:
    if not given:
        return ""
    error = (
        given
        if isinstance(given, BaseException)
        else given[1]
        if isinstance(given, tuple)
        else sys.exc_info()[1]
    )
    return "".join(traceback.format_exception(error))[-TRACEBACK:] if error else ""
