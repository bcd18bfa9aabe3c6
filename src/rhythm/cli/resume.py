"""Lets a paused execution go on where it was held.

What has happened meanwhile, such as signals and timers, it finds then.

  rhythm resume 06fe1sz2n5qg7v0k4m8c3x9yte
"""

from __future__ import annotations

import sys

from rhythm.cli.connect import application, find_workflow
from rhythm.cli.database import DATABASE
from rhythm.cli.options import Arguments
from rhythm.cli.pause import already_ended
from rhythm.cli.show import ID

OPTIONS = (ID, DATABASE)


def run(args: Arguments) -> int:
    with application(args) as app:
        before = find_workflow(app, args.id)
        if before.paused_at is None and not before.ended:
            print(f"rhythm: {args.id} is not paused: it is {before.status}", file=sys.stderr)
            return 1
        if not app.resume(args.id):
            return already_ended(args.id)
    print(f"resumed {args.id}: the next worker that is free goes on with it")
    return 0
