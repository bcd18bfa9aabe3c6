"""The application that a command works with, on the database it was told; every way in which that
can go wrong is one line.

A command that asks or changes something finds its database: it makes no file, no table, and
registers nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

from rhythm.cli.command import Arguments, Run, UsageError
from rhythm.cli.database import read_settings

if TYPE_CHECKING:
    from rhythm.app import ExecutionView, Rhythm

RECENT = 100  # executions among which an id that nobody has may be meant
ALIKE = 0.85  # ids of the same hour are alike in their first half


@contextmanager
def application(args: Arguments) -> Iterator[Rhythm]:
    """The application on a database that is there already."""
    with refusals(args):
        from rhythm.app.database import open_database

        settings = read_settings(args.database)
        _must_exist(settings.database_url)
        with open_database(settings.database_url, create=False) as database:
            _must_be_current(database.pending(), database.schema_version())
            with database.application(settings.database_url) as app:
                yield app


def on_database(act: Callable[[Rhythm, Arguments], object]) -> Run:
    """Makes what is done with an application the function of a command; its exit code is 0."""

    @wraps(act)  # with what the command takes
    def run(args: Arguments) -> int:
        with application(args) as app:
            act(app, args)
        return 0

    return run


@contextmanager
def new_application(args: Arguments) -> Iterator[Rhythm]:
    """The application on a database that is made and migrated if need be."""
    with refusals(args):
        from rhythm.app import Rhythm

        settings = read_settings(args.database)
        with Rhythm(settings.database_url, (), auto_migrate=settings.auto_migrate) as app:
            yield app


def _must_exist(url: str) -> None:
    from rhythm.errors import StoreError

    path = url.removeprefix("sqlite:///")
    folder = os.path.dirname(path) or "."
    if (
        path != url
        and path
        and "?" not in path
        and os.path.isdir(folder)
        and not os.path.exists(path)
    ):
        raise StoreError(
            f"there is no database {path} here; `rhythm start` or `rhythm worker` makes "
            f"one, or give --database"
        )


def _must_be_current(pending: list[Any], version: int) -> None:
    from rhythm.errors import StoreError

    if pending:
        what = "is not up to date" if version else "has no tables of Rhythm yet"
        raise StoreError(
            f"the database {what}; `rhythm migrate` brings them, or give another --database"
        )


@contextmanager
def refusals(args: Arguments) -> Iterator[None]:
    """What the application and the drivers refuse, in the words of the command line."""
    from rhythm.errors import StoreError

    must_be_text(args)
    try:
        yield
    except ValueError as problem:
        raise UsageError(str(problem)) from problem
    except Exception as problem:
        if not _of_a_driver(problem):
            raise
        raise StoreError(f"the database refused: {' '.join(str(problem).split())}") from problem


def _of_a_driver(problem: Exception) -> bool:
    """Only a driver that was imported can have raised it."""
    drivers = [sys.modules[name].Error for name in ("sqlite3", "psycopg") if name in sys.modules]
    return isinstance(problem, tuple(drivers))


def must_be_text(args: Arguments) -> None:
    """Bytes that are no UTF-8 arrive as halves of characters, which no database takes; NUL
    neither."""
    for name, value in vars(args).items():
        for text in _texts(value):
            if "\0" in text or (
                not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text)
            ):
                raise UsageError(
                    f"{name.replace('_', '-')}: {text!r:.80} is not a text that can be stored"
                )


def _texts(value: Any) -> Iterator[str]:
    """The texts of an argument, which may be several, or pairs."""
    if isinstance(value, str):
        yield value
    for part in value if isinstance(value, tuple) else ():
        yield from _texts(part)


def find_workflow(app: Rhythm, id: str) -> ExecutionView:
    """The execution, for what only a workflow can be told."""
    execution = find(app, id)
    if execution.type == "task":
        of = f"; {execution.parent_id} is its workflow" if execution.parent_id else ""
        raise UsageError(f"{id} is a task, and this is for workflows{of}")
    return execution


def find(app: Rhythm, id: str) -> ExecutionView:
    """The execution; `UnknownExecution` that says which one may have been meant."""
    from rhythm.errors import UnknownExecution
    from rhythm.suggest import nearest

    try:
        return app.get(id)
    except UnknownExecution:
        near = nearest(id, [execution.id for execution in app.list(limit=RECENT)], ALIKE)
    what = f"did you mean {near}?" if near else "`rhythm list` shows those that there are"
    raise UnknownExecution(f"there is no execution {id!r}; {what}")
