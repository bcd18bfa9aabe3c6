"""Lists the workers of a database, on all machines.

A worker says every few seconds that it is alive. A worker that was silent for too long is dead:
other workers take over its work, and it is listed for another day. A worker that was stopped in an
orderly way is not listed. CLAIMS is how many executions it owns now.

  rhythm workers
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from rhythm.cli.command import Arguments, command
from rhythm.cli.connect import application
from rhythm.cli.options import DATABASE_OR_SERVER, OUTPUT
from rhythm.cli.output import print

if TYPE_CHECKING:
    from rhythm.app import WorkerView

HEADS = (
    "WORKER",
    "STATE",
    "RUNNING",
    "CLAIMS",
    "LAST BEAT",
    "UP",
    "HOST",
    "PID",
    "VERSION",
    "QUEUES",
)


@command(__doc__)
@OUTPUT
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    with application(args) as app:
        found = app.workers()
    if args.output != "table":
        from rhythm.cli.output.documents import print_items

        print_items(args.output, [worker.as_json() for worker in found])
    elif not found:
        print("no workers: `rhythm worker --app FILE` starts one")
    else:
        from rhythm.cli.output.table import print_table

        print_table(HEADS, [_row(worker) for worker in found], status=1)
    return 0


def _row(worker: WorkerView) -> tuple[str, ...]:
    from rhythm.cli.output.words import age

    last = (
        worker.beat_at
        if worker.state == "dead"
        else worker.beat_at + timedelta(seconds=worker.silent_s)
    )
    return (
        worker.name,
        worker.state,
        f"{worker.running:,}/{worker.concurrency:,}",
        f"{worker.claims:,}",
        _ago(worker.silent_s),
        age(worker.started_at, last),
        worker.host,
        str(worker.pid),
        worker.version,
        ",".join(worker.queues),
    )


def _ago(seconds: float) -> str:
    from rhythm.cli.output.words import length

    return f"{length(seconds)} ago" if seconds >= 1 else "now"
