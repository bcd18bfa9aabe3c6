"""Lets a paused execution go on where it was paused.

What has happened meanwhile, such as signals and timers, it finds then. It sees the data that you
give as `ctx.resume_data`. One that waits for a decision or an event was paused by nobody: decide
(`rhythm approvals`), or publish. With --all it is for all that somebody has paused and that fit;
--dry-run only counts them.

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
from rhythm.cli.inputs import read_pairs
from rhythm.cli.options import BY, DATA, DATABASE, EXECUTION_OR_ALL
from rhythm.cli.output import print

if TYPE_CHECKING:
    from rhythm.app import ExecutionView


@command(__doc__)
@EXECUTION_OR_ALL
@option("--reason", metavar="TEXT", help="why, for the record")
@BY
@DATA
@which
@DATABASE
def run(args: Arguments) -> int:
    data = read_pairs(args.input, "-i") or None
    if wants_all(args, args.id):
        if data is not None:
            raise UsageError("data is for one execution: leave out -i or --all")
        return act_on_all(args, "resume", args.reason or "")
    with application(args) as app:
        before = find_workflow(app, args.id)
        if before.ended:
            return already_ended(args.id)
        if not app.resume(args.id, args.reason or "", actor(args), data=data):
            print(f"rhythm: {args.id} was paused by nobody: {_instead(before)}", file=sys.stderr)
            return 1
    print(f"resumed {args.id}: the next worker that is free goes on with it")
    return 0


def _instead(execution: ExecutionView) -> str:
    if execution.status != "paused":
        return f"it is {execution.status}"
    if execution.paused_reason == "approval_required":
        return (
            f"it waits for a decision; `rhythm approvals --execution {execution.id}` shows "
            f"what is to be decided"
        )
    return "it waits for an event; `rhythm publish` publishes one"
