"""Shows what happened in an execution and everything below it, in order of time, as `rhythm run`
does while it runs.

… is a line at which the workflow had to wait, → a task that starts, ✓ a task that is done, ↻ an
attempt that failed and is repeated. In a retry, the steps that it kept of the earlier execution
come first.

  rhythm trace 06fe1sz2n5qg7v0k4m8c3x9yte
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rhythm.cli.command import Arguments, command
from rhythm.cli.connect import application, find
from rhythm.cli.options import DATABASE_OR_SERVER, EXECUTION, OUTPUT
from rhythm.cli.output import print

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rhythm.app import ExecutionView, Rhythm, TraceStep
    from rhythm.app.views import TracePage

PAGE_STEPS, PAGE_BYTES = 1000, 4 * 1024 * 1024  # at most this much is read at a time


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
            from rhythm.cli.output.documents import print_items

            print_items(
                args.output, (as_json(step) for page in _pages(app, execution.id) for step in page)
            )
    return 0


def _pages(app: Rhythm, id: str) -> Iterator[TracePage]:
    """Yields the trace page by page: all of it may not fit into memory."""
    page = app.trace_page(id, PAGE_STEPS, most_bytes=PAGE_BYTES)
    yield page
    while page.cursor is not None:
        page = app.trace_page(id, PAGE_STEPS, page.cursor, most_bytes=PAGE_BYTES)
        yield page


def as_json(step: TraceStep) -> dict[str, Any]:
    return {name: getattr(step, name) for name in step._fields} | {
        "at": step.at.isoformat().replace("+00:00", "Z")
    }


def print_steps(app: Rhythm, execution: ExecutionView, steps: Sequence[TraceStep]) -> None:
    """Prints a line for each of these steps of an execution that means something to people."""
    import sys

    from rhythm.cli.output.terminal import coloured, width_of
    from rhythm.cli.output.trace import show_line

    room, colour = width_of(sys.stdout) or 10_000, coloured(sys.stdout)
    views = app.executions.get_many(sorted({step.execution_id for step in steps}))
    for step in steps:
        # a step that a retry kept: its end is enough, its start is not shown
        kept = step.at < execution.created_at
        if (line := _line_of(app, step, views.get(step.execution_id))) and not (
            kept and step.what == "started"
        ):
            seconds = (step.at - execution.created_at).total_seconds()
            depth = step.execution_id.count(".") - execution.id.count(".")
            print(show_line(seconds, line[0], depth, line[1], colour, room))


def _print(app: Rhythm, execution: ExecutionView) -> None:
    for page in _pages(app, execution.id):
        print_steps(app, execution, page)
    if not execution.ended:
        print(
            f"{'':>9}  it is {execution.status}; `rhythm show {execution.id}` tells what "
            f"it waits for"
        )


def _line_of(app: Rhythm, step: TraceStep, view: ExecutionView | None) -> tuple[str, str] | None:
    """Returns the mark of a step and the text about it.

    Returns None for a step that means nothing to people, or whose execution was just pruned.
    """
    from rhythm.cli.output.words import brief, call, printable

    if view is None:  # the execution has just been pruned
        return None
    task = view.type == "task"
    took = _took(view)
    name = printable(step.name)
    match step.what:
        case "started":
            return (
                "task" if task else "start"
            ), f"{'' if task or not view.parent_id else 'workflow '}{call(step.name, step.detail)}"
        case "completed":
            return (
                ("done", f"{name} = {brief(step.detail)} in {took}")
                if task
                else ("completed", f"completed {name} in {took}")
            )
        case "failed" | "cancelled" | "blocked":
            why = f": {printable(step.detail['code'])}: {printable(step.detail['message'])}"
            return (
                "failure" if task and step.what == "failed" else step.what
            ), f"{step.what} {name} after {took}{why}"
        case "attempt failed":
            return (
                "retry",
                f"{name} failed, and is tried again: {printable(step.detail['message'])}",
            )
        case "retry":
            return "start", f"goes on where {view.retry_of or 'it'} ended"
        case "resumed":
            return "signal", printable(_resumed(step.detail))
        case "turn":
            return "wait", f"line {step.line}: {_line(app, view, step.line)}" if step.line else ""
        case "task" | "promoted" | "queued" | "continue":  # how work is divided among workers
            return None
        case what:
            return "log", printable(what)


def _resumed(how: dict[str, Any]) -> str:
    """Returns what let an execution go on, in words."""
    data = how["data"] or {}
    because = f": {how['reason']}" if how["reason"] else ""
    match how["triggered_by"]:
        case "approval":
            by, said = " and ".join(data["by"]), data["comment"]
            return (
                f"{data['decision']}{f' by {by}' if by else ''}{f': {said}' if said else ''} "
                f"({how['triggered_by_id']})"
            )
        case "event":
            return f"event {data['type']} ({how['triggered_by_id']})"
        case "manual":
            who = how["triggered_by_id"]
            return f"resumed{f' by {who}' if who else ''}{because}"
        case _:
            return "its pause was over"


def _took(view: ExecutionView) -> str:
    """Returns how long an execution ran; empty if it has not ended."""
    from rhythm.cli.output.words import length

    began = view.started_at if view.type == "task" and view.started_at else view.created_at
    return length((view.finished_at - began).total_seconds()) if view.finished_at else ""


def _line(app: Rhythm, view: ExecutionView, line: int) -> str:
    """Returns a line of the source, as it was when this version was registered."""
    from rhythm.cli.output.words import printable

    source = app.workflows.source(view.name, view.version)
    lines = source.text.splitlines() if source else []
    return printable(lines[line - 1].strip()) if line <= len(lines) else ""
