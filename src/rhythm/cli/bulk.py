"""One command for many executions: which are meant, and what became of them.

They are those that nobody else started and to which it can be done; --dry-run only counts them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rhythm.cli.actor import actor
from rhythm.cli.connect import application
from rhythm.cli.inputs import read_pairs
from rhythm.cli.options import Arguments, Option, UsageError
from rhythm.cli.output import print, print_problem

if TYPE_CHECKING:
    from rhythm.app.bulk import Action, BulkView

FILTERS = (
    Option("--workflow", "with --all: of this workflow or task", value="NAME"),
    Option("--status", "with --all: of this status", value="STATUS"),
    Option("--queue", "with --all: of this queue", value="NAME"),
    Option("--created-before", "with --all: started before this time", value="TIME"),
    Option(
        "--created-after",
        "with --all: started at this time or later, such as 2026-03-01T12:00:00Z",
        value="TIME",
    ),
    Option(
        "--attribute",
        "with --all: with this attribute; KEY:=JSON for what is no text",
        value="KEY=TEXT",
        many=True,
    ),
    Option("--limit", "with --all: so many at most, the oldest first", value="N"),
)
ALL = (
    Option("--all", "all executions that fit, in place of an id"),
    *FILTERS,
    Option("--dry-run", "with --all: only count them"),
)
DONE = {
    "pause": "paused",
    "resume": "resumed",
    "cancel": "asked to end",
    "terminate": "terminated",
    "retry": "retried",
}


def wants_all(args: Arguments, ids: Any) -> bool:
    """Whether all are meant that fit, and not the `ids`; `UsageError` if that is not clear."""
    given = [option.name for option in (*FILTERS, ALL[-1]) if getattr(args, option.key)]
    if args.all and ids:
        raise UsageError("give ids or --all, not both")
    if not args.all and given:
        raise UsageError(f"{given[0]} chooses among all executions: give --all, too")
    if not args.all and not ids:
        raise UsageError("ID is missing: name an execution, or give --all")
    return bool(args.all)


def act_on_all(args: Arguments, action: Action, reason: str = "") -> int:
    """Does it to all that fit; the exit code."""
    with application(args) as app:
        done = app.bulk(
            action,
            workflow=args.workflow,
            status=args.status,
            queue=args.queue,
            created_before=args.created_before,
            created_after=args.created_after,
            attributes=read_pairs(args.attribute, "--attribute"),
            limit=_limit(args.limit),
            all=True,
            reason=reason,
            dry_run=args.dry_run,
            by=actor(args),
        )
    print(_told(done, action, args.dry_run))
    for id, why in done.reasons.items():
        print_problem(f"{id}: {why}")
    if done.refused > len(done.reasons):
        print(f"rhythm: and {done.refused - len(done.reasons):,} more", file=sys.stderr)
    return 1 if done.refused else 0


def _limit(given: str | None) -> int | None:
    if given is not None and not (given.isascii() and given.isdigit()):
        raise UsageError(f"--limit is a whole number, not {given}")
    return None if given is None else int(given)


def _told(done: BulkView, action: str, dry_run: bool) -> str:
    if dry_run:
        return f"{_executions(done.matched)} would be {DONE[action]}"
    if not done.refused:
        return (
            f"{_executions(done.changed)} {'was' if done.changed == 1 else 'were'} {DONE[action]}"
        )
    if not done.changed:
        return f"{_executions(done.matched)} could not be {DONE[action]}"
    return f"{done.changed:,} of {_executions(done.matched)} were {DONE[action]}"


def _executions(count: int) -> str:
    return "one execution" if count == 1 else f"{count:,} executions"
