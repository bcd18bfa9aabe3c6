"""The server: an ASGI application around one `Rhythm`, run by `rhythm server` or mounted in an
application of yours.

The routes are built once for each process and do not know an application: each request brings its
own along. Around them is what every request passes: the guard, the headers of every answer, and the
metrics.
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
from rhythm.http.deciding import Deciding
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
SERVING = 8  # threads that may ask the database at the same time
PIECE = 64 * 1024  # bytes of an answer that the client must take before more are sent
# How long the answer 429 is delayed: a client that does not wait by itself is slowed down.
PENALTY_S = 0.25


class Server:
    """`app` over HTTP, as an ASGI application.

    With `tokens=False`, everyone who reaches it may do everything except decide approvals, as the
    user of this process. With None, that holds as long as there is no token, and only for requests
    from this machine.
    """

    def __init__(self, app: Rhythm, *, tokens: bool | None = True) -> None:
        self.app = app
        self.shares, self.refusals = Shares(app.settings), RefusalLog()
        self.guard = Guard(app, tokens, self.shares)
        self.deciding = Deciding(app)
        self.watcher = Watcher(app)
        self.counts = Counts(self)
        # It asks as the guard does, on a connection that other requests cannot block.
        self._probe = DatabaseProbe(app.database.probe)
        app.database.expect_threads(SERVING)
        self._looking: asyncio.Future[list[str]] | None = None
        self._alone, self._api = Router(lifespan=self.lifespan), api()

    @asynccontextmanager
    async def lifespan(self, around: object = None) -> AsyncIterator[None]:
        """Ends the streams when the application stops in which this one is mounted.

        Give it to that application: `FastAPI(lifespan=server.lifespan)`.
        """
        try:
            yield
        finally:
            self.close()

    def close(self) -> None:
        """Ends the streams. It does not close the `Rhythm`: its owner does."""
        self.watcher.close()
        self.refusals.close()

    def refused(self, scope: Scope, status: int, code: str) -> None:
        """Logs an answer with this status and code, if it is a refusal."""
        if status in STATUSES:
            self.refusals.note(scope, self._api.router, status, code)

    def openapi(self) -> dict[str, Any]:
        """Returns the OpenAPI document."""
        return document()

    def problems(self) -> list[str]:
        """Returns why this process is not ready; empty if it is."""
        found = [] if self._probe.answers() else ["the database does not answer"]
        found += ["the watcher of streams gets no answers"] if self.watcher.stale else []
        return [*found, *problems_of(self.app)]

    async def looked_at(self) -> list[str]:
        """Returns `problems`.

        Callers that ask at the same time share one check, in its own thread.
        """
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
        """Delays the answer to a client that asks too often.

        If it has no token that was valid before, its connection is closed, too, so that it must
        connect again.
        """
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
                    # Twice the timeout, so that `rhythm server` itself notices first.
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
                if not gone:  # a client that does not take its answer is no error of the server
                    raise


def _pieces(message: Message) -> list[Message]:
    """Returns a message in pieces of limited size.

    So a client that takes no part of an answer is noticed, and keeps its place among the requests
    meanwhile.
    """
    body = message.get("body", b"")
    if message["type"] != "http.response.body" or len(body) <= PIECE:
        return [message]
    parts = [body[begin : begin + PIECE] for begin in range(0, len(body), PIECE)]
    rest = [{**message, "body": part, "more_body": True} for part in parts[:-1]]
    return [*rest, {**message, "body": parts[-1]}]
