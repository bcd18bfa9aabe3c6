"""Lists the queues of a database: all that have work, are paused, or are served by a worker.

READY waits for a worker, OLDEST is how long the oldest of it has waited. DELAYED is for later.
RUNNING is with a worker. Tasks that a worker runs for its own workflow are in no queue. The queue
`system` has workflows that go on: every worker serves it. If a queue has work and no worker, start
one: `rhythm worker --app FILE --queues NAME`.

  rhythm queues
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rhythm.cli.command import Arguments, command
from rhythm.cli.connect import application
from rhythm.cli.options import DATABASE_OR_SERVER, OUTPUT
from rhythm.cli.output import print

if TYPE_CHECKING:
    from datetime import datetime

    from rhythm.app import QueueView

HEADS = ("QUEUE", "READY", "OLDEST", "DELAYED", "RUNNING", "EXPIRED", "WORKERS", "NOTE")
EXPIRED = HEADS.index("EXPIRED")


@command(__doc__)
@OUTPUT
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    with application(args) as app:
        found = app.queues()
    if args.output == "table":
        _print(found)
    else:
        from rhythm.cli.output.documents import print_items

        print_items(args.output, [queue.as_json() for queue in found])
    return 0


def _print(found: Sequence[QueueView]) -> None:
    from datetime import UTC, datetime

    from rhythm.cli.output.table import print_table

    if not found:
        print("no queues: nothing waits, and no worker serves any")
        return
    rows = [HEADS, *(_row(queue, datetime.now(UTC)) for queue in found)]
    if not any(queue.expired for queue in found):
        rows = [row[:EXPIRED] + row[EXPIRED + 1 :] for row in rows]
    print_table(rows[0], rows[1:])


def _row(queue: QueueView, now: datetime) -> tuple[str, ...]:
    from rhythm.cli.output.words import length

    numbers = (queue.delayed, queue.running, queue.expired, queue.workers)
    oldest = "" if queue.oldest_s is None else length(queue.oldest_s)
    return (
        queue.name,
        f"{queue.ready:,}",
        oldest,
        *(f"{number:,}" for number in numbers),
        note(queue, now),
    )


def note(queue: QueueView, now: datetime) -> str:
    """Returns a note on the queue: that no worker serves it, or that it is paused; else empty."""
    from rhythm.cli.output.words import paused_since

    notes = ["no worker serves it"] if queue.unserved else []
    return "; ".join([*notes, f"paused {paused_since(queue, now)}"] if queue.paused_at else notes)
