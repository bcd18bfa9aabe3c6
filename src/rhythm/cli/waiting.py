"""Waiting for the end of an execution, with a line that says how it is: rewritten on a terminal,
else one for every change."""

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
PATIENCE_S = 3.0  # without any change, before a hint is given
ERASE_LINE = control("\r\x1b[K")  # back to the beginning of the line, which is empty then
Hint = Callable[["ExecutionView"], str]


class ProgressLine:
    """Says on standard error how an execution is."""

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
        self.clear()
        print(f"note: {text}", file=self.out, flush=True)

    def clear(self) -> None:
        if self.live:
            print(ERASE_LINE, end="", file=self.out, flush=True)


def wait(
    app: Rhythm,
    id: str,
    timeout: float | None,
    hint: Hint,
    alive: Callable[[], object] = lambda: None,
) -> ExecutionView | int:
    """The execution when it has ended, or the exit code of the command that did not want to wait
    longer.

    `hint` is asked when nothing has changed for a while; `alive` may raise what makes waiting
    pointless.
    """
    progress = ProgressLine(sys.stderr)
    try:
        return _wait(app, id, PollBackoff(timeout, time.monotonic), progress, hint, alive)
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
    with app.changes.heard_by(changed.set):
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
    """Prints the result, or says why there is none: the exit code."""
    import json

    from rhythm.cli.output.documents import print_json
    from rhythm.cli.output.failure import show_failure

    if execution.error is None:
        print_json(json.dumps(execution.result, ensure_ascii=False, indent=2))
        return 0
    print(show_failure(app, execution), file=sys.stderr)
    return 1
