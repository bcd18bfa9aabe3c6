"""Shows what an execution and everything below it have said: lines of logs, progress, heartbeats.

Each line has its time (UTC), its level, and the workflow or task that said it; `charge#2` is the
second attempt at `charge`. With --follow it goes on until the execution has ended.

  rhythm logs 06fe1sz2n5qg7v0k4m8c3x9yte --follow
  rhythm logs 06fe1sz2n5qg7v0k4m8c3x9yte --level warning --since 1h
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rhythm.cli.command import Arguments, command, option
from rhythm.cli.connect import application, find
from rhythm.cli.options import DATABASE_OR_SERVER, EXECUTION, OUTPUT
from rhythm.cli.output import print
from rhythm.cli.remote import server_of
from rhythm.cli.types import Duration, OneOf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rhythm.app import Rhythm
    from rhythm.app.log_lines import LogPage

PAGE_LINES, PAGE_BYTES = 1000, 4 * 1024 * 1024  # at most this much is read at a time
POLL_INTERVAL_S = 0.3  # between two looks for what is new
SERVER_INTERVAL_S = 1.0  # between two looks that are requests to a server
SETTLED_S = 1.0  # after the end of an execution: its last lines are written by then
LEVEL = option(
    "--level",
    type=OneOf("debug", "info", "warning", "error"),
    default="debug",
    help="only lines from this level on",
)
FOLLOW = option("--follow", is_flag=True, help="go on with what comes, until the execution ends")


@command(__doc__)
@EXECUTION
@LEVEL
@option("--since", type=Duration(), help="only lines that are no older, such as 10m")
@FOLLOW
@OUTPUT
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    with application(args) as app:
        id = find(app, args.id).id
        after = 0 if args.since is None else int((time.time() - args.since) * 1e6)
        pages = (
            follow_logs(app, id, after, args.level, interval_s(args))
            if args.follow
            else log_pages(app, id, after, args.level)
        )
        if args.output == "table":
            _print(pages)
        else:
            _print_json(args.output, pages)
    return 0


def log_pages(app: Rhythm, id: str, after: int, level: str) -> Iterator[LogPage]:
    """Yields all lines that there are after a position, page by page."""
    while True:
        page = app.logs(id, after, PAGE_LINES, level=level, most_bytes=PAGE_BYTES)
        yield page
        if page.cursor is None:
            return
        after = page[-1].position


def interval_s(args: Arguments) -> float:
    """Returns how long to wait between two looks for what is new."""
    return POLL_INTERVAL_S if server_of(args) is None else SERVER_INTERVAL_S


def follow_logs(app: Rhythm, id: str, after: int, level: str, rest_s: float) -> Iterator[LogPage]:
    """Yields the lines that there are, and those that come, until the execution has ended."""
    ended_at: float | None = None
    while True:
        if ended_at is None and app.get(id).ended:
            ended_at = time.monotonic()
        for page in log_pages(app, id, after, level):
            after = page[-1].position if page else after
            yield page
        if ended_at is not None and time.monotonic() - ended_at >= SETTLED_S:
            return
        time.sleep(rest_s)


def _print(pages: Iterator[LogPage]) -> None:
    import sys

    from rhythm.cli.output.log_lines import not_kept, show_log_line
    from rhythm.cli.output.terminal import coloured

    colour, dropped = coloured(sys.stdout), 0
    for page in pages:
        for line in page:
            print(show_log_line(line, colour), flush=True)
        dropped = page.dropped
    if dropped:
        print(f"({not_kept(dropped)})")


def _print_json(output: str, pages: Iterator[LogPage]) -> None:
    """Prints the lines as one document, which says how many were not kept; or one after another."""
    import sys

    from rhythm.app.views import as_json
    from rhythm.cli.output.documents import print_items

    if output == "json":
        found = list(pages)
        lines = [as_json(line) for page in found for line in page]
        return print_items(output, lines, dropped=found[-1].dropped)
    for page in pages:
        print_items(output, map(as_json, page))
        sys.stdout.flush()
    return None
