"""The tables on SQLite, and their migrations."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

from rhythm.errors import StoreError
from rhythm.store.interfaces.schema import SchemaStore
from rhythm.store.schema import Migration, failed, missing, run_each
from rhythm.store.sqlfile import migrations
from rhythm.store.sqlite.role import SqliteRole
from rhythm.store.sqlite.session import PACKAGE
from rhythm.store.views import with_views_on_sqlite


class SqliteSchema(SqliteRole, SchemaStore):
    def migrations(self) -> list[Migration]:
        found = migrations(PACKAGE)
        newest = found[-1][0]
        return [
            Migration(
                number, name, _script(number, name, with_views_on_sqlite(number, newest, text))
            )
            for number, name, text in found
        ]

    def pending(self) -> list[Migration]:
        return missing(self.migrations(), self.version())

    def migrate(self, on_ran: Callable[[str], None] = lambda name: None) -> list[str]:
        return run_each(self.pending(), self._migrate, on_ran)

    def _migrate(self, migration: Migration) -> bool:
        """Runs a migration. False: another process has run it.

        The write lock is taken first: of many processes one migrates, and the others find it done.
        """
        try:
            with self.db.transaction():
                if migration not in self.pending():
                    return False
                for statement in _statements(migration.sql):
                    self.db.connection.execute(statement)
                return True
        except sqlite3.Error as problem:
            raise failed(migration, problem) from problem

    def version(self) -> int:
        try:
            with self.db.lock:
                if not self.db.connection.execute(
                    "SELECT 1 FROM sqlite_master WHERE name = 'schema_version'"
                ).fetchone():
                    return 0
                return int(
                    self.db.connection.execute(
                        "SELECT coalesce(max(version), 0) FROM schema_version"
                    ).fetchone()[0]
                )
        except sqlite3.Error as problem:
            raise StoreError(
                f"cannot read the SQLite database {self.db.path}: {problem}"
            ) from problem


def _script(number: int, name: str, text: str) -> str:
    """Returns a migration with the statement that records it.

    It uses only SQLite's own functions: ours are missing when it is run by hand.
    """
    now_us = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"
    return (
        "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, name "
        "TEXT NOT NULL, at INTEGER NOT NULL);\n\n"
        f"{text.strip()}\n\nINSERT INTO schema_version (version, name, at) VALUES "
        f"({number}, '{name}', {now_us});\n"
    )


def _statements(script: str) -> Iterator[str]:
    """Splits a script into statements. `executescript` would commit the open transaction first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
