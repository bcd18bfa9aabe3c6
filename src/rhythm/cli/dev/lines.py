"""The lines of `rhythm dev`: one for each thing that happens, made of the log events of its worker.

Each line has the time and the id of the execution, so that many at once stay readable. If more
happens than people can read, the rest of that second is counted.
"""

from __future__ import annotations

import logging
import shlex
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any, TextIO
from zlib import crc32

from rhythm.cli.output import print, styled
from rhythm.cli.output.terminal import coloured
from rhythm.cli.output.trace import ENDS, TASKS, show_step
from rhythm.ids import LENGTH
from rhythm.printable import one_line
from rhythm.worker.logs import OF_A_TASK

WINDOW_S = 1.0
MAX_LINES = 40  # in a window; and as many again of what goes wrong
MAX_REMEMBERED = 10_000  # executions of which is remembered what they are, or wait for
SHORT_ID = 6  # the end of an id that Rhythm made; the beginning is the time
ID_COLUMNS = 12
ID_COLOURS = ("34", "35", "36", "32", "33", "94", "95", "96")
# Events that the command reports itself, or that say nothing to the person at the keyboard.
UNSAID = frozenset({"worker_started", "worker_draining", "worker_stopped", "database_back"})
COUNTED = {  # what is counted, in words
    "start": "started", "task": "tasks began", "done": "tasks ended", "retry": "failed attempts",
    "failure": "tasks failed", "timer": "timers", "wait": "waits", "signal": "signals",
    "log": "logged", "progress": "reports of progress",
}  # fmt: skip


