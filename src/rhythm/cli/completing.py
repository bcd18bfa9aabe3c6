"""Ids and names from the database that a shell offers while the user types.

It answers quickly or offers nothing, and it never prints an error: a user who presses Tab has not
run a command.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rhythm.cli.database import VARIABLE

if TYPE_CHECKING:
    import click

    from rhythm.app import Rhythm

OFFERED = 50
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

    Returns an empty list if no database is named, or if it does not answer in time.
    """
    url = ctx.params.get("database") or os.environ.get(VARIABLE)
    if not url:
        return []
    try:
        with _at_most(PATIENCE_S):
            return [name for name in _names(kind, url) if name.startswith(incomplete)][:OFFERED]
    except Exception:
        return []


def _names(kind: str, url: str) -> list[str]:
    from rhythm.cli.command import Arguments
    from rhythm.cli.connect import application

    with application(Arguments(database=url)) as app:
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
