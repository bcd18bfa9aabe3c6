"""The application that a command works with, on its database or a server; every failure to open it
is one line.

A command that reads or changes something works on a database that exists: it creates no file and no
table, and registers nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from rhythm.cli.command import Arguments, Run, UsageError
from rhythm.cli.database import read_settings
from rhythm.cli.remote import remote_application, server_of

if TYPE_CHECKING:
    from rhythm.app import ExecutionView, Rhythm

T = TypeVar("T")
FIRST_WAIT_S, LONGEST_WAIT_S = 0.25, 5.0  # between two attempts to reach the database
RECENT = 100  # executions whose ids are suggested for an unknown id
# how similar a suggested id must be: ids of the same hour have the same first half
ALIKE = 0.85


@contextmanager
def application(args: Arguments) -> Iterator[Rhythm]:
    """Yields the application: on a server, or on a database that exists and has the current schema.

    Otherwise it raises: `StoreError` if the database is missing, out of date or refuses,
    `ServerError` if the server cannot be used, `UsageError` for a value that is not valid.
    """
    with refusals(args):
        if (server := server_of(args)) is not None:
            with remote_application(args, server) as app:
                yield app
            return
        from rhythm.app.database import open_database

        settings = read_settings(args.database)
        _must_exist(settings.database_url)
        with open_database(settings.database_url, create=False) as database:
            _must_be_current(database.pending(), database.schema_version())
            with database.application(settings.database_url) as app:
                yield app


def once_answered(
    call: Callable[[], T], wait: Callable[[float], object], say: Callable[[str], object]
) -> T:
    """Returns the result of a call, as soon as the database answers.

    Until then it says why not, and calls `wait` with the seconds between two attempts.
    """
    from rhythm.errors import Unavailable

    wait_s, said = FIRST_WAIT_S, ""
    while True:
        try:
            return call()
        except (Unavailable, UsageError) as problem:
            cause = problem if isinstance(problem, Unavailable) else problem.__cause__
            if not isinstance(cause, Unavailable):
                raise
        if str(cause) != said:
            said = str(cause)
            say(f"waiting for the database: {' '.join(said.split())}")
        wait(wait_s)
        wait_s = min(2 * wait_s, LONGEST_WAIT_S)


def on_database(act: Callable[[Rhythm, Arguments], object]) -> Run:
    """Makes a function of an application and its arguments the function of a command.

    The command opens the application, and its exit code is 0.
    """

    @wraps(act)  # also copies the options and arguments that were declared for it
    def run(args: Arguments) -> int:
        with application(args) as app:
            act(app, args)
        return 0

    return run


@contextmanager
def new_application(args: Arguments) -> Iterator[Rhythm]:
    """Yields the application: on a server, or on a database that is created and migrated if
    necessary."""
    with refusals(args):
        if (server := server_of(args)) is not None:
            with remote_application(args, server) as app:
                yield app
            return
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
            f"there is no database {path} here; `rhythm dev` or `rhythm start` makes "
            f"one, or give --database"
        )


def _must_be_current(pending: list[Any], version: int) -> None:
    from rhythm.errors import StoreError

    if pending:
        what = "is not up to date" if version else "has no tables of Rhythm yet"
        raise StoreError(f"the database {what}: run `rhythm migrate`, or give another --database")


@contextmanager
def refusals(args: Arguments) -> Iterator[None]:
    """Turns what the application and the database drivers raise into errors of the command line.

    A `ValueError` and inputs that do not fit become a `UsageError`, an error of a driver a
    `StoreError`. First it checks that all arguments are text that can be stored.
    """
    from rhythm.errors import InvalidInputs, StoreError

    must_be_text(args)
    try:
        yield
    except (ValueError, InvalidInputs) as problem:
        raise UsageError(str(problem)) from problem
    except Exception as problem:
        if not _of_a_driver(problem):
            raise
        raise StoreError(f"the database refused: {' '.join(str(problem).split())}") from problem


def _of_a_driver(problem: Exception) -> bool:
    """Returns whether a database driver raised this.

    Only drivers that are imported are asked: another one cannot have raised it.
    """
    drivers = [sys.modules[name].Error for name in ("sqlite3", "psycopg") if name in sys.modules]
    return isinstance(problem, tuple(drivers))


def must_be_text(args: Arguments) -> None:
    """Raises `UsageError` if an argument has text that no database can store.

    That is NUL, and surrogates: Python reads bytes of the command line that are not UTF-8 as such
    halves of characters.
    """
    for name, value in vars(args).items():
        for text in _texts(value):
            if "\0" in text or (
                not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text)
            ):
                raise UsageError(
                    f"{name.replace('_', '-')}: {text!r:.80} is not a text that can be stored"
                )


def _texts(value: Any) -> Iterator[str]:
    """Yields the texts of an argument: of a single value, of several, or of pairs."""
    if isinstance(value, str):
        yield value
    for part in value if isinstance(value, tuple) else ():
        yield from _texts(part)


def find_workflow(app: Rhythm, id: str) -> ExecutionView:
    """Returns the execution of a workflow. `UsageError` if the id is a task's."""
    execution = find(app, id)
    if execution.type == "task":
        of = f"; {execution.parent_id} is its workflow" if execution.parent_id else ""
        raise UsageError(f"{id} is a task, and this is for workflows{of}")
    return execution


def find(app: Rhythm, id: str) -> ExecutionView:
    """Returns the execution of this id.

    `UnknownExecution` if there is none; the message suggests an id that is nearly the same.
    """
    from rhythm.errors import UnknownExecution
    from rhythm.suggest import nearest

    try:
        return app.get(id)
    except UnknownExecution:
        near = nearest(id, [execution.id for execution in app.list(limit=RECENT)], ALIKE)
    what = f"did you mean {near}?" if near else "`rhythm list` shows those that there are"
    raise UnknownExecution(f"there is no execution {id!r}; {what}")
