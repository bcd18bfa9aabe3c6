"""How far long work is: a bar on standard error, if that is a terminal; else nothing is written."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

Tell = Callable[[int, int | None], None]


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Tell]:
    """Shows what is done, and for how long; call what it yields with how much of how much is done.

    The bar goes away when the work is done. Without a total it only shows that something is.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda done, of: None
        return
    with _bar() as bar:
        task = bar.add_task(what, total=total, count=_count(0, total))
        yield lambda done, of: bar.update(task, completed=done, total=of, count=_count(done, of))


def _count(done: int, total: int | None) -> str:
    return "" if total is None else f"{done:,} of {total:,}"


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        # what is printed meanwhile goes above the bar, but never to another stream
        redirect_stdout=sys.stdout.isatty(),
    )
