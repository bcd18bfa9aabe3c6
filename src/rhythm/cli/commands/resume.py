"""Lets a paused execution go on where it was paused.

It then sees what has happened meanwhile, such as signals and timers. The data that you give is
`ctx.resume_data` in the workflow. An execution that waits for an approval or an event also has the
status `paused`, but nobody has paused it: decide (`rhythm approvals`), or publish the event
(`rhythm publish`).

With --all it resumes all executions that somebody has paused and that match; --dry-run only counts
them.

  rhythm resume 06fe1sz2n5qg7v0k4m8c3x9yte --reason 'the bank is back' -i account=7
  rhythm resume --all --workflow order --dry-run
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rhythm.cli.actor import actor
from rhythm.cli.bulk import act_on_all, wants_all, which
from rhythm.cli.command import Arguments, UsageError, command, option
from rhythm.cli.connect import application, find_workflow
from rhythm.cli.endings import already_ended
from rhythm.cli.filters import EXECUTION_OR_FILTER
from rhythm.cli.inputs import read_pairs
from rhythm.cli.options import BY, DATA, DATABASE_OR_SERVER, METADATA
from rhythm.cli.output import print

if TYPE_CHECKING:
    from rhythm.app import ExecutionView, Rhythm


@command(__doc__)
@EXECUTION_OR_FILTER
@option("--reason", metavar="TEXT", may_be_empty=True, help="why, for the record")
@BY
@DATA
@METADATA
@which
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    data = read_pairs(args.input, "-i") or None
    metadata = read_pairs(args.metadata, "--metadata") or None
    if wants_all(args, args.id):
        if data is not None:
            raise UsageError("data is for one execution: leave out -i or --all")
        if metadata is not None:
            raise UsageError("--metadata is for one execution: leave out --all")
        return act_on_all(args, "resume", args.id, args.reason or "")
    with application(args) as app:
        before = find_workflow(app, args.id)
        if before.ended:
            return already_ended(args.id)
        if not app.resume(args.id, args.reason or "", actor(args), data=data, metadata=metadata):
            print(f"rhythm: nobody has paused {args.id}: {_instead(before)}", file=sys.stderr)
            return 1
        print(f"resumed {args.id}: {_what_follows(app, args.id)}")
    return 0


def _what_follows(app: Rhythm, id: str) -> str:
    """Returns what the execution still waits for, in words."""
    from rhythm.cli.output.words import printable

    if app.get(id).awaiting is None and 0 not in app.details.due(id):
        return "the next worker that is free goes on with it"
    first, *others = app.why(id).reasons
    return printable(first.what) + (f"; `rhythm why {id}` says what else" if others else "")


def _instead(execution: ExecutionView) -> str:
    if execution.status != "paused":
        return f"it is {execution.status}"
    if execution.paused_reason == "approval_required":
        return (
            f"it waits for a decision; `rhythm approvals --execution {execution.id}` shows "
            f"what is to be decided"
        )
    return "it waits for an event; `rhythm publish` publishes one"
