"""A progress bar for long work, on standard error; nothing is written if that is not a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress


class Report(Protocol):
    """Updates the bar: `done` of `of` is done. `of` None: the total is not known.

    `what` is the new description of the work, if it has changed.
    """

    def __call__(self, done: int, of: int | None, what: str = "") -> None: ...


@contextmanager
def progress(what: str, total: int | None = None, *, moves: bool = True) -> Iterator[Report]:
    """Shows a progress bar during the block. Yields a function to call when more is done.

    The bar shows what is done and for how long, and disappears at the end. Without a total it only
    shows that something is being done. `moves` False: the bar is drawn only when the function is
    called, so that it takes no time from work that is measured.
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
        # Output on standard output appears above the bar if both are the terminal. If standard
        # output is not one, it is left alone: rich would write it to standard error.
        redirect_stdout=sys.stdout.isatty(),
    )
