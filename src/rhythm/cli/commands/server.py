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
from rhythm.cli.serving import HOST
from rhythm.cli.types import Port

if TYPE_CHECKING:
    from rhythm.app import Rhythm

# How long a thread computes before another may run. A request needs several switches, and other
# threads may compute for long.
SWITCH_S = 0.001


@command(__doc__)
@HOST
@option("--port", type=Port(), default=8000, help="the port to listen on; 0: any free port")
@option(
    "--proxy",
    metavar="ADDRESS",
    help="the address of a proxy whose X-Forwarded headers are trusted",
)
@DATABASE
def run(args: Arguments) -> int:
    from rhythm.cli.serving import import_uvicorn, require_token

    uvicorn = import_uvicorn()
    with new_application(args) as app:
        known = bool(app.tokens())
        if args.proxy and not known:
            raise UsageError(
                "through a proxy others come in, and there is no token yet: make one "
                "first, `rhythm token create NAME --role admin`"
            )
        require_token(app, args.host)
        return _serve(uvicorn, args, app, known)


def _serve(uvicorn: Any, args: Arguments, app: Rhythm, tokens: bool) -> int:
    import signal

    from rhythm.cli.serving import bind, make_server

    _log()
    sys.setswitchinterval(SWITCH_S)
    # uvicorn handles these signals itself, and raises them again at its end: ignore them then
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: None)
    try:
        bound = bind(args.host, args.port)
    except OSError as problem:
        raise UsageError(
            f"nothing can be served on {args.host} port {args.port}: {problem.strerror}; choose "
            f"another --port or --host"
        ) from problem
    with bound:
        served = make_server(
            uvicorn,
            app,
            tokens=tokens,
            proxy=args.proxy,
            started=lambda port: _say(_introduction(args.host, port, app, tokens)),
        )
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


def _introduction(host: str, port: int, app: Rhythm, tokens: bool) -> str:
    from rhythm.cli.serving import url_of
    from rhythm.settings import show_url

    who = (
        "for those who have a token"
        if tokens
        else "for everyone on this machine, as there is no token yet"
    )
    return f"serving {url_of(host, port)} {who}, on {show_url(app.settings.database_url)}"


def _say(text: str) -> None:
    print(f"rhythm: {text}", file=sys.stderr, flush=True)
