"""Starts a new execution that goes on where this one failed or was cancelled, and prints its id.

The id is alone on standard output. What had completed is kept, and the version stays the same. With
--from-start the new execution begins at the beginning, with the same inputs, in the current
version. The old execution is not changed.

With --all it retries all executions that match, have failed or were cancelled, and were not retried
before; --dry-run only counts them, and says which would be refused.

Exit code 0: started (with --wait: completed); 1: it cannot be retried, or failed again; 3: not
ended after --timeout.

  rhythm retry 06fe1sz2n5qg7v0k4m8c3x9yte
  rhythm retry 06fe1sz2n5qg7v0k4m8c3x9yte --app tasks.py --wait
  rhythm retry --all --workflow order --status failed --created-after 2026-03-01T12:00:00Z --dry-run
  rhythm retry --all --workflow order --from-start
  rhythm retry --all 'status:failed attr.customer=acme finished:2026-11-18..'
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rhythm.cli.actor import actor
from rhythm.cli.bulk import act_on_all, wants_all, which
from rhythm.cli.command import Arguments, UsageError, command, option
from rhythm.cli.connect import application, find, new_application
from rhythm.cli.filters import EXECUTION_OR_FILTER
from rhythm.cli.following import fit_waiting, follow, following, load_tasks, print_id
from rhythm.cli.options import BY, DATABASE_OR_SERVER
from rhythm.cli.output import print

if TYPE_CHECKING:
    from rhythm.app import ExecutionView, Handle, Rhythm


@command(__doc__)
@EXECUTION_OR_FILTER
@option("--from-start", is_flag=True, help="begin at the beginning, in the current version")
@following
@which
@BY
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    if wants_all(args, args.id):
        if args.wait:
            raise UsageError("--wait is for one execution: leave out --all")
        return act_on_all(args, "retry", args.id, from_start=args.from_start)
    fit_waiting(args)
    with application(args) as app:
        load_tasks(args)
        old = find(app, args.id)
        new = app.retry(args.id, from_start=args.from_start, by=actor(args))
        print(_in_words(app, old, new, args.from_start), file=sys.stderr)
    if not args.wait:
        return print_id(new, args.output)
    with new_application(args) as app:  # here a worker can have a connection of its own
        from rhythm.app import Handle

        return follow(app, Handle(app, new.id, new.created), args)


def _in_words(app: Rhythm, old: ExecutionView, new: Handle, from_start: bool) -> str:
    """Returns what was done, and what follows, in words."""
    from rhythm.cli.output.words import waits_for

    if not new.created:
        return f"a retry of this execution of {old.name} is under way already: {new.id}"
    if from_start:
        return f"a new execution of {old.name} begins at the beginning: {new.id}"
    where = f"goes on where it {'was cancelled' if old.status == 'cancelled' else 'failed'}"
    kept = {
        int(child.id.rpartition(".")[2]) for child in app.details.children(new.id) if child.ended
    }
    waits = waits_for(new.get().awaiting, kept)
    return f"a new execution of {old.name} {where}{f', with {waits}' if waits else ''}: {new.id}"
