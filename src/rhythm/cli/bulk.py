"""One command for many executions (`--all`): the options that choose them, and the report.

Only roots to which the act can be done are chosen; --dry-run only counts them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rhythm.cli.actor import actor
from rhythm.cli.command import Arguments, UsageError, declare, option
from rhythm.cli.connect import application
from rhythm.cli.filters import filter_of, is_filter
from rhythm.cli.inputs import read_pairs
from rhythm.cli.options import STATUSES
from rhythm.cli.output import print, print_problem
from rhythm.cli.output.progress import progress
from rhythm.cli.types import KeyValue, Known, Text, Whole

if TYPE_CHECKING:
    from rhythm.app.bulk import Action, BulkView

FILTERS = {
    "workflow": option(
        "--workflow", type=Known("workflows"), help="with --all: only of this workflow or task"
    ),
    "status": option(
        "--status", type=Text(*STATUSES), metavar="STATUS", help="with --all: only of this status"
    ),
    "queue": option("--queue", type=Known("queues"), help="with --all: only of this queue"),
    "created_before": option(
        "--created-before", metavar="TIME", help="with --all: only those started before this time"
    ),
    "created_after": option(
        "--created-after",
        metavar="TIME",
        help="with --all: only those started at this time or later, such as 2026-03-01T12:00:00Z",
    ),
    "attribute": option(
        "--attribute",
        type=KeyValue(),
        multiple=True,
        help="with --all: only those with this attribute; KEY:=JSON for a value that is not text",
    ),
    "limit": option(
        "--limit", type=Whole(), help="with --all: at most this many, the oldest first"
    ),
    "dry_run": option(
        "--dry-run", is_flag=True, help="with --all: change nothing, only count them"
    ),
}
ALL = option("--all", is_flag=True, help="act on all executions that match, instead of on an id")
which = declare(ALL, *FILTERS.values())  # the options that choose executions
DOING = {
    "pause": "pausing",
    "resume": "resuming",
    "cancel": "cancelling",
    "terminate": "terminating",
    "retry": "retrying",
}
DONE = {
    "pause": "paused",
    "resume": "resumed",
    "cancel": "asked to end",
    "terminate": "terminated",
    "retry": "retried",
}


def wants_all(args: Arguments, ids: Any) -> bool:
    """Returns whether --all is given, rather than `ids`.

    With --all, `ids` are a filter. `UsageError` if both --all and ids are given, or neither, or an
    option that belongs to --all without it.
    """
    given = [name for name in FILTERS if _is_given(getattr(args, name))]
    if args.all and ids and not is_filter([ids] if isinstance(ids, str) else ids):
        raise UsageError("give ids or --all, not both; a filter has terms such as status:failed")
    if not args.all and given:
        option = f"--{given[0].replace('_', '-')}"
        raise UsageError(f"{option} chooses among all executions: give --all, too")
    if not args.all and ids and is_filter([ids] if isinstance(ids, str) else ids[1:]):
        raise UsageError("a filter chooses among all executions: give --all, too")
    if not args.all and not ids:
        raise UsageError("ID is missing: name an execution, or give --all")
    return bool(args.all)


def _is_given(value: Any) -> bool:
    return value is not None and value is not False and value != ()


def act_on_all(
    args: Arguments,
    action: Action,
    wanted: str | Sequence[str] | None,
    reason: str = "",
    from_start: bool = False,
) -> int:
    """Does the act to all executions that match, and prints how many were changed. `wanted` is the
    filter.

    Returns the exit code: 1 if any of them was refused, or would be (--dry-run).
    """
    with application(args) as app, progress(DOING[action]) as report:
        done = app.bulk(
            action,
            workflow=args.workflow,
            status=args.status,
            queue=args.queue,
            created_before=args.created_before,
            created_after=args.created_after,
            attributes=read_pairs(args.attribute, "--attribute"),
            query=filter_of(wanted),
            limit=args.limit,
            all=True,
            reason=reason,
            dry_run=args.dry_run,
            by=actor(args),
            on_progress=report,
            from_start=from_start,
        )
    print(_in_words(done, action, args.dry_run))
    for id, why in done.reasons.items():
        print_problem(f"{id}: {why}")
    if done.refused > len(done.reasons):
        print(f"rhythm: and {done.refused - len(done.reasons):,} more", file=sys.stderr)
    return 1 if done.refused else 0


def _in_words(done: BulkView, action: str, dry_run: bool) -> str:
    count = done.matched - done.refused
    if done.refused and not count:
        return f"{_executions(done.matched)} could not be {DONE[action]}"
    whom = f"{count:,} of {_executions(done.matched)}" if done.refused else _executions(count)
    verb = "would be" if dry_run else "was" if done.matched == 1 else "were"
    return f"{whom} {verb} {DONE[action]}"


def _executions(count: int) -> str:
    return "one execution" if count == 1 else f"{count:,} executions"
