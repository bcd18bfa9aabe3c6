"""Empty databases for tests, each on the clock of its test.

In memory unless the test says otherwise. PostgreSQL gets a schema of its own for each test, which
is dropped in the end.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rhythm.errors import InvalidSetting
from rhythm.settings import parted_url
from rhythm.store.interfaces.store import Store

if TYPE_CHECKING:
    from rhythm.store.postgres.store import PostgresStore
    from rhythm.store.sqlite.store import SqliteStore

GIVEN = "RHYTHM_TEST_DATABASE_URL"  # where PostgreSQL is, for tests
MEMORY, SQLITE, POSTGRESQL = "memory", "sqlite", "postgresql"
ClockUs = Callable[[], int]


class TestDatabase:
    """An empty database. `close` removes it."""

    __test__ = False  # not a test of pytest's

    def __init__(self, store: Store, remove: Callable[[], None] = lambda: None) -> None:
        self.store, self._remove = store, remove

    def close(self) -> None:
        """Closes the store, and removes the database."""
        self.store.close()
        self._remove()


def open_empty(kind: str, clock_us: ClockUs) -> TestDatabase:
    """Returns an empty database: "memory", "sqlite" (a file), "postgresql", or a PostgreSQL URL.

    Raises `InvalidSetting` if there is no such kind, or no server is named for PostgreSQL.
    """
    if not isinstance(kind, str):
        raise InvalidSetting(f"the database of a test is named by a text, not by {kind!r:.80}")
    if kind == MEMORY:
        return TestDatabase(_copy(":memory:", clock_us))
    if kind == SQLITE:
        folder = tempfile.mkdtemp(prefix="rhythm-test-")
        path = Path(folder) / "rhythm.db"
        return TestDatabase(
            _copy(str(path), clock_us), lambda: shutil.rmtree(folder, ignore_errors=True)
        )
    if kind == POSTGRESQL:
        url = os.environ.get(GIVEN, "")
        if not url:
            raise InvalidSetting(
                f"a test on PostgreSQL needs a server: set {GIVEN}=postgresql://user@host/database"
            )
        return _postgres(url, clock_us)
    if kind.startswith(("postgresql", "postgres:")):
        return _postgres(kind, clock_us)
    raise InvalidSetting(
        f"a test runs on {MEMORY}, {SQLITE}, {POSTGRESQL} or a postgresql:// URL, not on {kind!r}"
    )


def _copy(path: str, clock_us: ClockUs) -> Store:
    """Returns a database with the tables of Rhythm: copied, since to migrate takes a while."""
    from rhythm.store.sqlite.store import SqliteStore

    store = SqliteStore(path, clock_us)
    _template().db.connection.backup(store.db.connection)
    return store


@cache
def _template() -> SqliteStore:
    from rhythm.store.sqlite.store import SqliteStore

    store = SqliteStore(":memory:")
    store.schema.migrate()
    atexit.register(store.close)
    return store


def _postgres(url: str, clock_us: ClockUs) -> TestDatabase:
    from rhythm.store.open import open_store

    schema = f"rhythm_test_{secrets.token_hex(6)}"
    mark = "&" if parted_url(url)[1] else "?"
    store = cast("PostgresStore", open_store(f"{url}{mark}schema={schema}", clock_us=clock_us))

    def drop() -> None:
        import psycopg

        # that of the store: the URL may name a driver, and parameters that only Rhythm knows
        with psycopg.connect(store.db.url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())

    made = TestDatabase(store, drop)
    try:
        store.schema.migrate()
    except BaseException:
        made.close()
        raise
    return made
