"""Queues and workers over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from starlette.responses import Response

from rhythm.app.overview import OverviewView
from rhythm.app.views import QueueView, WorkerView
from rhythm.http.answers import answer
from rhythm.http.pages import by_name, listed
from rhythm.http.requests import Ask, Cursor, Limit
from rhythm.http.schemas import Body, form_of, object_of, page_of

Queue, Worker = form_of(QueueView, "Queue"), form_of(WorkerView, "Worker")
Queues, Workers = page_of(Queue), page_of(Worker)
Overview = form_of(OverviewView, "Overview")
QueueChanged = object_of(
    "QueueChanged", "`changed` is false if this was the case already.", name=str, changed=bool
)
Name = Annotated[str, Path(description="The name of the queue. It may contain slashes.")]


class PauseQueue(Body):
    reason: str = ""


PAUSE = PauseQueue()  # what a request without a body means


def find(ask: Ask, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """Lists the queues, and what is in them.

    These are all queues that have work, are paused, or are served by a worker.
    """
    seen = ask.seen(ask.app.queues(), lambda queue: queue.name)
    items, more = by_name(seen, lambda queue: queue.name, limit, cursor)
    return listed(ask, items, more, lambda n: items[n].name)


def pause(ask: Ask, name: Name, body: PauseQueue = PAUSE) -> Response:
    """Pauses a queue.

    No task and no workflow of it begins any more. What has begun goes on.
    """
    return answer({"name": name, "changed": ask.app.pause_queue(name, body.reason, ask.actor)})


def resume(ask: Ask, name: Name) -> Response:
    """Lets workers take work from a paused queue again."""
    return answer({"name": name, "changed": ask.app.resume_queue(name, by=ask.actor)})


def overview(ask: Ask) -> Response:
    """Returns what is going on in the database.

    Counts of executions, queues, workers and approvals, and the newest failures. Every count has a
    limit: it costs as much on a full database as on an empty one.
    """
    return answer(ask.app.overview())


def workers(ask: Ask, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """Lists the workers of the database, in all processes.

    A worker that died is listed for a day.
    """
    items, more = by_name(ask.app.workers(), lambda worker: worker.name, limit, cursor)
    return listed(ask, items, more, lambda n: items[n].name)
