"""Prints what happens while a workflow runs, one line for each step, as it happens."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TextIO

from rhythm.cli.output import print, styled
from rhythm.cli.output.table import columns, cut
from rhythm.cli.output.terminal import coloured
from rhythm.printable import one_line

_STYLES = {  # for each kind of step: its mark, its colour, the words before the detail
    "start": ("▶", "36", ""),
    "task": ("→", "34", ""),
    "done": ("✓", "32", ""),
    "retry": ("↻", "33", ""),
    "failure": ("✗", "31", ""),
    "timer": ("◷", "35", "timer "),
    "wait": ("…", "35", "waits for "),
    "signal": ("✉", "36", "signal "),
    "publish": ("✉", "36", "publishes "),
    "approval": ("?", "35", "asks for approval by "),
    "log": ("·", "2", ""),
    "progress": ("%", "2", ""),
    "completed": ("■", "32;1", "completed "),
    "failed": ("■", "31;1", "failed "),
    "cancelled": ("■", "33", "cancelled "),
    "blocked": ("■", "35", "blocked "),
    "stopped": ("■", "33", "cancelled "),
}


# steps of tasks are indented like steps of their workflow
TASKS = ("task", "done", "retry", "failure", "stopped")
# ends of an execution; the detail is the message of the error
ENDS = ("completed", "failed", "cancelled", "blocked")


class Trace:
    """Writes a line for each thing that happens. It may be called from several threads at once."""

    def __init__(self, out: TextIO, seconds: Callable[[], float]) -> None:
        self.out, self.seconds, self.began = out, seconds, seconds()
        self.labels: dict[str, str] = {}  # the details of the `start` lines, by id
        # What was last printed about the wait of an execution, by id. An execution that was woken
        # for nothing waits for the same thing again, which is not printed again.
        self.waits: dict[str, str] = {}
        self.colour = coloured(out)
        self.lock = threading.Lock()

    def __call__(self, what: str, execution: str, detail: str) -> None:
        seconds = self.seconds() - self.began
        if what == "wait" and self.waits.get(execution) == detail:
            return
        self.waits[execution] = detail if what == "wait" else ""
        if what == "start":
            self.labels[execution] = detail
        elif what in ENDS:
            detail = self.labels.get(execution, "") + (f": {detail}" if detail else "")
        margin = " " * 11 + "  " * (execution.count(".") - (what in TASKS))
        text, *more = detail.split("\n")
        line = f"{_clock(seconds):>9}  {margin[11:]}{show_step(what, text, self.colour)}"
        with self.lock:
            print(
                "\n".join((line, *(f"{margin}    {inner}" for inner in more))),
                file=self.out,
                flush=True,
            )


def show_step(what: str, text: str, colour: bool) -> str:
    """Returns a step with its mark and its words: `… waits for signal approve`.

    `what` is the name of its log event. One that is no step is a problem, and rare.
    """
    mark, paint, words = _STYLES.get(what, ("!", "31", f"{what}: "))
    return f"{styled(mark, paint) if colour else mark} {words}{text}"


def _clock(seconds: float) -> str:
    """Returns the time since the start as text: 0.12s, 1:05, 2:00:03, 3d 04:00."""
    if seconds < 60:
        return f"{seconds:.2f}s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d {hours:02}:{minutes:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def show_line(seconds: float, what: str, depth: int, text: str, colour: bool, room: int) -> str:
    """Returns a line of a trace that is shown afterwards, at most `room` columns wide.

    It has the clock, marks and indentation of `Trace`, with a text of its own. A negative time
    means that the step was kept from the execution that was retried.
    """
    mark, paint, _ = _STYLES[what]
    clock = _clock(seconds) if seconds >= 0 else "kept"
    before = f"{clock:>9}  {'  ' * depth}"
    return (
        f"{before}{styled(mark, paint) if colour else mark} "
        f"{cut(one_line(text), room - columns(before) - 2)}"
    )
