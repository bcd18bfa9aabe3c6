"""The HTTP server of `rhythm server` and `rhythm dev`: uvicorn around the application, on a socket.

uvicorn and FastAPI belong to the extra `server`, so they are imported late.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rhythm.cli.command import UsageError, option

if TYPE_CHECKING:
    from socket import socket

    from rhythm.app import Rhythm
    from rhythm.http.connections import Connections

GRACE_S = 10  # for requests that are under way when the server is stopped
BACKLOG = 2048  # connections that wait in the operating system until they are accepted
# Connections that are accepted at a time, before anything else is done. Each is an open file, and
# they are counted only afterwards.
AT_ONCE = 16
# Bytes that the operating system keeps for a slow client. Its own default may be megabytes.
SEND_BUFFER = 256 * 1024
HOST = option(
    "--host",
    metavar="HOST",
    default="127.0.0.1",
    help="the address to listen on; one that others can reach needs a token first",
)
INSTALL = "install Rhythm from its checkout with the extra, pip install -e 'PATH/TO/RHYTHM[server]'"


def import_uvicorn() -> Any:
    """Returns the module uvicorn. `UsageError` if the extra `server` is not installed."""
    try:
        import fastapi  # noqa: F401  # only to see whether it is installed
        import uvicorn
    except ImportError as problem:
        raise UsageError(
            f"the server needs FastAPI and uvicorn: {INSTALL} ({problem})"
        ) from problem
    return uvicorn


def make_server(
    uvicorn: Any,
    app: Rhythm,
    *,
    tokens: bool,
    proxy: str | None = None,
    started: Callable[[int], None] = lambda port: None,
) -> Any:
    """Returns a uvicorn server for the application; its `run([socket])` serves until it is stopped.

    Without `tokens` it answers this machine alone, until the first token is made. `proxy`: the
    address of a proxy whose headers are trusted. `started` is called with the port.
    """
    from rhythm.http import Server
    from rhythm.http.connections import Connections, open_files

    api = Server(app, tokens=tokens or None)
    connections = Connections(app.settings, open_files(), _proxies(proxy), api.refusals.cut)
    # at least a quarter of the connections is kept for ordinary requests
    api.shares.most_streams = min(api.shares.most_streams, connections.most * 3 // 4)

    class Served(uvicorn.Server):  # type: ignore[misc]  # a module that is imported late has no types
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            sockets[0].listen(BACKLOG)
            if self.started:
                started(sockets[0].getsockname()[1])

        async def on_tick(self, counter: int) -> bool:
            connections.check()
            return bool(await super().on_tick(counter))

        async def shutdown(self, sockets: Any = None) -> None:
            api.close()  # streams never end by themselves, and the shutdown would wait for them
            await super().shutdown(sockets)

    return Served(_config(uvicorn, proxy, api, connections))


def bind(host: str, port: int) -> socket:
    """Returns a socket that listens on this address. `OSError` if that cannot be had."""
    from socket import AF_INET, AF_INET6, SO_SNDBUF, SOL_SOCKET, create_server

    bound = create_server(
        (host, port), family=AF_INET6 if ":" in host else AF_INET, backlog=BACKLOG
    )
    bound.setsockopt(SOL_SOCKET, SO_SNDBUF, SEND_BUFFER)
    return bound


def url_of(host: str, port: int) -> str:
    """Returns the URL of the API on this address."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/api/v1"


def require_token(app: Rhythm, host: str) -> None:
    """Raises `UsageError` if others can reach this address, and there is no valid token."""
    if not is_local(host) and not any(token.status == "active" for token in app.tokens()):
        raise UsageError(
            f"{host} can be reached from elsewhere, and there is no valid token: make "
            "one first, `rhythm token create NAME --role admin`, or listen on this machine "
            "only (--host 127.0.0.1)"
        )


def is_local(host: str) -> bool:
    """Returns whether only this machine can reach the address. `UsageError` if it is not valid."""
    import ipaddress
    import socket

    try:
        found = {address[4][0] for address in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError) as problem:
        raise UsageError(f"--host {host} is no address of this machine: {problem}") from problem
    return all(
        ipaddress.ip_address(str(address).partition("%")[0]).is_loopback for address in found
    )


def _proxies(proxy: str | None) -> tuple[str, ...]:
    return tuple(each.strip() for each in (proxy or "").split(",") if each.strip())


def _config(uvicorn: Any, proxy: str | None, api: Any, connections: Connections) -> Any:
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    proxied = (
        {"proxy_headers": True, "forwarded_allow_ips": proxy} if proxy else {"proxy_headers": False}
    )
    own = {
        "http": connections.protocol(AutoHTTPProtocol),
        "ws": "none",
        "log_config": None,
        "access_log": False,
        "server_header": False,
    }
    return uvicorn.Config(api, timeout_graceful_shutdown=GRACE_S, backlog=AT_ONCE, **own, **proxied)
