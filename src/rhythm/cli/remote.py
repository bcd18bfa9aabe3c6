"""The server that a command asks in place of a database: which it is, and what it cannot do there.

It is the URL of --server, else of RHYTHM_SERVER. A command that has no --server works on the
database or on files, and `WITHOUT_SERVER` says why.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from rhythm.cli.command import Arguments, UsageError
from rhythm.cli.database import SERVER, VARIABLE

if TYPE_CHECKING:
    from rhythm.app import Rhythm

# Commands that ask no server, and why. What is not here has --server.
WITHOUT_SERVER = {
    **dict.fromkeys(
        ("new", "check", "fmt", "listing", "convert"),
        "it works on files of this machine",
    ),
    "graph": "it works on files of this machine; for --id give --database",
    "dev": "it runs everything on this machine, on a database of its own",
    "run": "it runs the workflow in this process; `rhythm start` starts it on a server",
    "token": "only who has the database makes and changes tokens: give --database",
    "audit export": "it reads the audit as it is stored: give --database",
    "migrate": "it changes the tables of a database: give --database",
    "doctor": "it reads all of a database: give --database",
    "worker": "a worker works on the database itself: give --database",
    "server": "it is the server, and works on a database: give --database",
    **dict.fromkeys(("help", "completion"), "it asks nothing"),
}


def server_of(args: Arguments) -> str | None:
    """Returns the URL of the server that a command asks; None if it works on a database.

    `UsageError` if it is not clear which of them is meant.
    """
    if not hasattr(args, "server"):
        return None
    if args.server is not None and args.database is not None:
        raise UsageError("give --server or --database, not both")
    if args.server is not None:
        return str(args.server)
    named = os.environ.get(SERVER) if args.database is None else None
    if named and os.environ.get(VARIABLE):
        raise UsageError(
            f"the variables {SERVER} and {VARIABLE} are both set: say which is meant, with "
            f"--server or --database"
        )
    if not named and args.token_file is not None:
        raise UsageError(f"--token-file goes with --server, or with the variable {SERVER}")
    return named or None


def without_server(command: str, option: str) -> str:
    """Returns why a command, such as `rhythm doctor`, has no --server; empty if it has one."""
    _, _, name = command.partition(" ")
    keys = (name, name.partition(" ")[0])
    why = next((WITHOUT_SERVER[key] for key in keys if key in WITHOUT_SERVER), "")
    return f"`{command}` asks no server, so it has no {option}: {why}" if why else ""


def remote_application(args: Arguments, url: str) -> Rhythm:
    """Returns the application of a server, which has all that commands ask of one."""
    from rhythm.remote.application import open_server

    if getattr(args, "by", None) is not None:
        raise UsageError(
            "--by is for a database: on a server the owner of the token acts, under the name "
            "of the token"
        )
    return cast("Rhythm", open_server(url, args.token_file, os.environ))


def refuse_on_server(args: Arguments, **given: str) -> None:
    """Raises `UsageError` if a command asks a server and has an option that needs the database.

    `given`: what to say about each of these options.
    """
    if server_of(args) is None:
        return
    for name, why in given.items():
        if getattr(args, name):
            raise UsageError(f"--{name.replace('_', '-')} needs the database: {why}")
