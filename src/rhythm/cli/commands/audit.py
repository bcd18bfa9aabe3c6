"""Lists who did what, checks that the record was not changed, and exports it.

Every act of an operator, and every decision, is a row of the audit, written in the transaction that
does it. Each row has the hash of the row before.

`verify` reads the whole chain and prints its head. Keep the head elsewhere, and give it the next
time: --head 42:5f3a… checks that everything up to row 42 is unchanged. Exit code of verify: 0 the
audit is intact; 1 it was changed.

`export` prints every row, oldest first, one line of JSON each. `verify --file` checks such lines.

  rhythm audit list --actor ann
  rhythm audit verify --head 42:5f3a…
  rhythm audit export --after 42 >> audit.ndjson
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from rhythm.cli.command import Arguments, UsageError, command, group, option
from rhythm.cli.connect import application
from rhythm.cli.options import CURSOR, DATABASE, DATABASE_OR_SERVER, LIMIT, OUTPUT
from rhythm.cli.output import print
from rhythm.cli.types import FileName, Whole

if TYPE_CHECKING:
    from rhythm.app.audit import AuditCheck, AuditPage

MAX_PROBLEMS = 20  # how many problems are listed


@command("Lists who did what, newest first.", "list who did what")
@option("--actor", metavar="NAME", help="only acts of this person or program")
@option("--action", metavar="ACTION", help="only acts of this kind, such as token.create")
@option(
    "--object",
    metavar="ID",
    help="only acts on this execution, approval, token, queue …",
)
@LIMIT
@CURSOR
@OUTPUT
@DATABASE_OR_SERVER
def list_acts(args: Arguments) -> int:
    with application(args) as app:
        page = app.audit(
            actor=args.actor,
            action=args.action,
            object=args.object,
            limit=args.limit,
            cursor=args.cursor,
        )
    if args.output == "table":
        _print(page)
    else:
        from rhythm.cli.output.documents import print_items

        print_items(args.output, [row.as_json() for row in page], cursor=page.cursor)
    if page.cursor is not None and args.output != "json":
        print(f"there are more: the same with --cursor {page.cursor}", file=sys.stderr)
    return 0


def _print(page: AuditPage) -> None:
    from rhythm.cli.output.table import print_table
    from rhythm.cli.output.words import brief

    if not page.items:
        print("nothing like that in the audit")
        return
    rows = [
        (
            str(row.n),
            f"{row.at:%Y-%m-%d %H:%M:%S}",
            row.actor,
            row.source,
            row.action,
            row.object,
            brief(row.detail) if row.detail else "",
        )
        for row in page
    ]
    print_table(("N", "TIME (UTC)", "ACTOR", "FROM", "ACTION", "OBJECT", "DETAIL"), rows)


@command(
    "Checks that nothing in the audit was changed. Exit code 0: it is intact; 1: it was changed.",
    "check that nothing in it was changed",
)
@option(
    "--head",
    metavar="N:HASH",
    help="a head that was printed before: that row must still be there, unchanged",
)
@option(
    "--file",
    type=FileName(),
    help="check exported lines, from the first row on, instead of a database; - is standard input",
)
@OUTPUT
@DATABASE_OR_SERVER
def verify(args: Arguments) -> int:
    if args.file is not None:
        check = _of_file(args.file, args.head)
    else:
        with application(args) as app:
            check = app.verify_audit(args.head)
    if args.output == "table":
        _print_check(check)
    else:
        from rhythm.cli.output.documents import print_item

        print_item(args.output, check.as_json())
    return 0 if check.intact else 1


def _print_check(check: AuditCheck) -> None:
    for problem in check.problems[:MAX_PROBLEMS]:
        print(f"broken: {problem}")
    if check.broken > MAX_PROBLEMS:
        print(f"… and {check.broken - MAX_PROBLEMS:,} more")
    rows = f"{check.rows:,} {'row' if check.rows == 1 else 'rows'}"
    print(
        f"the audit is not what it was: {rows}"
        if check.problems
        else f"the audit is intact: {rows}; keep its head elsewhere"
    )
    print(f"head {check.head}")


def _of_file(name: str, head: str | None) -> AuditCheck:
    from rhythm.app.audit_export import check_exported

    try:
        with open(0 if name == "-" else name, "rb", closefd=name != "-") as lines:
            return check_exported(lines, head)
    except (ValueError, OSError) as problem:
        raise UsageError(str(problem)) from problem


@command(
    "Prints every row of the audit, oldest first, one line of JSON each.",
    "print every row, one line of JSON each",
)
@option("--after", type=Whole(), default=0, help="only the rows after row N")
@OUTPUT
@DATABASE
def export(args: Arguments) -> int:
    from rhythm.cli.output.documents import print_json

    with application(args) as app:
        for row in app.audit.export(args.after):
            print_json(
                json.dumps(dict(zip(row._fields, row.astuple(), strict=True)), ensure_ascii=False)
            )
    return 0


run = group(__doc__, ("list", list_acts), verify, export, given=(OUTPUT, DATABASE))
