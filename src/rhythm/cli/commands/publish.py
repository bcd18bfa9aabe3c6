"""Publishes an event: everyone who waits for it goes on, and workflows that name it with `@on`
start.

The data is a JSON value, or an object of -i; without either it is null. An event with an id of
yours is published once.

  rhythm publish order.paid '{"order": 17}'
  rhythm publish order.paid -i order:=17 --event-id payment-4711
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rhythm.cli.actor import BY, actor
from rhythm.cli.commands.signal import payload
from rhythm.cli.connect import application
from rhythm.cli.database import DATABASE
from rhythm.cli.inputs import INPUT
from rhythm.cli.options import Arguments, Option
from rhythm.cli.output import print

if TYPE_CHECKING:
    from rhythm.app import Rhythm

OPTIONS = (
    Option("TYPE", "the type of the event, such as order.paid"),
    Option("DATA", "what it brings, as JSON", optional=True),
    INPUT.replace(help="a field of the data as text; KEY:=JSON gives any JSON value"),
    Option("--event-id", "an id of your own: the same one twice is one event", value="ID"),
    BY,
    DATABASE,
)


def run(args: Arguments) -> int:
    data = payload(args, "data")
    with application(args) as app:
        new = app.publish(args.type, data, event_id=args.event_id, by=actor(args))
        print(
            f"published {args.type}{_starts(app, args.type)}"
            if new
            else f"the event {args.event_id} was published before; nothing was done"
        )
    return 0


def _starts(app: Rhythm, type: str) -> str:
    """Which workflows it starts."""
    names = app.events.started_by(type)
    return f": it starts {', '.join(names)}" if names else ""
