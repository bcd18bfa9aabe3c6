"""Holds an execution where it is: tasks that are running end, nothing new begins.

`rhythm resume` lets it go on.

  rhythm pause 06fe1sz2n5qg7v0k4m8c3x9yte --reason 'the bank is down'
"""

from __future__ import annotations

from rhythm.cli.connect import application, find_workflow
from rhythm.cli.database import DATABASE
from rhythm.cli.options import Arguments, Option
from rhythm.cli.show import ID

OPTIONS = (ID, Option("--reason", "why, for whoever looks at it", value="TEXT"), Option("--by", "who says so", value="NAME"), DATABASE)


def run(args: Arguments) -> int:
    with application(args) as app:
        before = find_workflow(app, args.id)
        if before.status == "paused" and not (args.reason or args.by):  # what was said the first time stays
            print(f"{args.id} is paused already; `rhythm resume {args.id}` lets it go on")
            return 0
        if not app.pause(args.id, args.reason or "", args.by or ""):
            return already_ended(args.id)
    print(f"paused {args.id}; `rhythm resume {args.id}` lets it go on")
    return 0


def already_ended(id: str) -> int:
    """Says so on standard error; the exit code."""
    import sys

    print(f"rhythm: {id} has ended already; `rhythm show {id}` tells how", file=sys.stderr)
    return 1
