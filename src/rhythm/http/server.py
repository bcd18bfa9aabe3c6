"""The server: an ASGI application around one `Rhythm`, to be run by `rhythm server` or mounted in an application of yours.

The routes are built once for each process and know no application: a request brings its own along. Around them is what every request
goes through: the guard, the headers of every answer, and the count.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import Request
from starlette.routing import Router
from starlette.types import Message, Receive, Scope, Send

from rhythm.app import Rhythm
from rhythm.http.api import api, document
from rhythm.http.guard import Guard
from rhythm.http.health import Counts, Probe, problems_of
from rhythm.http.problems import told
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


class Server:
    """`app` over HTTP. With `tokens=False` whoever reaches it may do everything but decide, as the user of this process; with None, as
    long as there is no token."""

    def __init__(self, app: Rhythm, *, tokens: bool | None = True) -> None:
        self.app = app
        self.guard, self.watcher, self.counts = Guard(app, tokens), Watcher(app), Counts(self)
        self._probe = Probe(app.store.schema_version)
        self._alone, self._api = Router(lifespan=self.lifespan), api()

    @asynccontextmanager
    async def lifespan(self, around: object = None) -> AsyncIterator[None]:
        """For the application that this one is mounted in: streams end with it. `FastAPI(lifespan=server.lifespan)`"""
        try:
            yield
        finally:
            self.close()

    def close(self) -> None:
        """Ends the streams. The application is its owner's to close."""
        self.watcher.close()

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document."""
        return document()

    def problems(self) -> list[str]:
        """Why this process is not ready."""
        found = [] if self._probe.answers() else ["the database does not answer"]
        found += ["the watcher of streams gets no answers"] if self.watcher.stale else []
        return [*found, *problems_of(self.app)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._answer(scope, receive, send)
            case "lifespan":
                await self._alone(scope, receive, send)
            case "websocket":
                await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS, *([_TLS] if scope.get("scheme") == "https" else ())]
                route = getattr(scope.get("route"), "path", "")
                self.counts.request(scope["method"] if route else "", route, message["status"], time.perf_counter() - began)
            await send(message)

        scope["rhythm.server"] = self
        try:
            scope["rhythm.asker"] = await self.guard.admit(scope)
        except Exception as refusal:
            response = await told(Request(scope), refusal)
            return await response(scope, receive, sent)
        await self._api(scope, receive, sent)
