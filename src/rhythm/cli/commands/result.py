"""Waits until an execution has ended, and prints its result: the JSON value alone.

Exit code 0: it completed; 1: it failed, was cancelled or blocked (standard error says why); 3: it
had not ended after --timeout.

  rhythm result 06fe1sz2n5qg7v0k4m8c3x9yte --timeout 30s
"""

from __future__ import annotations

from rhythm.cli.command import Arguments, command
from rhythm.cli.connect import application, find
from rhythm.cli.options import DATABASE_OR_SERVER, EXECUTION, TIMEOUT


@command(__doc__)
@EXECUTION
@TIMEOUT
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    with application(args) as app:
        from rhythm.cli.hints import nobody_serves
        from rhythm.cli.waiting import finish, wait

        find(app, args.id)
        ended = wait(app, args.id, args.timeout, lambda execution: nobody_serves(app, execution))
        return ended if isinstance(ended, int) else finish(app, ended)
