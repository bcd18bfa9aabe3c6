"""Explains why an execution does not go on: what it waits for, since when, and the command that
would help.

  rhythm why 06fe1sz2n5qg7v0k4m8c3x9yte
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rhythm.cli.command import Arguments, command
from rhythm.cli.connect import application, find
from rhythm.cli.options import DATABASE_OR_SERVER, EXECUTION, OUTPUT
from rhythm.cli.output import print

if TYPE_CHECKING:
    from datetime import datetime

    from rhythm.app.explain import Reason, WhyView


@command(__doc__)
@EXECUTION
@OUTPUT
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    with application(args) as app:
        find(app, args.id)
        why = app.why(args.id)
    if args.output == "table":
        _print(why)
    else:
        from rhythm.cli.output.documents import print_item

        print_item(args.output, why.as_json())
    return 0


def _print(why: WhyView) -> None:
    from datetime import UTC, datetime

    from rhythm.cli.output.words import printable

    now = datetime.now(UTC)
    print(f"{printable(why.name)} {why.id} is {why.status}")
    for reason in why.reasons:
        print(f"- {_in_words(reason, now)}")
    if why.place:
        print(f"\n{why.place}")
    if commands := list(
        dict.fromkeys(command for reason in why.reasons for command in reason.commands)
    ):
        print("\n" + "\n".join(f"  {printable(command)}" for command in commands))


def _in_words(reason: Reason, now: datetime) -> str:
    from rhythm.cli.output.words import moment, printable

    since = f", since {moment(reason.since, now)}" if reason.since else ""
    until = f", until {moment(reason.until, now)}" if reason.until else ""
    at = f", at {moment(reason.at, now)}" if reason.at else ""
    return f"{printable(reason.what)}{since}{until}{at}"
