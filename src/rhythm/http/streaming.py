"""`GET /executions/{id}/stream`: how an execution changes, as server-sent events.

Each event has the whole execution at that time, and an `id` that identifies this view of it: a
client that comes back with that id (`Last-Event-ID`) gets only what is new. After the end of the
execution the stream is closed; a client that comes back then gets 204, which tells it not to try
again.

With `logs=true`, what the execution and everything below it say comes in between, as events named
`log`. Then an id also says up to which line the client has them all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Annotated

from fastapi import Header, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from rhythm.app import Rhythm
from rhythm.app.checks import LONGEST_TIME
from rhythm.app.log_lines import LogLineView
from rhythm.errors import StoreError, UnknownExecution
from rhythm.http.answers import document
from rhythm.http.guard import Asker, Guard
from rhythm.http.requests import Id
from rhythm.http.watching import Update, Watcher

# Bytes that are sent at a time: a client that does not read them gets no more.
SLICE_BYTES = 64 * 1024
BEAT_S = 15.0  # between two comments on a silent stream: proxies close silent connections
HEADERS = {"X-Accel-Buffering": "no"}
KIND = "text/event-stream"
# Between two looks for new lines: longer and longer, while there are none.
MIN_LINES_S, MAX_LINES_S = 0.3, 2.0
LINES_AT_ONCE = 200
SETTLED_S = 1.0  # after the end of an execution: its last lines are written by then
SEPARATOR = ";"  # in the id of an event, between the view and the line that the client has
LOGS = "Also stream what the execution and everything below it say: lines of logs, and progress."
LAST_EVENT = "The id of the last event that you received. Browsers send it when they connect again."


class SentLines:
    """Which lines of a family a stream has sent: those up to a position."""

    def __init__(self, app: Rhythm, id: str, position: int) -> None:
        self._app, self._id, self.position = app, id, position
        self.rest_s = MIN_LINES_S  # until it looks again; longer, while nobody says anything

    def take(self) -> list[LogLineView]:
        """Returns the next lines to send, as many as are read at once."""
        page = self._app.logs(self._id, self.position, LINES_AT_ONCE, most_bytes=SLICE_BYTES)
        self.position = page[-1].position if page else self.position
        more = page.cursor is not None
        self.rest_s = 0.0 if more else MIN_LINES_S if page else min(2 * self.rest_s, MAX_LINES_S)
        return list(page)


async def stream(
    request: Request,
    id: Id,
    logs: Annotated[bool, Query(description=LOGS)] = False,
    last_event_id: Annotated[str, Header(description=LAST_EVENT)] = "",
) -> Response:
    """Streams the changes of an execution, until it has ended.

    These are server-sent events named `execution`. Each has the whole execution at that moment.
    With `logs`, there are also events named `log`. The answer is 204 if the execution has ended and
    `Last-Event-ID` says that you know how.
    """
    server, asker = request.scope["rhythm.server"], request.scope["rhythm.asker"]
    _take_place(request.scope["rhythm.places"], server.shares.stream(asker.who))
    now = await run_in_threadpool(asker.app.get, id)
    known, _, position = last_event_id.partition(SEPARATOR)
    lines = SentLines(asker.app, now.id, _number(position)) if logs else None
    if now.ended and known:
        stamps = await run_in_threadpool(asker.app.changes.stamps, [id])
        if known == stamps.get(id):
            return Response(status_code=204)
    return StreamingResponse(
        _events(server.watcher, server.guard, asker, now.id, known, lines), 200, HEADERS, KIND
    )


def _number(text: str) -> int:
    """Returns the position in the id of an event; 0, from the beginning, if there is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_TIME else 0


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
    watcher: Watcher, guard: Guard, asker: Asker, id: str, known: str, lines: SentLines | None
) -> AsyncIterator[bytes]:
    """Yields the events of a stream until the execution ends or the caller loses the permission."""
    with watcher.following(id, known) as followed:
        yield b": this is how the execution changes\n\n"
        sent = known  # the stamp of the last view that was sent
        looked_at = time.monotonic()
        while not followed.ended:
            news = await followed.next(lines.rest_s if lines else BEAT_S)
            silent = not news
            # The permission is checked every so often, even if the execution changes all the time.
            if (due := time.monotonic() - looked_at >= BEAT_S) or (silent and lines is None):
                if not await guard.still_authorized(asker):
                    return
                looked_at = time.monotonic()
            if lines is not None:
                async for part in _lines(lines, sent):
                    yield part
            if silent and (due or lines is None):
                yield b": \n\n"
            elif news and (update := followed.take()) is not None:
                sent = update.stamp
                yield _id(sent, lines)
                for part in _slices(update):
                    yield part
                if update.ended:
                    if lines is not None:
                        await asyncio.sleep(SETTLED_S)
                        async for part in _lines(lines, sent, to_the_end=True):
                            yield part
                    return
                del update  # so that its memory is freed while this stream waits


async def _lines(lines: SentLines, stamp: str, to_the_end: bool = False) -> AsyncIterator[bytes]:
    """Yields the next lines as events; `to_the_end`: all that there are."""
    while True:
        try:
            found = await run_in_threadpool(lines.take)
        except (StoreError, UnknownExecution):  # it is tried again, or the stream ends soon
            return
        for line in found:
            event = b"event: log\ndata: %b\n\n" % document(line)
            yield b"id: %b%b%d\n%b" % (stamp.encode(), SEPARATOR.encode(), line.position, event)
        if not (found and to_the_end):
            return


def _id(stamp: str, lines: SentLines | None) -> bytes:
    position = f"{SEPARATOR}{lines.position}" if lines else ""
    return f"id: {stamp}{position}\n".encode()


def _slices(update: Update) -> Iterator[bytes]:
    return (update.body[at : at + SLICE_BYTES] for at in range(0, len(update.body), SLICE_BYTES))
