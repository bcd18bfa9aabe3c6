"""Sends a signal to an execution. It waits in the mailbox until the workflow asks for it.

The payload is a JSON value, or an object made of -i; without either it is null.

  rhythm signal 06fe1sz2n5qg7v0k4m8c3x9yte approve
  rhythm signal 06fe1sz2n5qg7v0k4m8c3x9yte approve '{"ok": true}'
  rhythm signal 06fe1sz2n5qg7v0k4m8c3x9yte approve -i ok:=true
"""

from __future__ import annotations

from typing import Any

from rhythm.cli.actor import actor
from rhythm.cli.command import Arguments, argument, command, option
from rhythm.cli.connect import application, find_workflow
from rhythm.cli.inputs import read_payload
from rhythm.cli.options import BY, DATABASE_OR_SERVER, EXECUTION
from rhythm.cli.output import print
from rhythm.cli.types import JsonValue, KeyValue


@command(__doc__)
@EXECUTION
@argument("name", help="the name of the signal that the workflow waits for")
@argument("payload", type=JsonValue(), required=False, help="the payload of the signal, as JSON")
@option(
    "-i",
    "--input",
    type=KeyValue(),
    multiple=True,
    help="a field of the payload as text; KEY:=JSON gives any JSON value",
)
@option("--signal-id", metavar="ID", help="an id of your own: the same id twice is one signal")
@BY
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    given = read_payload(args, "payload")
    with application(args) as app:
        execution = find_workflow(app, args.id)
        sent = app.signal(args.id, args.name, given, signal_id=args.signal_id, by=actor(args))
    if not sent:
        print(f"the signal {args.signal_id} was sent to {args.id} before; nothing was sent now")
    else:
        print(f"sent {args.name} to {args.id}: {_fate(args.name, _awaited(execution.awaiting))}")
    return 0


def _fate(name: str, awaited: set[str]) -> str:
    """Returns what becomes of a signal, in words, if these are waited for."""
    from rhythm.cli.output.words import printable
    from rhythm.suggest import nearest, some_of

    if name in awaited:
        return "it waits for it"
    stays = "it stays in the mailbox until the workflow asks for it"
    if not awaited:
        return stays
    meant = "; did you mean that?" if nearest(name, awaited) else ""
    waits = some_of(f"`{each}`" for each in awaited)
    return printable(f"{stays}; it waits for {waits} now{meant}")


def _awaited(plan: Any) -> set[str]:
    """Returns the names of the signals that are waited for."""
    from rhythm.ir.awaiting import leaves, waits_for_mail

    return {leaf["name"] for leaf in leaves(plan) if waits_for_mail(leaf)} if plan else set()
