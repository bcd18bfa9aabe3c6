"""A server that listens, in a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


@contextmanager
def serving(application: Any, host: str = "127.0.0.1") -> Iterator[str]:
    """The URL under which an ASGI application answers."""
    server = uvicorn.Server(
        uvicorn.Config(application, host, 0, log_level="error", timeout_graceful_shutdown=5)
    )
    started = threading.Event()
    startup = server.startup

    async def told(*args: Any, **kwargs: Any) -> None:
        await startup(*args, **kwargs)
        started.set()

    server.startup = told
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert started.wait(120)
    try:
        yield f"http://{host}:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(120)
