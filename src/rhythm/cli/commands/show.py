"""Shows everything about one execution: its status, what it waits for and, if it failed, the line
where it did.

`rhythm trace` shows the steps that led there.

  rhythm show 06fe1sz2n5qg7v0k4m8c3x9yte
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rhythm.cli.command import Arguments, command
from rhythm.cli.connect import application, find
from rhythm.cli.options import DATABASE_OR_SERVER, EXECUTION, OUTPUT
from rhythm.cli.output import print

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rhythm.app import ExecutionView, Rhythm


@command(__doc__)
@EXECUTION
@OUTPUT
@DATABASE_OR_SERVER
def run(args: Arguments) -> int:
    with application(args) as app:
        execution = find(app, args.id)
        if args.output == "table":
            _print(app, execution)
        else:
            from rhythm.cli.output.documents import print_item

            step = None if execution.ended else app.details.position(execution.id).step
            beside = {"step_id": step, "retried_as": _retried_as(app, execution)}
            print_item(args.output, execution.as_json() | beside)
    return 0


def _print(app: Rhythm, execution: ExecutionView) -> None:
    from datetime import UTC, datetime

    from rhythm.cli.output.failure import show_failure
    from rhythm.cli.output.table import print_fields
    from rhythm.cli.output.tree import print_tree

    print_fields(list(_fields(app, execution, datetime.now(UTC))))
    print_tree(app, execution)
    if execution.error is not None:
        print(f"\n{show_failure(app, execution)}")
    if advice := _advice(app, execution):
        print(f"\n{advice}")


def _advice(app: Rhythm, e: ExecutionView) -> str:
    """Returns how to go on with a failed execution; empty if it was retried already."""
    if e.status != "failed" or e.parent_id is not None or app.details.retries(e.id):
        return ""
    refusal = app.details.retry_refusal(e.id)
    return f"`rhythm retry {e.id}` goes on from there" if refusal is None else refusal


def _retried_as(app: Rhythm, e: ExecutionView) -> dict[str, str] | None:
    """Returns the id and status of the last retry of an execution; None if there is none."""
    retries = app.details.retries(e.id)
    return {"id": retries[-1], "status": app.get(retries[-1]).status} if retries else None


def _fields(app: Rhythm, e: ExecutionView, now: datetime) -> Iterator[tuple[str, str]]:
    from rhythm.cli.output.words import counted, laid_out, moment, printable

    children = app.details.children(e.id) if e.type == "workflow" else []
    yield "execution", e.id
    yield e.type, _what(app, e)
    yield "status", e.status + _besides(e, now)
    yield "metadata", laid_out(e.paused_metadata) if e.paused_metadata else ""
    yield "waits for", _waits(app, e, children, now)
    yield "progress", _progress(app, e, now)
    yield "created", moment(e.created_at, now)
    yield "ended", moment(e.finished_at, now) + f", after {_took(e)}" if e.finished_at else ""
    yield "queue", printable(e.queue)
    yield "attempt", _attempt(e) if e.type == "task" else ""
    yield "parent", e.parent_id or ""
    yield "retry of", e.retry_of or ""
    yield "retried as", "{id} ({status})".format(**again) if (again := _retried_as(app, e)) else ""
    yield (
        "children",
        f"{len(children):,}: {counted(child.status for child in children)}" if children else "",
    )
    yield "attributes", laid_out(e.attributes) if e.attributes else ""
    yield "inputs", laid_out(e.inputs)
    yield "result", laid_out(e.result) if e.status == "completed" else ""


def _progress(app: Rhythm, e: ExecutionView, now: datetime) -> str:
    """Returns how far it is, as it or something below it has last reported; empty without that."""
    from rhythm.cli.output.log_lines import said, who
    from rhythm.cli.output.words import age

    line = app.details.progress(e.id)
    if line is None:
        return ""
    ago = age(line.at, now)
    whose = "" if line.execution_id == e.id else f" ({who(line)})"
    return f"{said(line)}{whose}, {'now' if ago == 'now' else f'{ago} ago'}"


def _attempt(e: ExecutionView) -> str:
    """Returns the number of a task's attempt, in words.

    If a worker dies with an attempt, that one is not counted against the task's limit. Only then
    can the number be above the limit.
    """
    if e.attempt <= e.max_attempts:
        return f"{e.attempt} of {e.max_attempts}"
    return f"{e.attempt}, since a worker died with an earlier one"


def _what(app: Rhythm, e: ExecutionView) -> str:
    from rhythm.cli.output.words import printable

    source = app.workflows.source(e.name, e.version) if e.type == "workflow" else None
    return printable(f"{e.name}, version {e.version[:12]} of {source.file}" if source else e.name)


def _besides(e: ExecutionView, now: datetime) -> str:
    """Returns what there is to say beside the status: the pause, and the request to end."""
    from rhythm.cli.output.words import moment, printable

    if e.ended:
        return ""
    said = ""
    if e.paused_at is not None:
        who = f" by {e.paused_by}" if e.paused_by else ""
        why = f": {e.paused_reason}" if e.paused_reason else ""
        said += f" since {moment(e.paused_at, now)}{who}{why}"
    if e.cancel_requested_at is not None:
        said += f", asked to end {moment(e.cancel_requested_at, now)}"
    return printable(said)


def _waits(app: Rhythm, e: ExecutionView, children: list[ExecutionView], now: datetime) -> str:
    from rhythm.cli.output.words import moment, printable, waits_for

    if e.ended:
        return ""
    due = app.details.due(e.id)
    if 0 in due:
        return f"its time: {moment(due[0], now)}"
    if e.status == "pending":
        return f"a worker that serves the queue {e.queue}"
    waits = waits_for(
        e.awaiting, {int(child.id.rpartition(".")[2]) for child in children if child.ended}
    )
    if e.paused_reason == "approval_required" and (asked := app.approvals(execution=e.id).items):
        waits = " and ".join(f"{each.id}, an approval by {printable(each.role)}" for each in asked)
    until = f"\nnext due {moment(min(due.values()), now)}" if due and waits else ""
    return f"{waits}{_line(app, e)}{until}" if waits else ""


def _line(app: Rhythm, e: ExecutionView) -> str:
    """Returns where in its source a workflow waits, in words; empty if that is not known."""
    at = app.details.position(e.id)
    return (
        f" ({f'step {at.step}, ' if at.named and at.step else ''}line {at.line})" if at.line else ""
    )


def _took(e: ExecutionView) -> str:
    from rhythm.cli.output.words import length

    assert e.finished_at is not None
    return length((e.finished_at - e.created_at).total_seconds())
