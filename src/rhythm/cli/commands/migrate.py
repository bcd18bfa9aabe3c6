"""Brings a database to the schema that this version of Rhythm needs. Safe to run at any time, and
by many at once."""

from __future__ import annotations

from pathlib import Path

from rhythm.cli.database import DATABASE, database_url
from rhythm.cli.options import Arguments, Option, UsageError
from rhythm.cli.output import print
from rhythm.errors import StoreError

OPTIONS = (
    DATABASE,
    Option("--dry-run", "only say what would run"),
    Option(
        "--dump-sql",
        "print the SQL of every migration, for this kind of database, and connect to none",
    ),
)


def run(args: Arguments) -> int:
    url = database_url(args.database)
    try:
        return _dump(url) if args.dump_sql else _would_run(url) if args.dry_run else _migrate(url)
    except StoreError as problem:
        raise UsageError(str(problem)) from None


def _migrate(url: str) -> int:
    from rhythm.app.database import open_database

    with open_database(url) as database:
        for name in database.migrate():
            print(f"ran {name}")
        print(f"the database is at schema {database.schema_version()}")
    return 0


def _would_run(url: str) -> int:
    from rhythm.app.database import open_database

    new = _is_new_file(url)
    with open_database(_nowhere(url) if new else url, create=False) as database:
        pending = database.migrations() if new else database.pending()
        for migration in pending:
            print(f"would run {migration.name}")
        if not pending:
            print(f"nothing to do: the database is at schema {database.schema_version()}")
    return 0


def _dump(url: str) -> int:
    from rhythm.app.database import open_database

    with open_database(_nowhere(url)) as database:
        for migration in database.migrations():
            print(f"-- {migration.name}\nBEGIN;\n{migration.sql}COMMIT;\n")
    return 0


def _is_new_file(url: str) -> bool:
    """A file that is only looked at is not made."""
    return url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists()


def _nowhere(url: str) -> str:
    """A database of the same kind that opening does not touch; PostgreSQL is not asked before the
    first statement."""
    return "sqlite://:memory:" if url.startswith("sqlite:") else url
