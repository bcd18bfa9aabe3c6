"""A database as its operator sees it: its tables, and whether they keep the rules.

The command line opens databases here. Nothing of the application is imported until somebody asks
for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rhythm.store.doctor import RULES, Finding
from rhythm.store.interfaces.operating import Health
from rhythm.store.interfaces.store import Store
from rhythm.store.open import open_store, require_schema
from rhythm.store.schema import Migration

if TYPE_CHECKING:
    from rhythm.app.application import Rhythm

__all__ = ["RULES", "Database", "Finding", "Health", "Migration", "memory_store", "open_database"]


class Database:
    """A database that is open, as it is."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def probe(self) -> None:
        """Returns if the database answers those who come in.

        It is asked for a token that nobody has: whoever looks at something large cannot block that.
        """
        self._store.access.token("")

    def expect_threads(self, count: int) -> None:
        """So many threads may ask at once from now on: they are not to wait for each other."""
        self._store.expect(count)

    def schema_version(self) -> int:
        """The schema that its tables have; 0: there are none."""
        return self._store.schema.version()

    def migrations(self) -> list[Migration]:
        """All steps of the schema for this kind of database. It is not asked."""
        return self._store.schema.migrations()

    def pending(self) -> list[Migration]:
        """The steps that have not run."""
        return self._store.schema.pending()

    def migrate(self) -> list[str]:
        """Runs the steps that have not run: their names."""
        return self._store.schema.migrate()

    def examine(self, grace_s: float) -> tuple[list[Finding], Health]:
        """Which of its rules are broken, and how it is.

        What takes a moment may be late by `grace_s`.
        """
        from rhythm.engine.doctor import examine

        require_schema(self._store)
        return examine(self._store, grace_s), self._store.operating.health()

    def application(self, url: str) -> Rhythm:
        """The application on this database, of this URL; close it before the database.

        The tables must be up to date. Nothing is registered.
        """
        from rhythm.app.application import Rhythm

        return Rhythm(url, (), store=self._store, auto_migrate=False)


@contextmanager
def open_database(url: str, *, create: bool = True) -> Iterator[Database]:
    """The database behind a URL; nothing is migrated by opening it.

    `StoreError` says what is wrong. `create=False`: an SQLite file must be there already.
    """
    store = open_store(url, create=create)
    try:
        yield Database(store)
    finally:
        store.close()


def memory_store(clock_us: Callable[[], int]) -> Store:
    """A database in memory that nobody else has, on a clock of its own: for `rhythm run`."""
    from rhythm.store.sqlite.store import SqliteStore

    store = SqliteStore(":memory:", clock_us)
    store.schema.migrate()
    return store
