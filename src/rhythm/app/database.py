"""A database as its operator sees it: its tables, and whether they keep the rules.

The command line opens databases here. The application is not imported until one is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rhythm.store.doctor import RULES, Finding, OnProgress
from rhythm.store.interfaces.operating import Health
from rhythm.store.interfaces.store import Store
from rhythm.store.open import open_store, require_schema
from rhythm.store.schema import Migration

if TYPE_CHECKING:
    from rhythm.app.application import Rhythm

__all__ = ["RULES", "Database", "Finding", "Health", "Migration", "memory_store", "open_database"]


class Database:
    """An open database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def probe(self) -> None:
        """Returns if the database answers requests; else raises `StoreError`.

        It looks up a token that does not exist. That question cannot be blocked by somebody who
        reads something large.
        """
        self._store.access.token("")

    def expect_threads(self, count: int) -> None:
        """Prepares for this many threads that ask at once: they should not wait for each other."""
        self._store.expect(count)

    def schema_version(self) -> int:
        """Returns the version of the schema that the tables have; 0 means that there are none."""
        return self._store.schema.version()

    def migrations(self) -> list[Migration]:
        """Returns all migrations for this kind of database, without asking it."""
        return self._store.schema.migrations()

    def pending(self) -> list[Migration]:
        """Returns the migrations that have not run."""
        return self._store.schema.pending()

    def migrate(self, on_ran: Callable[[str], None] = lambda name: None) -> list[str]:
        """Runs the migrations that have not run, and returns their names."""
        return self._store.schema.migrate(on_ran)

    def examine(
        self, grace_s: float, on_progress: OnProgress = lambda done, of: None
    ) -> tuple[list[Finding], Health]:
        """Returns which rules of the doctor are broken, and the health of the database.

        What takes a moment by design may be late by `grace_s` before it counts as broken.
        """
        from rhythm.engine.doctor import examine

        require_schema(self._store)
        return examine(self._store, grace_s, on_progress), self._store.operating.health()

    def application(self, url: str) -> Rhythm:
        """Returns the application on this database, which has this URL.

        Close it before the database. The tables must be up to date. No workflows are registered.
        """
        from rhythm.app.application import Rhythm

        return Rhythm(url, (), store=self._store, auto_migrate=False)


@contextmanager
def open_database(url: str, *, create: bool = True) -> Iterator[Database]:
    """Opens the database of a URL, without migrating it. Raises `StoreError` if it cannot.

    With `create=False`, an SQLite file must exist already.
    """
    store = open_store(url, create=create)
    try:
        yield Database(store)
    finally:
        store.close()


def memory_store(clock_us: Callable[[], int]) -> Store:
    """Returns a new database in memory with its own clock, for `rhythm run`."""
    from rhythm.store.sqlite.store import SqliteStore

    store = SqliteStore(":memory:", clock_us)
    store.schema.migrate()
    return store
