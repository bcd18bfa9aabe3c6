"""What happens while a workflow runs, a line each, as it happens."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TextIO

from rhythm.cli.output import print, styled
from rhythm.cli.output.table import columns, cut
from rhythm.cli.output.terminal import coloured
from rhythm.printable import one_line

_LOOKS = {  # what happened: mark, colour, words before the detail
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


# what happens to a task is shown with its workflow
TASKS = ("task", "done", "retry", "failure", "stopped")
# of an execution; its detail is the error's message
ENDS = ("completed", "failed", "cancelled", "blocked")


class Trace:
    """Writes one line per happening. Called from one thread at a time or many."""

    def __init__(self, out: TextIO, seconds: Callable[[], float]) -> None:
        self.out, self.seconds, self.began = out, seconds, seconds()
        self.labels: dict[str, str] = {}  # of executions, by id
        # what they were last said to wait for: one that was woken for nothing waits on
        self.waits: dict[str, str] = {}
        self.colour = coloured(out)
        self.lock = threading.Lock()

    def __call__(self, what: str, execution: str, detail: str) -> None:
        seconds = self.seconds() - self.began
        # the rest is trouble, and rare
        mark, colour, words = _LOOKS.get(what, ("!", "31", f"{what}: "))
        if what == "wait" and self.waits.get(execution) == detail:
            return
        self.waits[execution] = detail if what == "wait" else ""
        if what == "start":
            self.labels[execution] = detail
        elif what in ENDS:
            detail = self.labels.get(execution, "") + (f": {detail}" if detail else "")
        margin = " " * 11 + "  " * (execution.count(".") - (what in TASKS))
        text, *more = detail.split("\n")
        line = f"{_clock(seconds):>9}  {margin[11:]}{self._paint(mark, colour)} {words}{text}"
        with self.lock:
            print(
                "\n".join((line, *(f"{margin}    {inner}" for inner in more))),
                file=self.out,
                flush=True,
            )

    def _paint(self, text: str, colour: str) -> str:
        return styled(text, colour) if self.colour else text


def _clock(seconds: float) -> str:
    """Time since the start: 0.12s, 1:05, 2:00:03, 3d 04:00."""
    if seconds < 60:
        return f"{seconds:.2f}s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d {hours:02}:{minutes:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def show_line(seconds: float, what: str, depth: int, text: str, colour: bool, room: int) -> str:
    """A line of a trace that is told afterwards, in so many columns: the same clock, marks and
    indentation, in its own words.

    What comes before the beginning was kept from an earlier execution.
    """
    mark, paint, _ = _LOOKS[what]
    clock = _clock(seconds) if seconds >= 0 else "kept"
    before = f"{clock:>9}  {'  ' * depth}"
    return (
        f"{before}{styled(mark, paint) if colour else mark} "
        f"{cut(one_line(text), room - columns(before) - 2)}"
    )
