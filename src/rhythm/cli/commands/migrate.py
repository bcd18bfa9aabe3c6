"""Creates or updates the tables of a database for this version of Rhythm.

It is safe to run at any time, and by several processes at once.
"""

from __future__ import annotations

import itertools
from pathlib import Path

from rhythm.app.database import open_database
from rhythm.cli.command import Arguments, UsageError, command, option
from rhythm.cli.database import database_url
from rhythm.cli.options import DATABASE
from rhythm.cli.output import print
from rhythm.cli.output.progress import progress
from rhythm.errors import StoreError


@command(__doc__)
@DATABASE
@option("--dry-run", is_flag=True, help="change nothing; only say which migrations would run")
@option(
    "--dump-sql",
    is_flag=True,
    help="print the SQL of all migrations for this kind of database, without connecting",
)
def run(args: Arguments) -> int:
    url = database_url(args.database)
    try:
        return _dump(url) if args.dump_sql else _would_run(url) if args.dry_run else _migrate(url)
    except StoreError as problem:
        raise UsageError(str(problem)) from None


def _migrate(url: str) -> int:
    with open_database(url) as database:
        pending, done = len(database.pending()), itertools.count(1)
        with progress("migrating", pending) as report:
            ran = database.migrate(lambda name: report(next(done), pending, name))
        for name in ran:
            print(f"ran {name}")
        print(f"the database is at schema {database.schema_version()}")
    return 0


def _would_run(url: str) -> int:
    new = _is_new_file(url)
    with open_database(_nowhere(url) if new else url, create=False) as database:
        pending = database.migrations() if new else database.pending()
        for migration in pending:
            print(f"would run {migration.name}")
        if not pending:
            print(f"nothing to do: the database is at schema {database.schema_version()}")
    return 0


def _dump(url: str) -> int:
    with open_database(_nowhere(url)) as database:
        for migration in database.migrations():
            print(f"-- {migration.name}\nBEGIN;\n{migration.sql}COMMIT;\n")
    return 0


def _is_new_file(url: str) -> bool:
    """Returns whether the SQLite file does not exist yet; then --dry-run must not create it."""
    return url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists()


def _nowhere(url: str) -> str:
    """Returns the URL of a database of the same kind that is not touched when it is opened.

    For SQLite that is one in memory. PostgreSQL is not contacted before the first statement.
    """
    return "sqlite://:memory:" if url.startswith("sqlite:") else url
