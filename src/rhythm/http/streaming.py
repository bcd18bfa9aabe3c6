"""`GET /executions/{id}/stream`: how an execution changes, as server-sent events.

Each event has the whole execution as it is by then, and an `id` that says which view of it that is:
whoever comes back with it (`Last-Event-ID`) is told only what is new. After the end the stream is
closed; whoever comes back then is told, by 204, not to.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Annotated

from fastapi import Header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from rhythm.http.guard import Asker, Guard
from rhythm.http.watching import Update, Watcher

# bytes that are handed out at a time: a client that does not read them is given no more
SLICE_BYTES = 64 * 1024
BEAT_S = 15.0  # between two signs of life: proxies close what is silent
HEADERS = {"X-Accel-Buffering": "no"}
KIND = "text/event-stream"


async def stream(
    request: Request, id: str, last_event_id: Annotated[str, Header()] = ""
) -> Response:
    """Server-sent events named `execution`, each with the execution as it is by then, until it has
    ended."""
    server, asker = request.scope["rhythm.server"], request.scope["rhythm.asker"]
    _take_place(request.scope["rhythm.places"], server.shares.stream(asker.who))
    now = await run_in_threadpool(asker.app.get, id)
    if now.ended and last_event_id:
        stamps = await run_in_threadpool(asker.app.changes.stamps, [id])
        if last_event_id == stamps.get(id):
            return Response(status_code=204)
    return StreamingResponse(
        _events(server.watcher, server.guard, asker, now.id, last_event_id), 200, HEADERS, KIND
    )


def _take_place(places: ExitStack, place: AbstractContextManager[None]) -> None:
    """A place among the streams instead of one among the requests, before anything is awaited; it
    is given back when the answer ends, also one that never begins."""
    with ExitStack() as taken:
        taken.enter_context(place)
        places.close()
        places.push(taken.pop_all())


async def _events(
    watcher: Watcher, guard: Guard, asker: Asker, id: str, known: str
) -> AsyncIterator[bytes]:
    with watcher.following(id, known) as followed:
        yield b": this is how the execution changes\n\n"
        looked_at = time.monotonic()
        while not followed.ended:
            news = await followed.next(BEAT_S)
            # also where something changes all the time
            if time.monotonic() - looked_at >= BEAT_S or not news:
                if not await guard.still_authorized(asker):
                    return
                looked_at = time.monotonic()
            if not news:
                yield b": \n\n"
            elif (update := followed.take()) is not None:
                for part in _slices(update):
                    yield part
                if update.ended:
                    return
                del update  # others have no use for it any more


def _slices(update: Update) -> Iterator[bytes]:
    return (update.event[at : at + SLICE_BYTES] for at in range(0, len(update.event), SLICE_BYTES))
