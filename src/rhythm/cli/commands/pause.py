"""Pauses an execution: running tasks end, and nothing new begins.

Results, signals and events are kept for it. Its timers and deadlines keep running; it sees those
that have passed when it goes on. `rhythm resume` lets it go on. With --timeout it goes on by
itself, or is cancelled (--then cancel).

With --all it pauses all workflows that match; --dry-run only counts them.

  rhythm pause 06fe1sz2n5qg7v0k4m8c3x9yte --reason 'the bank is down'
  rhythm pause 06fe1sz2n5qg7v0k4m8c3x9yte --timeout 2h --then cancel
  rhythm pause --all --workflow order --dry-run
"""

from __future__ import annotations

from rhythm.cli.actor import actor
from rhythm.cli.bulk import act_on_all, wants_all, which
from rhythm.cli.command import Arguments, UsageError, command, option
from rhythm.cli.connect import application, find_workflow
from rhythm.cli.endings import already_ended
from rhythm.cli.filters import EXECUTION_OR_FILTER
from rhythm.cli.inputs import read_pairs
from rhythm.cli.options import BY, DATABASE_OR_SERVER, METADATA, REASON
from rhythm.cli.output import print
from rhythm.cli.types import Duration, OneOf


@command(__doc__)
@EXECUTION_OR_FILTER
@REASON
@BY
@option("--timeout", type=Duration(), help="how long it is paused at most, such as 2h")
@option(
    "--then", type=OneOf("resume", "cancel"), default="resume", help="what happens after --timeout"
)
@METADATA
@which
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    if args.then == "cancel" and args.timeout is None:
        raise UsageError("--then says what follows --timeout: give both")
    metadata = read_pairs(args.metadata, "--metadata") or None
    if wants_all(args, args.id):
        if args.timeout is not None:
            raise UsageError("--timeout is for one execution: leave out --all")
        if metadata is not None:
            raise UsageError("--metadata is for one execution: leave out --all")
        return act_on_all(args, "pause", args.id, args.reason or "")
    with application(args) as app:
        before = find_workflow(app, args.id)
        # without a new reason, name or timeout, those of the first pause are kept
        new = args.reason or args.by or args.timeout is not None or metadata is not None
        if before.paused_manually and not new:
            print(f"{args.id} is paused already; `rhythm resume {args.id}` lets it go on")
            return 0
        if not app.pause(
            args.id,
            args.reason or "",
            actor(args),
            timeout=args.timeout,
            then=args.then,
            metadata=metadata,
        ):
            return already_ended(args.id)
    then = "goes on by itself" if args.then == "resume" else "is cancelled"
    after = "" if args.timeout is None else f"; after {args.timeout.text} it {then}"
    print(f"paused {args.id}; `rhythm resume {args.id}` lets it go on{after}")
    return 0
