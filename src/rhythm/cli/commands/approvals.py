"""Lists approvals, newest first, or shows everything about one of them.

Without --status it lists those that are open: what people are asked to decide. Decide with `rhythm
approve`, `rhythm reject` or `rhythm escalate`.

  rhythm approvals --role sales_manager
  rhythm approvals 06fe1sz2n5qg7v0k4m8c3x9yte.1
"""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING

from rhythm.cli.command import Arguments, argument, command, option
from rhythm.cli.connect import application
from rhythm.cli.options import CURSOR, DATABASE_OR_SERVER, LIMIT, OUTPUT
from rhythm.cli.output import print
from rhythm.cli.types import Known, OneOf

if TYPE_CHECKING:
    from rhythm.app.approvals import ApprovalView


@command(__doc__)
@argument(
    "id",
    type=Known("approvals"),
    required=False,
    help="the id of an approval, to show everything about it",
)
@option("--role", metavar="ROLE", help="only approvals that people with this role may decide")
@option(
    "--status",
    type=OneOf("open", "approved", "rejected", "expired", "cancelled", "all"),
    default="open",
    help="only approvals that are open, or that ended like this",
)
@option("--execution", type=Known("executions"), help="only approvals of this execution")
@LIMIT
@CURSOR
@OUTPUT
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    if args.id is not None:
        return _show(args)
    status = None if args.status == "all" else args.status
    with application(args) as app:
        page = app.approvals(
            role=args.role,
            status=status,
            execution=args.execution,
            limit=args.limit,
            cursor=args.cursor,
        )
    if args.output == "table":
        _print(args, page.items)
    else:
        from rhythm.cli.output.documents import print_items

        print_items(args.output, [approval.as_json() for approval in page], cursor=page.cursor)
    if page.cursor is not None and args.output != "json":
        print(f"there are more: give --cursor {page.cursor}", file=sys.stderr)
    return 0


def _print(args: Arguments, items: tuple[ApprovalView, ...]) -> None:
    from datetime import UTC

    from rhythm.cli.output.table import print_table
    from rhythm.cli.output.words import age

    if not items:
        print("nothing is to be decided" if args.status == "open" else "no approvals like that")
        return
    now = datetime.now(UTC)
    rows = [
        (e.id, e.workflow, e.role, e.status, age(e.created_at, now), _time_left(e, now), e.reason)
        for e in items
    ]
    print_table(("ID", "WORKFLOW", "ROLE", "STATUS", "AGE", "TIME LEFT", "REASON"), rows, status=3)


def _time_left(approval: ApprovalView, now: datetime) -> str:
    from rhythm.cli.output.words import length

    if approval.deadline_at is None:
        return "-"
    return length(max(0.0, (approval.deadline_at - now).total_seconds()))


def _show(args: Arguments) -> int:
    with application(args) as app:
        approval = app.approval(args.id)
    if args.output != "table":
        from rhythm.cli.output.documents import print_item

        print_item(args.output, approval.as_json())
        return 0
    print_approval(approval)
    return 0


def print_approval(approval: ApprovalView) -> None:
    """Prints all fields of an approval."""
    from datetime import UTC

    from rhythm.cli.output.table import print_fields
    from rhythm.cli.output.words import laid_out, moment, printable

    now = datetime.now(UTC)
    needs = f"{approval.quorum} approvals" if approval.quorum > 1 else "one approval"
    rule = ", not of anyone who took part" if approval.four_eyes else ""
    fields = [
        ("approval", approval.id),
        ("status", approval.status),
        ("of", printable(f"{approval.execution_id}, {approval.workflow}")),
        ("reason", printable(approval.reason)),
        ("data", "" if approval.data is None else laid_out(approval.data)),
        ("takes", printable(f"{needs} by {approval.role}{rule}")),
        ("started by", printable(approval.requested_by or "")),
        ("asked", moment(approval.created_at, now)),
        (
            "deadline",
            ""
            if approval.deadline_at is None
            else f"{moment(approval.deadline_at, now)}{_follows(approval)}",
        ),
        ("escalates to", printable(", ".join(approval.escalations))),
        ("decisions", "\n".join(printable(_decision(each, now)) for each in approval.decisions)),
        ("ended", "" if approval.ended_at is None else moment(approval.ended_at, now)),
        ("hash", approval.content_hash if approval.status == "open" else ""),
    ]
    print_fields(fields)


def _follows(approval: ApprovalView) -> str:
    """Returns what happens after the deadline, in words."""
    from rhythm.cli.output.words import printable

    asked = approval.on_deadline == "escalate" and approval.escalations
    return f"; then {printable(approval.escalations[0])} is asked" if asked else "; then it expires"


def _decision(made: object, now: datetime) -> str:
    from rhythm.app.approvals import DecisionView
    from rhythm.cli.output.words import moment

    assert isinstance(made, DecisionView)
    said = f": {made.comment}" if made.comment else ""
    return f"{made.decision} by {made.actor} as {made.role}, {moment(made.at, now)}{said}"