class Flood:
    """Lets a number of lines through in each window of time, and counts the others."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now, self._began = now, now()
        self._shown: Counter[bool] = Counter()
        self._counted: Counter[str] = Counter()

    def admits(self, what: str, problem: bool) -> bool:
        """Returns whether a line may be shown; else it is counted. Problems are counted apart."""
        if self._now() - self._began >= WINDOW_S and not self._counted:
            self._began, self._shown = self._now(), Counter()
        self._shown[problem] += 1
        if self._shown[problem] <= MAX_LINES:
            return True
        self._counted[what] += 1
        return False

    def over(self) -> str:
        """Returns what was counted, in words, once the window is over; empty if nothing was."""
        if not self._counted or self._now() - self._began < WINDOW_S:
            return ""
        counted, self._counted = self._counted, Counter()
        self._began, self._shown = self._now(), Counter()
        parts = [f"{count:,} {COUNTED.get(what, what)}" for what, count in counted.most_common()]
        return f"{counted.total():,} more: {', '.join(parts)}"


class Lines(logging.Handler):
    """Prints a line for each log record. `database` is what commands need to find the database."""

    def __init__(self, out: TextIO | None = None, database: str = "") -> None:
        super().__init__()
        self._out = sys.stdout if out is None else out
        self._where = f" --database {database}" if database else ""
        self._colour = coloured(self._out)
        self._flood = Flood(time.monotonic)
        self._labels: dict[str, str] = {}  # names of workflows, by the ids of their executions
        self._waits: dict[str, str] = {}  # what each was last said to wait for
        self.unread = False  # nobody reads the lines any more: the terminal or the pipe is closed

    def emit(self, record: logging.LogRecord) -> None:
        """Prints the record, or counts it. Called by `logging`, one record at a time."""
        try:
            self._emit(record)
        except Exception:  # as `logging` asks for: what is logged must not stop who logs
            self.handleError(record)

    def _emit(self, record: logging.LogRecord) -> None:
        self._report_flood()
        fields: dict[str, Any] = getattr(record, "fields", {})
        what: str = getattr(record, "event", "log")
        if what in UNSAID:
            return
        id = str(fields.get("execution_id") or getattr(record, OF_A_TASK[0], ""))
        problem = record.levelno >= logging.INFO and what != "log"
        detail = str(fields.get("detail", "")) if fields else _message(record)
        if what == "wait" and self._waits.get(id) == detail:
            return  # it was woken for nothing, and waits for the same thing again
        detail = self._follow(what, id, detail)
        if self._flood.admits(what, problem):
            inner = str(fields.get("traceback") or _traceback(record)).splitlines()
            of_task = what in TASKS or hasattr(record, OF_A_TASK[1])
            self._line(what, id, (id.rpartition(".")[0] or id) if of_task else id, detail, inner)

    def _follow(self, what: str, id: str, detail: str) -> str:
        """Remembers what executions are called and wait for; returns the detail to show.

        The end of an execution that another process began is shown without a name.
        """
        if what == "wait":
            _remember(self._waits, id, detail)
        elif what == "start":
            _remember(self._labels, id, detail)
        elif what in ENDS:
            self._waits.pop(id, None)
            return ": ".join(filter(None, (self._labels.pop(id, ""), detail)))
        else:
            self._waits.pop(id, None)
        return detail

    def _line(self, what: str, id: str, owner: str, detail: str, more: list[str]) -> None:
        """Prints a line. `owner` is the execution that it is about: of a task, its workflow."""
        label, indent = one_line(short_id(owner)), "  " * owner.count(".")
        clock = time.strftime("%H:%M:%S")
        margin = " " * (len(clock) + ID_COLUMNS + 4 + len(indent)) + "    "
        painted = self._paint(f"{label:<{ID_COLUMNS}}", ID_COLOURS[crc32(owner.encode()) % 8])
        step = show_step(what, one_line(detail), self._colour)
        line = f"{self._paint(clock, '2')}  {painted}  {indent}{step}".rstrip()
        if hint := self._hint(what, id, detail):
            line += "  " + self._paint(f"({one_line(hint)})", "2")
        inner = [f"{margin}{one_line(each)}" for each in more]
        self._print("\n".join((line, *inner)))

    def _hint(self, what: str, id: str, detail: str) -> str:
        """Returns the command that helps; empty if there is none."""
        kind, _, name = detail.partition(" ")
        name = shlex.quote(name)
        found = {
            ("failed", ""): f"rhythm why {id}",
            ("blocked", ""): f"rhythm why {id}",
            ("approval", ""): "rhythm approvals",
            ("wait", "signal"): f"rhythm signal {id} {name}",
            ("wait", "event"): f"rhythm publish {name} JSON",
        }.get((what, kind if what == "wait" else ""))
        return f"{found}{self._where}" if found and (what != "failed" or "." not in id) else ""

    def say(self, text: str, style: str = "") -> None:
        """Prints a line that is about no execution."""
        clock = self._paint(time.strftime("%H:%M:%S"), "2")
        text = self._paint(text, style) if style else text
        self._print(f"{clock}  {text}")

    def _print(self, text: str) -> None:
        try:
            # in one piece: tasks print, too, in other threads
            print(f"{text}\n", end="", file=self._out, flush=True)
        except OSError:
            self.unread = True

    def tick(self) -> None:
        """Reports what was counted, once its time is over. Call it now and then."""
        self.acquire()
        try:
            self._report_flood()
        finally:
            self.release()

    def _report_flood(self) -> None:
        if counted := self._flood.over():
            self.say(f"… {counted}", "2")

    def _paint(self, text: str, style: str) -> str:
        return styled(text, style) if self._colour else text


def _remember(known: dict[str, str], id: str, what: str) -> None:
    """Notes something of an execution, and forgets the oldest: many never end here."""
    known[id] = what
    if len(known) > MAX_REMEMBERED:
        del known[next(iter(known))]


def short_id(id: str) -> str:
    """Returns an id for a line: of a long one that Rhythm made only the end, which differs."""
    root, dot, rest = id.partition(".")
    return f"{root[-SHORT_ID:] if len(root) == LENGTH else root}{dot}{rest}"


def _message(record: logging.LogRecord) -> str:
    named = record.name.startswith("rhythm.")
    return record.getMessage() if named else f"{record.name}: {record.getMessage()}"


def _traceback(record: logging.LogRecord) -> str:
    return "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
