"""Runs everything in this folder: a worker with your tasks and workflows, timers and schedules, and
the HTTP API. Loads the code again when a file is changed.

The tasks and workflows are those of app.py (or --app) and of the folder workflows (or that of the
settings, or --workflows). The database is rhythm.db, unless the settings name another one. It
prints a line for each thing that happens, and commands to try.

After a change, tasks that run end with the old code, within the grace period of the settings, and
all that begins has the new code. Executions go on with the workflow that they began with. If the
new code cannot be loaded, the old one goes on.

The API answers this machine only, and to no page of another site. It needs the extra `server`.

On Ctrl-C or SIGTERM tasks may end first; a second Ctrl-C stops at once.

Exit code 0: it was stopped; 2: there is nothing to run.

  rhythm dev
  rhythm dev --app shop.py --workflows flows --port 8200
"""

from __future__ import annotations

import os
import sys
from errno import EADDRINUSE
from socket import socket
from typing import TYPE_CHECKING

from rhythm.cli.command import Arguments, UsageError, command, option
from rhythm.cli.connect import must_be_text, new_application
from rhythm.cli.database import read_settings
from rhythm.cli.options import DATABASE, WORKFLOWS
from rhythm.cli.output import print
from rhythm.cli.serving import HOST
from rhythm.cli.types import FileName, Port

if TYPE_CHECKING:
    from rhythm.cli.dev.generation import Plan

APP = "app.py"
PORT = 8100  # `rhythm server` has 8000
NEXT_PORTS = 50  # that are tried if the port is in use
MAX_BYTES = 200_000  # of a file that may be the one that is meant


@command(__doc__)
@option(
    "--app",
    type=FileName(),
    help=f"a Python file or module with tasks and workflows; else {APP}, if it is there; FILE:NAME "
    f"for the application NAME in it",
)
@WORKFLOWS
@HOST
@option(
    "--port",
    type=Port(),
    default=PORT,
    help="the port of the HTTP API; if it is in use, the next one that is free",
)
@option("--no-reload", is_flag=True, help="do not load files again when they are changed")
@DATABASE
def run(args: Arguments) -> int:
    must_be_text(args)
    app = args.app or (APP if os.path.isfile(APP) else "")
    _refuse(args, app)
    listener = _listener(args)
    plan = _plan(args, app, listener)
    # imported once, for all generations
    from rhythm.app import pooled  # noqa: F401
    from rhythm.cli.dev.lines import Lines
    from rhythm.cli.dev.parent import Parent

    sys.stdout.flush()
    return Parent(plan, Lines()).run()


def _refuse(args: Arguments, app: str) -> None:
    """Raises `UsageError` if there is nothing to run, or it cannot be run like this."""
    if not hasattr(os, "fork"):
        raise UsageError(
            "this system cannot fork processes: use `rhythm worker --app FILE` and `rhythm server`"
        )
    settings = read_settings(args.database)
    if ":memory:" in settings.database_url:
        raise UsageError(
            "no other command could reach a database in memory: name a file, such as "
            "--database sqlite:///rhythm.db"
        )
    if not app and not settings.workflow_paths and not args.workflows:
        raise UsageError(
            f"there is no {APP} and no folder workflows here: `rhythm new .` writes a small "
            f"project{_instead()}"
        )


def _instead() -> str:
    """Returns the advice to name the file that is meant, if one here uses Rhythm."""
    found = [name for name in sorted(os.listdir()) if name.endswith(".py") and _uses_rhythm(name)]
    return (
        f", and `rhythm dev --app {found[0]}` runs {found[0]}"
        if found
        else (", and --app names a file of yours")
    )


def _uses_rhythm(name: str) -> bool:
    try:
        with open(name, encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_BYTES)
    except OSError:
        return False
    return "@rhythm.task" in text or "@rhythm.workflow" in text


def _listener(args: Arguments) -> socket | None:
    """Returns the socket of the HTTP API; None, and a line, if it is not installed."""
    from rhythm.cli.serving import INSTALL, bind, import_uvicorn, is_local, require_token

    try:
        import_uvicorn()
    except UsageError:
        print(f"without the HTTP API, which needs FastAPI and uvicorn: {INSTALL}", flush=True)
        return None
    if not is_local(args.host):
        with new_application(args) as app:
            require_token(app, args.host)
    from rhythm.http import server  # noqa: F401  # once, for all generations

    ports = range(args.port, min(args.port + NEXT_PORTS, 65536))
    for port in ports:
        try:
            bound = bind(args.host, port)
        except OSError as problem:
            if problem.errno == EADDRINUSE and port != ports[-1]:
                continue
            raise UsageError(
                f"nothing can be served on {args.host} port {port}: {problem.strerror}; choose "
                f"another --port or --host"
            ) from problem
        if port != args.port:
            print(f"port {args.port} is in use: taking {port}", flush=True)
        break
    return bound


def _plan(args: Arguments, app: str, listener: socket | None) -> Plan:
    from rhythm.cli.dev.generation import Plan
    from rhythm.cli.serving import url_of

    url = url_of(args.host, listener.getsockname()[1]) if listener else ""
    return Plan(args, app, listener, url, introduces=True)
