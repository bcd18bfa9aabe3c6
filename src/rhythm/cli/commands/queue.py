"""Pauses or resumes a queue. While it is paused, workers take nothing from it: none of its tasks
and workflows begins.

Work that has begun goes on: running tasks end, and workflows that have started go on until their
next task in a paused queue. To pause one execution, use `rhythm pause ID`.

  rhythm queue pause mail --reason 'the mail server is down' --by Ada
  rhythm queue resume mail
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from rhythm.cli.actor import actor
from rhythm.cli.command import Arguments, argument, command, group
from rhythm.cli.connect import application
from rhythm.cli.options import BY, DATABASE_OR_SERVER, REASON
from rhythm.cli.output import print
from rhythm.cli.types import Known

if TYPE_CHECKING:
    from rhythm.app import QueueView, Rhythm

NAME = argument("name", type=Known("queues"), help="the queue; `rhythm queues` lists them")


@command(
    "Pauses a queue: workers take nothing from it.", "pause a queue: workers take nothing from it"
)
@NAME
@REASON
@BY
@DATABASE_OR_SERVER
def pause(args: Arguments) -> int:
    return _change(args, _pause)


@command(
    "Resumes a queue: workers take from it again.", "resume a queue: workers take from it again"
)
@NAME
@BY
@DATABASE_OR_SERVER
def resume(args: Arguments) -> int:
    return _change(args, _resume)


run = group(__doc__, pause, resume, given=(BY, DATABASE_OR_SERVER))
Change = Callable[["Rhythm", Arguments, "QueueView | None"], None]


def _change(args: Arguments, change: Change) -> int:
    with application(args) as app:
        known = {queue.name: queue for queue in app.queues()}
        change(app, args, known.get(args.name))
    if args.name not in known:
        print(f"rhythm: {_unknown(args.name, [*known])}", file=sys.stderr)
    return 0


def _pause(app: Rhythm, args: Arguments, before: QueueView | None) -> None:
    if app.pause_queue(args.name, args.reason or "", actor(args)):
        waiting = _waiting(before.ready + before.delayed) if before else ""
        print(
            f"paused queue {args.name}{waiting}: nothing of it begins; `rhythm queue "
            f"resume {args.name}` lets it go on"
        )
    else:
        print(
            f"queue {args.name} is paused already{_as_it_is(before)}; `rhythm queue "
            f"resume {args.name}` lets it go on"
        )


def _as_it_is(queue: QueueView | None) -> str:
    from datetime import UTC, datetime

    from rhythm.cli.output.words import paused_since

    return f" ({paused_since(queue, datetime.now(UTC))})" if queue and queue.paused_at else ""


def _resume(app: Rhythm, args: Arguments, before: QueueView | None) -> None:
    if app.resume_queue(args.name, actor(args)):
        print(f"resumed queue {args.name}: workers take from it again")
    else:
        print(f"queue {args.name} was not paused")


def _unknown(name: str, known: list[str]) -> str:
    from rhythm.suggest import nearest

    near = nearest(name, known)
    return f"nothing is in queue {name}, and no worker serves it" + (
        f"; did you mean {near}?" if near else ""
    )


def _waiting(count: int) -> str:
    return f" ({count:,} {'waits' if count == 1 else 'wait'} in it)" if count else ""
