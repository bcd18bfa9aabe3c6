"""`GET /executions/{id}/stream`: how an execution changes, as server-sent events.

Each event has the whole execution at that time, and an `id` that identifies this view of it: a
client that comes back with that id (`Last-Event-ID`) gets only what is new. After the end of the
execution the stream is closed; a client that comes back then gets 204, which tells it not to try
again.
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
from rhythm.http.requests import Id
from rhythm.http.watching import Update, Watcher

# Bytes that are sent at a time: a client that does not read them gets no more.
SLICE_BYTES = 64 * 1024
BEAT_S = 15.0  # between two comments on a silent stream: proxies close silent connections
HEADERS = {"X-Accel-Buffering": "no"}
KIND = "text/event-stream"
LAST_EVENT = "The id of the last event that you received. Browsers send it when they connect again."


async def stream(
    request: Request, id: Id, last_event_id: Annotated[str, Header(description=LAST_EVENT)] = ""
) -> Response:
    """Streams the changes of an execution, until it has ended.

    These are server-sent events named `execution`. Each has the whole execution at that moment. The
    answer is 204 if the execution has ended and `Last-Event-ID` says that you know how.
    """
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
    """Takes a place among the streams in exchange for the one among the requests.

    This happens before anything is awaited. The place is given back when the answer ends, even if
    it never begins.
    """
    with ExitStack() as taken:
        taken.enter_context(place)
        places.close()
        places.push(taken.pop_all())


async def _events(
    watcher: Watcher, guard: Guard, asker: Asker, id: str, known: str
) -> AsyncIterator[bytes]:
    """Yields the events of a stream until the execution ends or the caller loses the permission."""
    with watcher.following(id, known) as followed:
        yield b": this is how the execution changes\n\n"
        looked_at = time.monotonic()
        while not followed.ended:
            news = await followed.next(BEAT_S)
            # The permission is checked every so often, even if the execution changes all the time.
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
                del update  # so that its memory is freed while this stream waits


def _slices(update: Update) -> Iterator[bytes]:
    return (update.event[at : at + SLICE_BYTES] for at in range(0, len(update.event), SLICE_BYTES))
