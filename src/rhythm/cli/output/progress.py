"""How far long work is: a bar on standard error, if that is a terminal; else nothing is written."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress


class Report(Protocol):
    """Tells how much of how much is done; `what`: what is done now, if that has changed."""

    def __call__(self, done: int, of: int | None, what: str = "") -> None: ...


@contextmanager
def progress(what: str, total: int | None = None, *, moves: bool = True) -> Iterator[Report]:
    """Shows what is done, and for how long; yields what is to be called when more of it is done.

    The bar goes away when the work is done. Without a total it only shows that something is. One
    that does not move by itself takes no time from what is measured.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda done, of, what="": None
        return
    with _bar(moves) as bar:
        task = bar.add_task(what, total=total, count=_count(0, total))

        def report(done: int, of: int | None, what: str = "") -> None:
            bar.update(
                task,
                completed=done,
                total=of,
                count=_count(done, of),
                description=what or None,
                refresh=not moves,
            )

        yield report


def _count(done: int, total: int | None) -> str:
    return "" if total is None else f"{done:,} of {total:,}"


def _bar(moves: bool) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        auto_refresh=moves,
        transient=True,
        # what is printed meanwhile goes above the bar, but never to another stream
        redirect_stdout=sys.stdout.isatty(),
    )
