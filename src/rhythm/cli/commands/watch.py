"""Prints what happens in an execution, step by step, as it happens, until it has ended.

It is `rhythm trace --follow` with an exit code. 0: it completed; 1: it failed, was cancelled or
blocked (standard error says why); 3: it had not ended after --timeout.

  rhythm watch 06fe1sz2n5qg7v0k4m8c3x9yte
  rhythm watch 06fe1sz2n5qg7v0k4m8c3x9yte --output ndjson --timeout 1h
"""

from __future__ import annotations

import sys

from rhythm.cli.command import Arguments, command, option
from rhythm.cli.commands.trace import WHAT_IS_PRINTED, Printer
from rhythm.cli.connect import application, find
from rhythm.cli.options import DATABASE_OR_SERVER, EXECUTION, TIMEOUT
from rhythm.cli.output import print, print_problem
from rhythm.cli.types import OneOf

STILL_RUNNING, INTERRUPTED = 3, 130


@command(__doc__)
@EXECUTION
@WHAT_IS_PRINTED
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
        execution = find(app, args.id)
        try:
            seen = Printer(app, execution, args, follow=True).print(args.timeout)
        except KeyboardInterrupt:
            print(f"rhythm: stopped watching; {args.id} goes on", file=sys.stderr)
            return INTERRUPTED
        if not seen.ended:
            print_problem(f"{args.id} had not ended after {args.timeout.text}; it goes on")
            return STILL_RUNNING
        if seen.error is None:
            return 0
        from rhythm.cli.output.failure import show_failure

        print(show_failure(app, seen), file=sys.stderr)
        return 1
