"""Waits for the end of an execution, with a line that says how it is.

On a terminal the line is rewritten; else a line is printed for each change.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from rhythm.app.waiting import PollBackoff, try_get
from rhythm.cli.output import control, print, print_problem
from rhythm.cli.output.table import cut, paint
from rhythm.cli.output.terminal import width_of
from rhythm.cli.output.words import length, waits_for
from rhythm.errors import ResultTimeout, StoreError

if TYPE_CHECKING:
    from rhythm.app import ExecutionView, Rhythm

STILL_RUNNING, INTERRUPTED = 3, 130
PATIENCE_S = 3.0  # how long nothing may change before a hint is given
ERASE_LINE = control("\r\x1b[K")  # goes back to the beginning of the line, and empties it
Hint = Callable[["ExecutionView"], str]


class ProgressLine:
    """Prints how an execution is, on a stream such as standard error."""

    def __init__(self, out: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        self.out, self.now = out, now
        self.began, self.live, self.said = now(), out.isatty(), ""

    def __call__(self, execution: ExecutionView) -> None:
        waits = waits_for(execution.awaiting) if execution.status != "paused" else ""
        how = (
            f"{execution.name} waits for {waits}"
            if waits
            else f"{execution.name} is {execution.status}"
        )
        if self.live:
            line = cut(
                f"{length(self.now() - self.began):>7}  {how}", (width_of(self.out) or 80) - 1
            )
            print(
                f"{ERASE_LINE}{paint(line, execution.status, self.out)}",
                end="",
                file=self.out,
                flush=True,
            )
        elif how != self.said:
            print(how, file=self.out, flush=True)
        self.said = how

    def note(self, text: str) -> None:
        """Prints a note on a line of its own."""
        self.clear()
        print(f"note: {text}", file=self.out, flush=True)

    def clear(self) -> None:
        """Erases the line, on a terminal."""
        if self.live:
            print(ERASE_LINE, end="", file=self.out, flush=True)


def wait(
    app: Rhythm,
    id: str,
    timeout: float | None,
    hint: Hint,
    alive: Callable[[], object] = lambda: None,
) -> ExecutionView | int:
    """Waits, and returns the execution when it has ended, or the exit code if the wait is given up.

    That is after `timeout` seconds, or at Ctrl-C. `hint` is asked for a note when nothing has
    changed for a while. `alive` is called in each round, and may raise an exception if it is
    pointless to wait.
    """
    progress = ProgressLine(sys.stderr)
    try:
        patience = PollBackoff(timeout, time.monotonic, lambda: app.changes.hears_ends)
        return _wait(app, id, patience, progress, hint, alive)
    except ResultTimeout as problem:
        progress.clear()
        print_problem(problem)
        return STILL_RUNNING
    except KeyboardInterrupt:
        progress.clear()
        print(
            f"rhythm: stopped waiting; {id} has not ended, `rhythm show {id}` tells how it is",
            file=sys.stderr,
        )
        return INTERRUPTED
    finally:
        progress.clear()


def _wait(
    app: Rhythm,
    id: str,
    patience: PollBackoff,
    progress: ProgressLine,
    hint: Hint,
    alive: Callable[[], object],
) -> ExecutionView:
    changed, hinted, since, before = threading.Event(), "", time.monotonic(), ""
    with app.changes.awaited(id, changed.set):
        while isinstance(found := try_get(app.get, id), StoreError) or not found.ended:
            alive()
            if not isinstance(found, StoreError):
                progress(found)
                if progress.said != before:
                    before, since = progress.said, time.monotonic()
                elif time.monotonic() - since > PATIENCE_S and before != hinted:
                    hinted = before
                    if text := hint(found):
                        progress.note(text)
            changed.wait(patience.rest_s(found))
            changed.clear()
    return found


def finish(app: Rhythm, execution: ExecutionView) -> int:
    """Prints the result, or why there is none. Returns the exit code."""
    import json

    from rhythm.cli.output.documents import print_json
    from rhythm.cli.output.failure import show_failure

    if execution.error is None:
        print_json(json.dumps(execution.result, ensure_ascii=False, indent=2))
        return 0
    print(show_failure(app, execution), file=sys.stderr)
    return 1
