"""Shows what is going on, and keeps it up to date: executions by status, what started and ended in
the last minute, queues, workers, open approvals, and the newest failures.

On a terminal it is drawn anew every two seconds, until q or Ctrl-C; elsewhere, and with --once, it
is printed once. It costs the database little, however much is in it: counts stop at 5,000. NEXT is
how long the work has waited that is claimed next.

  rhythm top
  rhythm top --once --output json
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rhythm.cli.command import Arguments, UsageError, command, option
from rhythm.cli.connect import application
from rhythm.cli.options import DATABASE_OR_SERVER
from rhythm.cli.output import control, print
from rhythm.cli.types import Duration, OneOf

if TYPE_CHECKING:
    from rhythm.app import Rhythm, WorkerView
    from rhythm.app.overview import FailureView, OverviewView, WaitingView

LEAST_S = 1.0  # between two times that it asks
ROWS = 12  # of each table, where no terminal limits them
FIXED_LINES = 20  # of the screen: all but the rows of queues and workers
CLEAR = control("\x1b[H\x1b[2J")  # to the first line, and all of the screen empty
# a screen of its own, without a cursor; the one before comes back afterwards
BEGIN, END = control("\x1b[?1049h\x1b[?25l"), control("\x1b[?25h\x1b[?1049l")
QUEUES = ("QUEUE", "READY", "NEXT", "NOTE")
WORKERS = ("WORKER", "STATE", "RUNNING", "CLAIMS", "HOST", "QUEUES")
FAILURES = ("FAILED", "WORKFLOW", "AGE", "ERROR")


@command(__doc__)
@option("--once", is_flag=True, help="print it once, and end")
@option(
    "--interval",
    type=Duration(),
    default="2s",
    help="how often it is drawn, such as 5s; at least 1s",
)
@option(
    "--output",
    type=OneOf("table", "json"),
    default="table",
    help="table for people; json: one document, printed once",
)
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    if args.interval < LEAST_S:
        raise UsageError(f"--interval is at least {LEAST_S:.0f}s, not {args.interval.text}")
    with application(args) as app:
        if args.output == "json":
            from rhythm.cli.output.documents import print_item

            print_item("json", app.overview().as_json())
        elif args.once or not _is_screen():
            print_overview(app.overview(), ROWS)
        else:
            _draw_until_stopped(app, args.interval)
    return 0


def _is_screen() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _draw_until_stopped(app: Rhythm, interval_s: float) -> None:
    from rhythm.errors import Unavailable

    with _screen():
        while True:
            try:
                seen = app.overview()
            except Unavailable as problem:  # it may come back: what was shown stays out of sight
                print(f"{CLEAR}{' '.join(str(problem).split())}")
            else:
                print(CLEAR, end="")
                lines = os.get_terminal_size(sys.stdout.fileno()).lines
                print_overview(seen, max(1, (lines - FIXED_LINES) // 2))
            sys.stdout.flush()
            if _is_stopped(interval_s):
                return


@contextmanager
def _screen() -> Iterator[None]:
    """Gives the command the whole terminal: keys are read at once, and are not shown."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        print(BEGIN, end="", flush=True)
        yield
    finally:
        print(END, end="", flush=True)
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _is_stopped(seconds: float) -> bool:
    """Waits for a key, at most so long. Returns whether it was q, or the terminal is gone."""
    import select

    if not select.select([sys.stdin], [], [], seconds)[0]:
        return False
    key = os.read(sys.stdin.fileno(), 1)
    return key in (b"q", b"Q", b"")


def print_overview(seen: OverviewView, rows: int) -> None:
    """Prints what is going on, with at most so many rows of each table."""
    from rhythm.cli.output.table import print_fields, print_table
    from rhythm.cli.output.words import age

    print_fields(
        [
            ("at", f"{seen.at:%Y-%m-%d %H:%M:%S} UTC"),
            ("live", _counts(seen, seen.live) or "none"),
            ("last minute", _last_minute(seen)),
            (
                "approvals",
                f"{_count(seen, seen.approvals)} open" if seen.approvals else "none open",
            ),
        ]
    )
    queues = [_queue_row(seen, queue) for queue in seen.queues]
    _print_part(QUEUES, queues, rows, "no queue has ready work")
    _print_part(WORKERS, [_worker_row(one) for one in seen.workers], rows, "no workers", status=1)
    failed = [(one.id, one.name, age(one.at, seen.at), _error(one)) for one in seen.failures]
    if failed:
        print()
        print_table(FAILURES, failed)


def _print_part(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    most: int,
    nothing: str,
    status: int | None = None,
) -> None:
    from rhythm.cli.output.table import print_table

    print()
    if not rows:
        print(nothing)
        return
    print_table(heads, rows[:most], status=status)
    if len(rows) > most:
        print(f"… and {len(rows) - most:,} more")


def _count(seen: OverviewView, n: int) -> str:
    return f"{n:,}+" if n >= seen.most else f"{n:,}"


def _counts(seen: OverviewView, counted: Mapping[str, int]) -> str:
    return ", ".join(f"{_count(seen, n)} {status}" for status, n in counted.items())


def _last_minute(seen: OverviewView) -> str:
    ended = _counts(seen, seen.ended)
    return f"{_count(seen, seen.started)} started" + (f", {ended}" if ended else ", none ended")


def _queue_row(seen: OverviewView, queue: WaitingView) -> tuple[str, ...]:
    from rhythm.cli.output.words import length

    waits = "" if queue.next_s is None else length(queue.next_s)
    return queue.name, _count(seen, queue.ready), waits, "paused" if queue.paused else ""


def _worker_row(worker: WorkerView) -> tuple[str, ...]:
    return (
        worker.name,
        worker.state,
        f"{worker.running:,}/{worker.concurrency:,}",
        f"{worker.claims:,}",
        worker.host,
        ",".join(worker.queues),
    )


def _error(failure: FailureView) -> str:
    from rhythm.cli.output.table import cut

    return cut(f"{failure.code}: {failure.message}", 200)
