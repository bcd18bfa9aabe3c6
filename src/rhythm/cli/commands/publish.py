"""Publishes an event. Every workflow that waits for it goes on, and workflows that name it with
`@on` start.

The data is a JSON value, or an object made of -i; without either it is null. An event with an id of
your own is published only once.

  rhythm publish order.paid '{"order": 17}'
  rhythm publish order.paid -i order:=17 --event-id payment-4711
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rhythm.cli.actor import actor
from rhythm.cli.command import Arguments, argument, command, option
from rhythm.cli.connect import application
from rhythm.cli.inputs import read_payload
from rhythm.cli.options import BY, DATA, DATABASE_OR_SERVER
from rhythm.cli.output import print
from rhythm.cli.types import JsonValue

if TYPE_CHECKING:
    from rhythm.app import Rhythm


@command(__doc__)
@argument("type", help="the type of the event, such as order.paid")
@argument("data", type=JsonValue(), required=False, help="the data of the event, as JSON")
@DATA
@option("--event-id", metavar="ID", help="an id of your own: the same id twice is one event")
@BY
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    data = read_payload(args, "data")
    with application(args) as app:
        new = app.publish(args.type, data, event_id=args.event_id, by=actor(args))
        print(
            f"published {args.type}{_starts(app, args.type)}"
            if new
            else f"the event {args.event_id} was published before; nothing was done"
        )
    return 0


def _starts(app: Rhythm, type: str) -> str:
    """Returns which workflows the event starts, in words; empty if it starts none."""
    names = app.events.started_by(type)
    return f": it starts {', '.join(names)}" if names else ""
