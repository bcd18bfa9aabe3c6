"""Asks executions to end: what they have started is cancelled, their `finally` blocks run, and then they are cancelled.

Exit code 0: all were asked; 1: one had ended already, or does not exist.

  rhythm cancel 06fe1sz2n5qg7v0k4m8c3x9yte
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rhythm.cli.acting import BY, actor
from rhythm.cli.connect import application, find
from rhythm.cli.database import DATABASE
from rhythm.cli.options import Arguments, Option

if TYPE_CHECKING:
    from rhythm.app import Rhythm
    from rhythm.store.access import Actor

OPTIONS = (Option("IDS", "the executions", many=True), BY, DATABASE)


def run(args: Arguments) -> int:
    with application(args) as app:
        return max(_cancel(app, id, actor(args)) for id in dict.fromkeys(args.ids))


def _cancel(app: Rhythm, id: str, by: Actor) -> int:
    from rhythm.errors import UnknownExecution

    try:
        find(app, id)
        asked = app.cancel(id, by=by)
    except UnknownExecution as problem:
        print(f"rhythm: {problem}", file=sys.stderr)
        return 1
    execution = app.get(id)
    if not asked:
        print(f"rhythm: {id} has ended already: it {_ended(execution.status)}", file=sys.stderr)
        return 1
    print(f"cancelled {id}" if execution.ended else f"asked {id} to end: it is cancelled as soon as a worker has run its `finally` blocks")
    return 0


def _ended(status: str) -> str:
    return f"was {status}" if status == "cancelled" else status
