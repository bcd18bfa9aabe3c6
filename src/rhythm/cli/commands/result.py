"""Waits until an execution has ended, and prints its result: the JSON value alone.

Exit code 0: it completed; 1: it failed, was cancelled or blocked, standard error says why; 3: it
had not ended after --timeout.

  rhythm result 06fe1sz2n5qg7v0k4m8c3x9yte --timeout 30s
"""

from __future__ import annotations

from rhythm.cli.commands.show import ID
from rhythm.cli.connect import application, find
from rhythm.cli.database import DATABASE
from rhythm.cli.inputs import read_duration
from rhythm.cli.options import Arguments, Option

TIMEOUT = Option(
    "--timeout",
    "how long to wait, such as 90s or 1h; 0s only looks; without it there is no limit",
    value="DURATION",
)
OPTIONS = (ID, TIMEOUT, DATABASE)


def run(args: Arguments) -> int:
    timeout_s = read_duration(args.timeout, "--timeout")
    with application(args) as app:
        from rhythm.cli.hints import nobody_serves
        from rhythm.cli.waiting import finish, wait

        find(app, args.id)
        ended = wait(app, args.id, timeout_s, lambda execution: nobody_serves(app, execution))
        return ended if isinstance(ended, int) else finish(app, ended)
