"""Lists the executions that were started on a database, newest first.

It does not list what they have started themselves: `rhythm trace ID` shows that. A filter says
which executions; all of its terms must be true. With a term `finished:`, those that have ended last
come first.

  rhythm list --workflow order --status failed
  rhythm list 'status:failed workflow:order attr.customer=acme age>2h'
"""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from rhythm.cli.command import Arguments, command, one_of, option
from rhythm.cli.connect import application
from rhythm.cli.filters import FILTER, filter_of
from rhythm.cli.options import CURSOR, DATABASE_OR_SERVER, LIMIT, OUTPUT, STATUSES
from rhythm.cli.output import print
from rhythm.cli.types import Known, Text

if TYPE_CHECKING:
    from rhythm.app import ExecutionView, Page

ERROR_CHARACTERS = 200  # how much of an error is shown at most


@command(__doc__)
@FILTER
@option("--workflow", type=Known("workflows"), help="only executions of this workflow")
@option(
    "--status",
    type=Text(*STATUSES),
    metavar="STATUS",
    help=f"only executions that are {one_of(STATUSES)}",
)
@LIMIT
@CURSOR
@OUTPUT
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    with application(args) as app:
        wanted = filter_of(args.filter)
        page = app.list(args.workflow, args.status, args.limit, args.cursor, query=wanted)
    if args.output == "table":
        _print(args, page)
    else:
        from rhythm.cli.output.documents import print_items

        print_items(args.output, [execution.as_json() for execution in page], cursor=page.cursor)
    if page.cursor is not None and args.output != "json":
        print(f"there are more: {_next(args, page.cursor)}", file=sys.stderr)
    return 0


def _print(args: Arguments, page: Page) -> None:
    from datetime import UTC, datetime

    from rhythm.cli.output.table import print_table
    from rhythm.cli.output.words import age

    if not page.items:
        print(
            "no executions"
            + (
                " like that"
                if args.filter or args.workflow or args.status or args.cursor
                else " yet: `rhythm start` starts one"
            )
        )
        return
    now = datetime.now(UTC)
    rows = [(e.id, e.name, e.status, age(e.created_at, now), _detail(e)) for e in page]
    print_table(("ID", "WORKFLOW", "STATUS", "AGE", "WAITS FOR / ERROR"), rows, status=2)


def _detail(execution: ExecutionView) -> str:
    from rhythm.cli.output.table import cut
    from rhythm.cli.output.words import waits_for

    if execution.error is not None:
        return cut(f"{execution.error['code']}: {execution.error['message']}", ERROR_CHARACTERS)
    if execution.ended:
        return ""
    return "; ".join(
        filter(
            None,
            (
                "asked to end" if execution.cancel_requested_at else "",
                waits_for(execution.awaiting),
            ),
        )
    )


def _next(args: Arguments, cursor: str) -> str:
    """Returns the command that shows the next page; a password in the URL is not repeated."""
    from rhythm.settings import show_url

    names = ("workflow", "status", "database", "server", "token_file")
    given = {name.replace("_", "-"): getattr(args, name) for name in names} | {"cursor": cursor}
    if args.limit != 20:
        given["limit"] = str(args.limit)
    if args.output != "table":
        given["output"] = args.output
    if args.database is not None and show_url(args.database) != args.database:
        given["database"] = "URL"
    wanted = filter_of(args.filter)
    # A line break in it would look like a line of ours.
    shown = "FILTER" if wanted is not None and not wanted.isprintable() else wanted
    filters = ["--", shlex.quote(shown)] if shown is not None else []
    options = [f"--{name} {shlex.quote(text)}" for name, text in given.items() if text is not None]
    return " ".join(["rhythm list", *options, *filters])
