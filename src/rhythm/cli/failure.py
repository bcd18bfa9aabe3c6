"""Why an execution failed: the error under the line of the source where it arose, down to the child that began it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rhythm.lang.source import Diagnostic, Source, render

if TYPE_CHECKING:
    from rhythm.app import ExecutionView, Rhythm

DEEPEST = 20  # children of children that are shown


def show_failure(app: Rhythm, execution: ExecutionView) -> str:
    """The failure with its line and caret; then, if that line waited for a child, where the child failed."""
    shown, ids = list[str](), [execution.id]
    for id in ids:
        found = app.store.get([id]).get(id)  # a child may be gone
        if found is None:
            break
        view = app.get(id)
        if view.error is None:
            break
        shown.append(_one(app, view, view.error))
        child = _child(id, view.error)
        if child is not None and len(ids) < DEEPEST:
            ids.append(child)
    return "\n".join(shown)


def _one(app: Rhythm, execution: ExecutionView, error: dict[str, Any]) -> str:
    definition = app.store.definition(execution.name, execution.version) if execution.type == "workflow" else None
    at = error.get("at")
    if definition is None or not at:
        return f"{execution.status}[{error['code']}]: {execution.name}: {error['message']}"
    source = Source(definition.file or definition.name, definition.source)
    line, column = at
    start = source.lines[min(line, len(source.lines)) - 1] + column - 1
    return render(source, Diagnostic(error["code"], execution.status, error["message"], start, start + 1))


def _child(parent: str, error: dict[str, Any]) -> str | None:
    """The child whose failure this is."""
    data = error.get("data")
    id = data.get("id") if error["code"] == "ChildFailed" and isinstance(data, dict) else None
    return id if isinstance(id, str) and id.startswith(f"{parent}.") else None
