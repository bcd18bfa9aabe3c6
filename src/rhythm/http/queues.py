"""Queues and workers over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from starlette.responses import Response

from rhythm.app.views import QueueView, WorkerView
from rhythm.http.answers import answer
from rhythm.http.pages import by_name, listed
from rhythm.http.requests import Ask, Cursor, Limit
from rhythm.http.schemas import Body, form_of, object_of, page_of

Queue, Worker = form_of(QueueView, "Queue"), form_of(WorkerView, "Worker")
Queues, Workers = page_of(Queue), page_of(Worker)
QueueChanged = object_of(
    "QueueChanged", "`changed`: false if it was so already.", name=str, changed=bool
)
Name = Annotated[str, Path(description="of the queue; it may have slashes in it")]


class PauseQueue(Body):
    reason: str = ""


PAUSE = PauseQueue()  # what a request without a body means


def find(ask: Ask, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """What is in the queues: all that have work, are paused, or are served by a worker."""
    seen = ask.seen(ask.app.queues(), lambda queue: queue.name)
    items, more = by_name(seen, lambda queue: queue.name, limit, cursor)
    return listed(ask, items, more, lambda n: items[n].name)


def pause(ask: Ask, name: Name, body: PauseQueue = PAUSE) -> Response:
    """Nothing more of this queue begins: no task, and no workflow. What has begun goes on."""
    return answer({"name": name, "changed": ask.app.pause_queue(name, body.reason, ask.actor)})


def resume(ask: Ask, name: Name) -> Response:
    """Lets workers take from a paused queue again."""
    return answer({"name": name, "changed": ask.app.resume_queue(name, by=ask.actor)})


def workers(ask: Ask, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """The workers of the database, whatever process they are in; those that died, for a day."""
    items, more = by_name(ask.app.workers(), lambda worker: worker.name, limit, cursor)
    return listed(ask, items, more, lambda n: items[n].name)
