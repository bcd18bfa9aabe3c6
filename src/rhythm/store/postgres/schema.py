"""The tables on PostgreSQL, and the migrations that create them."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
from psycopg import sql

from rhythm.errors import StoreError
from rhythm.store.interfaces.schema import SchemaStore
from rhythm.store.postgres.connection import PACKAGE
from rhythm.store.postgres.role import PostgresRole
from rhythm.store.postgres.session import autocommit, transaction
from rhythm.store.schema import Migration, failed, missing, run_each
from rhythm.store.sqlfile import migrations
from rhythm.store.views import with_views_on_postgres


class PostgresSchema(PostgresRole, SchemaStore):
    def migrations(self) -> list[Migration]:
        found = migrations(PACKAGE)
        newest = found[-1][0]
        return [
            Migration(
                number,
                name,
                _script(self.db.schema, number, name, with_views_on_postgres(number, newest, text)),
            )
            for number, name, text in found
        ]

    def pending(self) -> list[Migration]:
        return missing(self.migrations(), self.version())

    def migrate(self, on_ran: Callable[[str], None] = lambda name: None) -> list[str]:
        return run_each(self.pending(), self._migrate, on_ran)

    @transaction
    def _migrate(self, migration: Migration) -> bool:
        """Runs a migration. False: another process has run it.

        Of many processes one migrates. The others begin when they have the lock, and find it done.
        """
        self.db.lock(f"rhythm.{self.db.schema}")
        if migration not in missing(self.migrations(), self._version()):
            return False
        try:
            self.db.script(migration.sql)
        except psycopg.errors.LockNotAvailable as problem:
            raise StoreError(
                f"migration {migration.name} has waited too long for what others are reading or "
                f"writing, and nothing of it stays: run it again when they are done (queries on "
                f"the views count; pg_stat_activity tells whose they are)"
            ) from problem
        except psycopg.Error as problem:
            raise failed(migration, problem) from problem
        return True

    @autocommit
    def version(self) -> int:
        return self._version()

    def _version(self) -> int:
        """Returns the number of the newest migration that has run; 0 if none has.

        It reads the catalog table: that makes the session see tables that others have just created.
        The function `to_regclass` alone would answer from what the session knew before.
        """
        if not self.db.query(
            b"SELECT 1 FROM pg_class WHERE oid = to_regclass('schema_version')"
        ).fetchall():
            return 0
        return int(
            self.db.query(b"SELECT coalesce(max(version), 0) FROM schema_version").fetchall()[0][0]
        )


def _script(schema: str, number: int, name: str, text: str) -> str:
    """Returns a migration with its schema and the statement that records it, so that it can also be
    run by hand."""
    quoted = sql.Identifier(schema).as_string(None)
    name_of_schema = sql.Literal(quoted).as_string(None)
    return (
        # IF NOT EXISTS would need the privilege to create schemas, also if this one is there
        f"DO $$ BEGIN IF to_regnamespace({name_of_schema}) IS NULL THEN "
        f"CREATE SCHEMA {quoted}; END IF; END $$;\nSET LOCAL search_path = {quoted};\n"
        "CREATE TABLE IF NOT EXISTS schema_version (version int PRIMARY KEY, name text "
        "NOT NULL, at bigint NOT NULL);\n\n"
        f"{text.strip()}\n\nINSERT INTO schema_version (version, name, at) VALUES "
        f"({number}, '{name}', now_us());\n"
    )
