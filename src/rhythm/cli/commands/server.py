"""Serves the HTTP API of a database: /api/v1, /healthz, /readyz and /metrics. It runs no tasks:
workers do.

Callers need a token (`rhythm token create`). As long as there is no token, the server listens on
this machine only (127.0.0.1), and everybody on this machine may do everything, as the user that the
server runs as. It speaks plain HTTP: put a proxy with TLS in front of it.

On SIGTERM or Ctrl-C it answers the requests that are under way, ends streams, and stops.

Exit code 0: it was stopped; 2: it could not begin.

  rhythm server
  rhythm server --host 0.0.0.0 --port 8000 --database postgresql://user@host/database
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rhythm.cli.command import Arguments, UsageError, command, option
from rhythm.cli.connect import new_application
from rhythm.cli.options import DATABASE
from rhythm.cli.output import print
from rhythm.cli.types import Whole

if TYPE_CHECKING:
    from socket import socket

    from rhythm.app import Rhythm
    from rhythm.http.connections import Connections

GRACE_S = 10  # for requests that are under way when the server is stopped
# How long a thread computes before another may run. A request needs several switches, and other
# threads may compute for long.
SWITCH_S = 0.001
BACKLOG = 2048  # connections that wait in the operating system until they are accepted
# Connections that are accepted at a time, before anything else is done. Each is an open file, and
# they are counted only afterwards.
AT_ONCE = 16
# Bytes that the operating system keeps for a slow client. Its own default may be megabytes.
SEND_BUFFER = 256 * 1024


@command(__doc__)
@option(
    "--host",
    metavar="HOST",
    default="127.0.0.1",
    help="the address to listen on; one that others can reach needs a token first",
)
@option(
    "--port",
    type=Whole("a number from 0 to 65535", most=65535),
    metavar="PORT",
    default=8000,
    help="the port to listen on; 0: any free port",
)
@option(
    "--proxy",
    metavar="ADDRESS",
    help="the address of a proxy whose X-Forwarded headers are trusted",
)
@DATABASE
def run(args: Arguments) -> int:
    uvicorn = _uvicorn()
    with new_application(args) as app:
        known = app.tokens()
        if args.proxy and not known:
            raise UsageError(
                "through a proxy others come in, and there is no token yet: make one "
                "first, `rhythm token create NAME --role admin`"
            )
        if not is_local(args.host) and not any(token.status == "active" for token in known):
            raise UsageError(
                f"{args.host} can be reached from elsewhere, and there is no valid token: make "
                "one first, `rhythm token create NAME --role admin`, or listen on this machine "
                "only (--host 127.0.0.1)"
            )
        return _serve(uvicorn, args, app, bool(known))


def _uvicorn() -> Any:
    try:
        import fastapi  # noqa: F401  # only to see whether it is installed
        import uvicorn
    except ImportError as problem:
        what = (
            "install Rhythm from its checkout with the extra, pip install -e "
            "'PATH/TO/RHYTHM[server]'"
        )
        raise UsageError(f"the server needs FastAPI and uvicorn: {what} ({problem})") from problem
    return uvicorn


def _serve(uvicorn: Any, args: Arguments, app: Rhythm, tokens: bool) -> int:
    import signal

    from rhythm.http import Server
    from rhythm.http.connections import Connections, open_files

    _log()
    sys.setswitchinterval(SWITCH_S)
    api = Server(app, tokens=tokens or None)
    connections = Connections(app.settings, open_files(), _proxies(args), api.refusals.cut)
    # at least a quarter of the connections is kept for ordinary requests
    api.shares.most_streams = min(api.shares.most_streams, connections.most * 3 // 4)

    class Served(uvicorn.Server):  # type: ignore[misc]  # a module that is imported late has no types
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            sockets[0].listen(BACKLOG)
            if self.started:
                _say(_introduction(args.host, sockets[0].getsockname()[1], app, tokens))

        async def on_tick(self, counter: int) -> bool:
            connections.check()
            return bool(await super().on_tick(counter))

        async def shutdown(self, sockets: Any = None) -> None:
            api.close()  # streams never end by themselves, and the shutdown would wait for them
            await super().shutdown(sockets)

    # uvicorn handles these signals itself, and raises them again at its end: ignore them then
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: None)
    with _bound(args.host, args.port) as bound:
        served = Served(_config(uvicorn, args, api, connections))
        served.run([bound])
    return 0 if served.started else 1


def _log() -> None:
    """Sends log events to standard error, as a worker does.

    Messages of uvicorn below the level of an error are left out, such as those on data that is not
    a valid request: anybody can send much of that.
    """
    import logging

    from rhythm.worker.logs import TextFormatter

    handler = logging.StreamHandler()
    handler.setFormatter(TextFormatter())
    logging.getLogger().handlers = [handler]
    logging.getLogger("rhythm").setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


def _proxies(args: Arguments) -> tuple[str, ...]:
    return tuple(each.strip() for each in (args.proxy or "").split(",") if each.strip())


def _bound(host: str, port: int) -> socket:
    from socket import AF_INET, AF_INET6, SO_SNDBUF, SOL_SOCKET, create_server

    try:
        bound = create_server(
            (host, port), family=AF_INET6 if ":" in host else AF_INET, backlog=BACKLOG
        )
        bound.setsockopt(SOL_SOCKET, SO_SNDBUF, SEND_BUFFER)
        return bound
    except OSError as problem:
        raise UsageError(
            f"nothing can be served on {host} port {port}: {problem.strerror}; choose "
            f"another --port or --host"
        ) from problem


def _config(uvicorn: Any, args: Arguments, api: Any, connections: Connections) -> Any:
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    proxied = (
        {"proxy_headers": True, "forwarded_allow_ips": args.proxy}
        if args.proxy
        else {"proxy_headers": False}
    )
    own = {
        "http": connections.protocol(AutoHTTPProtocol),
        "ws": "none",
        "log_config": None,
        "access_log": False,
        "server_header": False,
    }
    return uvicorn.Config(api, timeout_graceful_shutdown=GRACE_S, backlog=AT_ONCE, **own, **proxied)


def _introduction(host: str, port: int, app: Rhythm, tokens: bool) -> str:
    from rhythm.settings import show_url

    who = (
        "for those who have a token"
        if tokens
        else "for everyone on this machine, as there is no token yet"
    )
    place = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    return f"serving {place}/api/v1 {who}, on {show_url(app.settings.database_url)}"


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


def _say(text: str) -> None:
    print(f"rhythm: {text}", file=sys.stderr, flush=True)
