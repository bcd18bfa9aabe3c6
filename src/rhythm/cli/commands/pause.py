"""Holds an execution where it is: tasks that are running end, nothing new begins.

Results, signals and events are kept for it, and its timers and deadlines go on: what is over by
then, it finds when it goes on. `rhythm resume` lets it go on; with --timeout it does so by itself,
or is cancelled. With --all it is for all workflows that fit; --dry-run only counts them.

  rhythm pause 06fe1sz2n5qg7v0k4m8c3x9yte --reason 'the bank is down'
  rhythm pause 06fe1sz2n5qg7v0k4m8c3x9yte --timeout 2h --then cancel
  rhythm pause --all --workflow order --dry-run
"""

from __future__ import annotations

from rhythm.cli.actor import BY, actor
from rhythm.cli.bulk import ALL, act_on_all, wants_all
from rhythm.cli.commands.show import ID
from rhythm.cli.connect import application, find_workflow
from rhythm.cli.database import DATABASE
from rhythm.cli.inputs import read_duration
from rhythm.cli.options import Arguments, Option, UsageError
from rhythm.cli.output import print

OPTIONS = (
    ID.replace(optional=True),
    Option("--reason", "why, for whoever looks at it", value="TEXT"),
    BY,
    Option("--timeout", "for how long at most, such as 2h", value="DURATION"),
    Option("--then", "what follows the timeout", choices=("resume", "cancel"), default="resume"),
    *ALL,
    DATABASE,
)


def run(args: Arguments) -> int:
    if args.then == "cancel" and args.timeout is None:
        raise UsageError("--then says what follows --timeout: give both")
    if wants_all(args, args.id):
        if args.timeout is not None:
            raise UsageError("--timeout is for one execution: leave out --all")
        return act_on_all(args, "pause", args.reason or "")
    with application(args) as app:
        before = find_workflow(app, args.id)
        # what was said the first time stays
        if before.paused_manually and not (args.reason or args.by or args.timeout):
            print(f"{args.id} is paused already; `rhythm resume {args.id}` lets it go on")
            return 0
        if not app.pause(
            args.id,
            args.reason or "",
            actor(args),
            timeout=read_duration(args.timeout, "--timeout"),
            then=args.then,
        ):
            return already_ended(args.id)
    after = (
        (
            f"; after {args.timeout} it "
            f"{'goes on by itself' if args.then == 'resume' else 'is cancelled'}"
        )
        if args.timeout
        else ""
    )
    print(f"paused {args.id}; `rhythm resume {args.id}` lets it go on{after}")
    return 0


def already_ended(id: str) -> int:
    """Says so on standard error; the exit code."""
    import sys

    print(f"rhythm: {id} has ended already; `rhythm show {id}` tells how", file=sys.stderr)
    return 1
