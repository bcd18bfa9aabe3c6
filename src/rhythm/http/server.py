"""The server: an ASGI application around one `Rhythm`, to be run by `rhythm server` or mounted in
an application of yours.

The routes are built once for each process and know no application: a request brings its own along.
Around them is what every request goes through: the guard, the headers of every answer, and the
count.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import Message, Receive, Scope, Send

from rhythm.app import Rhythm
from rhythm.http.api import api, document
from rhythm.http.guard import Guard
from rhythm.http.health import Counts, DatabaseProbe, problems_of
from rhythm.http.problems import problem_response
from rhythm.http.refusals import STATUSES, RefusalLog
from rhythm.http.sharing import Shares
from rhythm.http.watching import Watcher

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
_TLS = (b"strict-transport-security", b"max-age=31536000")
SERVING = 8  # threads whose questions the database is to answer at the same time
PIECE = 64 * 1024  # of an answer, after which the client must have taken what came before it
# until somebody who asks too often is told so: whoever does not wait by themselves is slowed down
PENALTY_S = 0.25


class Server:
    """`app` over HTTP. With `tokens=False` whoever reaches it may do everything but decide, as the
    user of this process; with None, as long as there is no token."""

    def __init__(self, app: Rhythm, *, tokens: bool | None = True) -> None:
        self.app = app
        self.shares, self.refusals = Shares(app.settings), RefusalLog()
        self.guard = Guard(app, tokens, self.shares)
        self.watcher = Watcher(app)
        self.counts = Counts(self)
        # by the way of those who come in, which others cannot block
        self._probe = DatabaseProbe(app.database.probe)
        app.database.expect_threads(SERVING)
        self._looking: asyncio.Future[list[str]] | None = None
        self._alone, self._api = Router(lifespan=self.lifespan), api()

    @asynccontextmanager
    async def lifespan(self, around: object = None) -> AsyncIterator[None]:
        """For the application that this one is mounted in: streams end with it.
        `FastAPI(lifespan=server.lifespan)`"""
        try:
            yield
        finally:
            self.close()

    def close(self) -> None:
        """Ends the streams. The application is its owner's to close."""
        self.watcher.close()
        self.refusals.close()

    def refused(self, scope: Scope, status: int, code: str) -> None:
        """An attempt was answered with this; those that were refused are told in the log."""
        if status in STATUSES:
            self.refusals.note(scope, self._api.router, status, code)

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document."""
        return document()

    def problems(self) -> list[str]:
        """Why this process is not ready."""
        found = [] if self._probe.answers() else ["the database does not answer"]
        found += ["the watcher of streams gets no answers"] if self.watcher.stale else []
        return [*found, *problems_of(self.app)]

    async def looked_at(self) -> list[str]:
        """`problems`; those who ask at the same time share one look, and one thread, which is
        nobody else's."""
        if self._looking is None:
            self._looking = asyncio.ensure_future(asyncio.to_thread(self.problems))
            self._looking.add_done_callback(lambda looked: setattr(self, "_looking", None))
        return await asyncio.shield(self._looking)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._answer(scope, receive, send)
            case "lifespan":
                await self._alone(scope, receive, send)
            case "websocket":
                await send({"type": "websocket.close", "code": 1008})

    async def _slow_down(self, scope: Scope, response: Response) -> None:
        """Whoever asks too often waits for being told so; and who is nobody in particular must come
        back for more."""
        scope["rhythm.hasty"] = True
        if "rhythm.known" not in scope:
            response.headers["Connection"] = "close"
        await asyncio.sleep(PENALTY_S if "rhythm.known" in scope else 4 * PENALTY_S)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, gone = time.perf_counter(), False

        async def sent(message: Message) -> None:
            nonlocal gone
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", ()),
                    *_HEADERS,
                    *([_TLS] if scope.get("scheme") == "https" else ()),
                ]
                route = getattr(scope.get("route"), "path", "")
                self.counts.request(
                    scope["method"] if route else "",
                    route,
                    message["status"],
                    time.perf_counter() - began,
                )
            try:
                for piece in _pieces(message):
                    # the server itself is to notice first
                    async with asyncio.timeout(2 * self.app.settings.server_write_timeout_s):
                        await send(piece)
            except TimeoutError:
                gone = True
                raise

        scope["rhythm.server"] = self
        with ExitStack() as places:
            try:
                scope["rhythm.asker"] = asker = await self.guard.admit(scope)
                if asker is not None:
                    places.enter_context(self.shares.at_once(asker.who))
            except Exception as refusal:
                response = await problem_response(Request(scope), refusal)
                if response.status_code == 429:
                    await self._slow_down(scope, response)
                return await response(scope, receive, sent)
            scope["rhythm.places"] = places
            try:
                await self._api(scope, receive, sent)
            except Exception:
                if not gone:  # whoever takes nothing is no failure of ours
                    raise


def _pieces(message: Message) -> list[Message]:
    """A message in parts that are not too large: a client that takes no part of an answer is
    noticed, and keeps its place meanwhile."""
    body = message.get("body", b"")
    if message["type"] != "http.response.body" or len(body) <= PIECE:
        return [message]
    parts = [body[begin : begin + PIECE] for begin in range(0, len(body), PIECE)]
    rest = [{**message, "body": part, "more_body": True} for part in parts[:-1]]
    return [*rest, {**message, "body": parts[-1]}]
