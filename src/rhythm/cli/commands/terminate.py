"""Ends executions at once, with everything that they have started. No `finally` block runs, and
results of their tasks that come later are not used.

`rhythm cancel` lets them clean up first. With --all it ends all executions that match; --dry-run
only counts them.

Exit code 0: all were ended; 1: one had ended already, or does not exist.

  rhythm terminate 06fe1sz2n5qg7v0k4m8c3x9yte
  rhythm terminate --all --workflow order --created-before 2026-03-01T00:00:00Z --dry-run
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
        return act_on_all(args, "terminate", args.ids)
    with application(args) as app:
        return max(_terminate(app, id, args) for id in dict.fromkeys(args.ids))


def _terminate(app: Rhythm, id: str, args: Arguments) -> int:
    from rhythm.errors import UnknownExecution

    try:
        find(app, id)
        ended = app.terminate(id, by=actor(args))
    except UnknownExecution as problem:
        print_problem(problem)
        return 1
    if not ended:
        return has_ended(app.get(id))
    print(f"terminated {id}, with everything that it had started")
    return 0
