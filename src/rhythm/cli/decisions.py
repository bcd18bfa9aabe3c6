"""What the commands approve, reject and escalate share: their options, and how they decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rhythm.cli.actor import actor
from rhythm.cli.command import Arguments, UsageError, argument, declare, option
from rhythm.cli.connect import application
from rhythm.cli.options import BY, DATABASE_OR_SERVER
from rhythm.cli.output import print, print_problem
from rhythm.cli.remote import server_of
from rhythm.cli.types import Known

if TYPE_CHECKING:
    from rhythm.app import Rhythm
    from rhythm.app.approvals import ApprovalView

decision = declare(  # the options and arguments of every command that decides
    argument(
        "id",
        type=Known("approvals"),
        help="an approval (`rhythm approvals` lists them), or an execution that waits for one",
    ),
    option("--comment", metavar="TEXT", may_be_empty=True, help="why, for the record"),
    BY,
    option(
        "--content-hash",
        metavar="HASH",
        help="the hash that `rhythm approvals ID` has shown you; the decision is refused if the "
        "approval has changed since",
    ),
    option("--shown", metavar="HASH", hidden=True, help="the older name of --content-hash"),
    option("--key", metavar="KEY", help="a key of your own: the same key twice is one decision"),
    DATABASE_OR_SERVER,
)


def decide(args: Arguments, what: str) -> int:
    """Approves, rejects or escalates, and prints what that means for the execution.

    Returns the exit code: 1 if the decision is denied.
    """
    from rhythm.errors import Denied

    with application(args) as app:
        id = _meant(app, args.id)
        given = {"by": actor(args), "comment": args.comment or "", "key": args.key}
        given |= {"content_hash": args.content_hash, "shown": args.shown}
        given |= {"to": args.to} if what == "escalate" else {}
        try:
            after = getattr(app, what)(id, **given)
            print(_said(app, what, after))
        except Denied as problem:
            hint = (
                "; if you decide for somebody else, say who with --by NAME"
                if problem.code == "self_approval" and not args.by and server_of(args) is None
                else ""
            )
            print_problem(problem, hint)
            return 1
    return 0


def _meant(app: Rhythm, id: str) -> str:
    """Returns the id of the approval that is meant by the id of an approval or of an execution.

    For an execution it is the only approval that is open, else the only one that has ended.
    `UsageError` if several are open, `UnknownApproval` if there is none.
    """
    from rhythm.errors import UnknownApproval

    try:
        return app.approval(id).id
    except UnknownApproval:
        open_ = app.approvals(execution=id).items
        if len(open_) > 1:
            raise UsageError(
                f"{id} waits for {len(open_)} approvals: name one of "
                f"{', '.join(each.id for each in open_)}"
            ) from None
        ended = app.approvals(execution=id, status=None).items if not open_ else ()
        if len(ended) == 1:  # the decision was sent again, or comes too late
            return ended[0].id
        if not open_:
            raise UnknownApproval(_nothing_to_decide(app, id, bool(ended))) from None
        return open_[0].id


def _nothing_to_decide(app: Rhythm, id: str, asked_before: bool) -> str:
    """Returns what there is instead of an approval with this id, or of this execution."""
    from rhythm.cli.output.words import printable, waits_for
    from rhythm.errors import UnknownExecution

    try:
        execution = app.get(id)
    except UnknownExecution:
        return f"there is no approval {id!r:.200}; `rhythm approvals` lists what is to be decided"
    if asked_before:
        return (
            f"{id} asks for no decision any more; `rhythm approvals --execution {id} --status all` "
            f"lists those that were made"
        )
    waits = "" if execution.paused_manually else waits_for(execution.awaiting)
    how = f"waits for {waits}" if waits and not execution.ended else f"is {execution.status}"
    more = "" if execution.ended else f"; `rhythm why {id}` says what would help"
    return printable(f"{id} asks for no decision: it {how}{more}")


def _said(app: Rhythm, what: str, after: ApprovalView) -> str:
    from rhythm.cli.output.words import printable

    if what == "escalate":
        return printable(f"escalated {after.id}: now it is for {after.role} to decide")
    if after.status == "open":
        given = sum(
            each.decision == "approve" and each.role == after.role for each in after.decisions
        )
        return f"approved {after.id}: {given} of {after.quorum} approvals"
    return printable(f"{after.status} {after.id}: {_then(app, after.execution_id)}")


def _then(app: Rhythm, id: str) -> str:
    """Returns what the decision means for the execution, in words."""
    if app.get(id).paused_manually:
        return f"{id} is paused; `rhythm resume {id}` lets it go on with that"
    others = app.approvals(execution=id).items
    return (
        f"{id} also asks for {', '.join(each.id for each in others)}"
        if others
        else f"{id} goes on with that decision"
    )
