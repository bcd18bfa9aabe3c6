"""Why an execution failed: the error under the line of the source where it arose, down to the child
that began it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rhythm.cli.output.words import printable
from rhythm.lang.source import Diagnostic, Source, render
from rhythm.printable import indented

if TYPE_CHECKING:
    from rhythm.app import ExecutionView, Rhythm

MAX_DEPTH = 20  # children of children that are shown


def show_failure(app: Rhythm, execution: ExecutionView) -> str:
    """The failure with its line and caret; then, if that line waited for a child, where the child
    failed."""
    shown, failed = list[str](), [execution]
    for one in failed:
        if one.error is not None:
            shown.append(_one(app, one, one.error))
            shown += [f"  {printable(frame)}" for frame in _frames(app, one)]
            failed += _child(app, one.id, one.error) if len(failed) < MAX_DEPTH else []
    return "\n".join(shown)


def _frames(app: Rhythm, execution: ExecutionView) -> list[str]:
    """The lines of Python that led to the error: of a task itself, or of the task whose failure a
    workflow passed on."""
    error = execution.error or {}
    if execution.type == "task":
        return list(error.get("frames", ()))
    failed = (task.error or {} for task in app.details.failed_tasks(execution.id))
    return next(
        (list(found.get("frames", ())) for found in failed if found["message"] == error["message"]),
        [],
    )


def _one(app: Rhythm, execution: ExecutionView, error: dict[str, Any]) -> str:
    found = (
        app.workflows.source(execution.name, execution.version)
        if execution.type == "workflow"
        else None
    )
    code, message, at = printable(error["code"]), error["message"], error.get("at")
    if found is None or not at:
        return f"{execution.status}[{code}]: {indented(message)}"
    source = Source(found.file or found.name, found.text)
    line, column = at
    start = source.lines[min(line, len(source.lines)) - 1] + column - 1
    return render(source, Diagnostic(code, execution.status, message, start, start + 1))


def _child(app: Rhythm, parent: str, error: dict[str, Any]) -> list[ExecutionView]:
    """The child whose failure this is, unless it is gone."""
    data = error.get("data")
    id = data.get("id") if error["code"] == "ChildFailed" and isinstance(data, dict) else None
    if not isinstance(id, str) or not id.startswith(f"{parent}."):
        return []
    return list(app.executions.get_many([id]).values())
