"""Hints for a user who waits for an execution that may never go on."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rhythm.cli.output.words import printable, tasks_of
from rhythm.suggest import nearest, some_of

if TYPE_CHECKING:
    from rhythm.app import ExecutionView, Rhythm


def nobody_serves(app: Rhythm, execution: ExecutionView) -> str:
    """Returns a hint if no worker serves the queue of what is ready, or if something is paused.

    Returns an empty text if it waits for something else, or for workers that are busy.
    """
    queue = _waiting_queue(app, execution)
    if execution.status == "paused":
        if not execution.paused_manually:
            return (
                f"it waits for others; `rhythm why {execution.id}` says for whom, and what "
                f"would help"
            )
        return f"it is paused; `rhythm resume {execution.id}` lets it go on"
    if queue is None:
        return ""
    known = next((each for each in app.queues() if each.name == queue), None)
    if known is not None and known.paused_at is not None:
        resume = f"rhythm queue resume {shlex.quote(queue)}"
        return printable(f"the queue `{queue}` is paused; `{resume}` lets it go on")
    if known is not None and known.workers:
        return ""
    return printable(
        f"nobody seems to serve the queue `{queue}`: run a worker for it (`rhythm worker --app "
        "FILE`), or give `rhythm start` --wait and --app, then it works on it itself"
    )


def _waiting_queue(app: Rhythm, execution: ExecutionView) -> str | None:
    """Returns the queue in which the execution, or a child of it, is ready and was not taken.

    Returns None if there is none.
    """
    due = app.details.due(execution.id)
    if execution.status == "pending":
        return None if 0 in due else execution.queue
    children = app.details.children(execution.id) if execution.type == "workflow" else []
    pending = (child for child in children if child.status == "pending")
    return next(
        (child.queue for child in pending if int(child.id.rpartition(".")[2]) not in due), None
    )


def missing_tasks(app: Rhythm, execution: ExecutionView) -> str:
    """Returns a hint if the execution waits for a task that --app does not register.

    Returns an empty text if it waits for none. This process is the one that works on it.
    """
    missing = [name for name in tasks_of(execution.awaiting) if name not in app.tasks]
    if not missing:
        return ""
    near = nearest(missing[0], app.tasks)
    what = (
        f"did you mean `{near}`?"
        if near
        else f"those registered are {some_of(app.tasks) or 'none'}"
    )
    return printable(f"--app registers no task `{missing[0]}`; {what}")
