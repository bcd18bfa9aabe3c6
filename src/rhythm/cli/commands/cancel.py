"""Asks executions to end. What they have started is cancelled, their `finally` blocks run, and then
they are cancelled.

A second cancel ends them at once, as `rhythm terminate` does. With --all it asks all executions
that match and were not asked before; --dry-run only counts them.

Exit code 0: all were asked; 1: one had ended already, or does not exist.

  rhythm cancel 06fe1sz2n5qg7v0k4m8c3x9yte
  rhythm cancel --all --workflow order --status suspended --dry-run
  rhythm cancel --all 'workflow:order status:suspended age>7d'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rhythm.cli.actor import actor
from rhythm.cli.bulk import act_on_all, wants_all, which
from rhythm.cli.command import Arguments, command
from rhythm.cli.connect import application, find
from rhythm.cli.endings import has_ended
from rhythm.cli.filters import EXECUTIONS_OR_FILTER
from rhythm.cli.options import BY, DATABASE_OR_SERVER
from rhythm.cli.output import print, print_problem

if TYPE_CHECKING:
    from rhythm.app import Rhythm


@command(__doc__)
@EXECUTIONS_OR_FILTER
@which
@BY
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    if wants_all(args, args.ids):
        return act_on_all(args, "cancel", args.ids)
    with application(args) as app:
        return max(_cancel(app, id, args) for id in dict.fromkeys(args.ids))


def _cancel(app: Rhythm, id: str, args: Arguments) -> int:
    from rhythm.errors import UnknownExecution

    try:
        before = find(app, id)
        asked = app.cancel(id, by=actor(args))
    except UnknownExecution as problem:
        print_problem(problem)
        return 1
    execution = app.get(id)
    if not asked:
        return has_ended(execution)
    if before.cancel_requested_at is not None:
        print(f"terminated {id}: it was asked to end before, and had not finished that")
    elif execution.ended:
        print(f"cancelled {id}")
    else:
        print(
            f"asked {id} to end: it is cancelled as soon as a worker has run its `finally` blocks"
        )
    return 0
