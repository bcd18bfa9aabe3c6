"""Prints what happens in an execution, step by step, as it happens, until it has ended.

The lines are those of `rhythm trace`; first come those of what has happened already. Exit code 0:
it completed; 1: it failed, was cancelled or blocked (standard error says why); 3: it had not ended
after --timeout.

  rhythm watch 06fe1sz2n5qg7v0k4m8c3x9yte
  rhythm watch 06fe1sz2n5qg7v0k4m8c3x9yte --output ndjson --timeout 1h
"""

from __future__ import annotations

import json
import sys
from time import monotonic, sleep
from typing import TYPE_CHECKING

from rhythm.cli.command import Arguments, command, option
from rhythm.cli.connect import application, find
from rhythm.cli.options import DATABASE_OR_SERVER, EXECUTION, TIMEOUT
from rhythm.cli.output import print, print_problem
from rhythm.cli.types import OneOf

if TYPE_CHECKING:
    from rhythm.app import ExecutionView, Rhythm
    from rhythm.cli.timeline import Timeline

INTERVAL_S = 1.0  # between two times that it is asked
SILENCE_S = 30.0  # how long it goes on while nothing answers
STILL_RUNNING, INTERRUPTED = 3, 130


@command(__doc__)
@EXECUTION
@TIMEOUT
@option(
    "--output",
    type=OneOf("text", "ndjson"),
    default="text",
    help="lines for people; ndjson: one line of JSON for each step",
)
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    with application(args) as app:
        find(app, args.id)
        try:
            ended = _watch(app, args)
        except KeyboardInterrupt:
            print(f"rhythm: stopped watching; {args.id} goes on", file=sys.stderr)
            return INTERRUPTED
        if ended is None:
            print_problem(f"{args.id} had not ended after {args.timeout.text}; it goes on")
            return STILL_RUNNING
        if ended.error is None:
            return 0
        from rhythm.cli.output.failure import show_failure

        print(show_failure(app, ended), file=sys.stderr)
        return 1


def _watch(app: Rhythm, args: Arguments) -> ExecutionView | None:
    """Prints what is new until the execution has ended, and returns it; None if the time is over.

    If the database or the server goes away, it asks again for a while; then its error is raised.
    """
    from rhythm.cli.timeline import Timeline
    from rhythm.errors import Unavailable

    timeline, began = Timeline(app, args.id), monotonic()
    answered = began
    while True:
        try:
            seen = app.get(args.id)  # before its steps: so the last ones are not missed
            _print_news(app, seen, timeline, args.output)
            answered = monotonic()
            if seen.ended:
                return seen
        except Unavailable:
            if monotonic() - answered > SILENCE_S:
                raise
        left_s = INTERVAL_S
        if args.timeout is not None:
            left_s = min(left_s, began + args.timeout - monotonic())
        if left_s <= 0:
            return None
        sleep(left_s)


def _print_news(app: Rhythm, seen: ExecutionView, timeline: Timeline, output: str) -> None:
    from rhythm.cli.commands.trace import as_json, print_steps
    from rhythm.cli.output.documents import print_json

    for steps in timeline.news():
        if output == "text":
            print_steps(app, seen, steps)
        for step in steps if output == "ndjson" else ():
            print_json(json.dumps(as_json(step), ensure_ascii=False))
    sys.stdout.flush()
