"""Ids and names from the database, or a server, that a shell offers while the user types.

It answers quickly or offers nothing, and it never prints an error: a user who presses Tab has not
run a command.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rhythm.cli.database import SERVER, VARIABLE

if TYPE_CHECKING:
    import click

    from rhythm.app import Rhythm

OFFERED = 50
WHERE = ("database", "server", "token_file")
PATIENCE_S = 1.0  # how long to wait for the database
NAMES: dict[str, Callable[[Rhythm], Iterable[str]]] = {
    "executions": lambda app: (each.id for each in app.list(limit=OFFERED)),
    "workflows": lambda app: (each.name for each in app.workflows()),
    "queues": lambda app: (each.name for each in app.queues()),
    "schedules": lambda app: (each.name for each in app.schedules(brief=True)),
    "approvals": lambda app: (each.id for each in app.approvals(limit=OFFERED)),
    "tokens": lambda app: (each.id for each in app.tokens()),
}


def known(kind: str, ctx: click.Context, incomplete: str) -> list[str]:
    """Returns the names of this kind that begin with `incomplete`.

    Returns an empty list if no database and no server is named, or if it does not answer in time.
    """
    given = {
        param.name: ctx.params.get(param.name)
        for param in ctx.command.params
        if param.name in WHERE
    }
    named = {VARIABLE: True, SERVER: "server" in given}  # whether the command reads the variable
    if not any(given.values()) and not any(read and os.environ.get(v) for v, read in named.items()):
        return []
    try:
        with _at_most(PATIENCE_S):
            return [name for name in _names(kind, given) if name.startswith(incomplete)][:OFFERED]
    except Exception:
        return []


def _names(kind: str, given: dict[str, Any]) -> list[str]:
    from rhythm.cli.command import Arguments
    from rhythm.cli.connect import application

    with application(Arguments(**given)) as app:
        return [name for name in NAMES[kind](app) if name.isprintable() and not set(name) & {","}]


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Stops the block with a `TimeoutError` if it takes longer than this."""

    def give_up(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
