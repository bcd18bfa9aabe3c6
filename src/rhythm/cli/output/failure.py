"""Shows why an execution failed: the error, under the line of source where it arose.

If that line waited for a child, the child's failure follows, and so on down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rhythm.cli.output.words import printable
from rhythm.lang.source import Diagnostic, Source, render
from rhythm.printable import indented

if TYPE_CHECKING:
    from rhythm.app import ExecutionView, Rhythm

MAX_DEPTH = 20  # failures that are shown, each of a child of the one before


def show_failure(app: Rhythm, execution: ExecutionView) -> str:
    """Returns the error with its line of source and a caret, as text.

    If that line waited for a child, the failure of the child follows.
    """
    shown, failed = list[str](), [execution]
    for one in failed:
        if one.error is not None:
            shown.append(_one(app, one, one.error))
            shown += [f"  {printable(frame)}" for frame in _frames(app, one)]
            failed += _child(app, one.id, one.error) if len(failed) < MAX_DEPTH else []
    return "\n".join(shown)


def _frames(app: Rhythm, execution: ExecutionView) -> list[str]:
    """Returns the lines of the Python traceback of the error; empty if there are none.

    For a workflow they are those of the task whose failure it passed on.
    """
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
    start = source.offset(*at)
    return render(source, Diagnostic(code, execution.status, message, start, start + 1))


def _child(app: Rhythm, parent: str, error: dict[str, Any]) -> list[ExecutionView]:
    """Returns the child whose failure this is, as a list; empty if there is none, or it is gone."""
    data = error.get("data")
    id = data.get("id") if error["code"] == "ChildFailed" and isinstance(data, dict) else None
    if not isinstance(id, str) or not id.startswith(f"{parent}."):
        return []
    return list(app.executions.get_many([id]).values())
