"""Sends a signal to an execution; it waits in the mailbox until the workflow asks for it.

The payload is a JSON value, or an object of -i; without either it is null.

  rhythm signal 06fe1sz2n5qg7v0k4m8c3x9yte approve '{"ok": true}'
  rhythm signal 06fe1sz2n5qg7v0k4m8c3x9yte approve -i ok:=true
"""

from __future__ import annotations

from typing import Any

from rhythm.cli.actor import BY, actor
from rhythm.cli.commands.show import ID
from rhythm.cli.connect import application, find_workflow
from rhythm.cli.database import DATABASE
from rhythm.cli.inputs import INPUT, read_json, read_pairs
from rhythm.cli.options import Arguments, Option, UsageError
from rhythm.cli.output import print

OPTIONS = (
    ID,
    Option("NAME", "the name by which the workflow waits for it"),
    Option("PAYLOAD", "what it brings, as JSON", optional=True),
    INPUT.replace(help="a field of the payload as text; KEY:=JSON gives any JSON value"),
    Option("--signal-id", "an id of your own: the same one twice is one signal", value="ID"),
    BY,
    DATABASE,
)


def run(args: Arguments) -> int:
    given = payload(args, "payload")
    with application(args) as app:
        execution = find_workflow(app, args.id)
        sent = app.signal(args.id, args.name, given, signal_id=args.signal_id, by=actor(args))
    if not sent:
        print(f"the signal {args.signal_id} was sent to {args.id} before; nothing was sent now")
    else:
        waits = args.name in _awaited(execution.awaiting)
        print(
            f"sent {args.name} to {args.id}: "
            + (
                "it waits for it"
                if waits
                else "it stays in the mailbox until the workflow asks for it"
            )
        )
    return 0


def payload(args: Arguments, what: str) -> Any:
    """What is sent, as the argument of this name or -i give it."""
    text = getattr(args, what)
    if text is not None and args.input:
        raise UsageError(f"give the {what} as JSON or with -i, not with both")
    if args.input:
        return read_pairs(args.input, "-i")
    return None if text is None else read_json(text, what.upper(), what, f"a text is '\"{text}\"'")


def _awaited(plan: Any) -> set[str]:
    """The signals that are waited for."""
    from rhythm.ir.awaiting import leaves

    return {leaf["name"] for leaf in leaves(plan) if leaf["op"] == "signal"} if plan else set()
