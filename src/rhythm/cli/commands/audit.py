"""Shows what was done by whom, proves that nothing in it was changed, and writes it out.

Every act of an operator or decider is a row of the audit, written in the transaction that does it;
each row has the hash of the one before. `verify` reads the whole chain and prints its head. Keep
that elsewhere, and give it the next time: --head 42:5f3a… proves that all up to row 42 is what it
was. `export` prints every row, oldest first, a line of JSON each; `verify --file` checks such
lines. Exit code of verify: 0 the audit is what it was; 1 it is not.

  rhythm audit list --actor ann
  rhythm audit verify --head 42:5f3a…
  rhythm audit export --after 42 >> audit.ndjson
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from rhythm.cli.connect import OUTPUT, application
from rhythm.cli.database import DATABASE
from rhythm.cli.options import Arguments, Option, UsageError
from rhythm.cli.output import print

if TYPE_CHECKING:
    from rhythm.app.audit import AuditCheck, AuditPage

OPTIONS = (
    Option("COMMAND", "what to do: list, verify or export", choices=("list", "verify", "export")),
    Option("--actor", "list: only what this one did", value="NAME"),
    Option("--action", "list: only acts of this kind, such as token.create", value="ACTION"),
    Option(
        "--object",
        "list: only what was done to this execution, approval, token, queue …",
        value="ID",
    ),
    Option("--limit", "list: how many at most, up to 1000", value="N"),
    Option(
        "--cursor", "list: go on where the page before has ended, which says how", value="CURSOR"
    ),
    Option(
        "--head", "verify: a head that was printed before, and is still to be there", value="N:HASH"
    ),
    Option(
        "--file",
        (
            "verify: lines that were exported, from the first row on, instead of a database; "
            "- is standard input"
        ),
        value="FILE",
    ),
    Option("--after", "export: only what follows row N", value="N"),
    OUTPUT,
    DATABASE,
)
TAKES = {
    "list": ("actor", "action", "object", "limit", "cursor"),
    "verify": ("head", "file"),
    "export": ("after",),
}
SHOWN = 20  # problems that are listed


def run(args: Arguments) -> int:
    for action, names in TAKES.items():
        for name in names:
            if action != args.command and getattr(args, name) is not None:
                raise UsageError(f"--{name} is not for {args.command}")
    return {"list": _list, "verify": _verify, "export": _export}[args.command](args)


def _list(args: Arguments) -> int:
    limit = _number(args.limit or "20", "--limit")
    with application(args) as app:
        page = app.audit(
            actor=args.actor,
            action=args.action,
            object=args.object,
            limit=limit,
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


def _verify(args: Arguments) -> int:
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
    for problem in check.problems[:SHOWN]:
        print(f"broken: {problem}")
    if check.broken > SHOWN:
        print(f"… and {check.broken - SHOWN:,} more")
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


def _export(args: Arguments) -> int:
    from rhythm.cli.output.documents import print_json

    after = _number(args.after or "0", "--after")
    with application(args) as app:
        for row in app.audit.export(after):
            print_json(
                json.dumps(dict(zip(row._fields, row.astuple(), strict=True)), ensure_ascii=False)
            )
    return 0


def _number(text: str, what: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise UsageError(f"{what} is a whole number, not {text}")
    return int(text)
