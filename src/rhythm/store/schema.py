"""Which migrations there are, and which of them a database still needs.

Knows numbers and texts, no database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rhythm.errors import StoreError
from rhythm.record import Record


class Migration(Record):
    """A step of the schema.

    `sql` is all of it, including the statement that records it, so it can also be run by hand.
    """

    number: int
    name: str
    sql: str


def missing(known: Sequence[Migration], version: int) -> list[Migration]:
    """Returns the migrations that a database at this version needs. Raises `StoreError` if a newer
    Rhythm has migrated it: this one must not touch it."""
    newest = known[-1].number
    if version > newest:
        raise StoreError(
            f"this Rhythm knows schema {newest}, the database has {version}; upgrade Rhythm"
        )
    return [migration for migration in known if migration.number > version]


def run_each(
    pending: Iterable[Migration],
    run: Callable[[Migration], bool],
    on_ran: Callable[[str], None] = lambda name: None,
) -> list[str]:
    """Runs migrations in order, and calls `on_ran` after each; returns the names of those that ran.

    `run` tells whether it ran one: another process may have been first.
    """
    ran = []
    for migration in pending:
        if run(migration):
            ran.append(migration.name)
            on_ran(migration.name)
    return ran


def failed(migration: Migration, problem: Exception) -> StoreError:
    """Returns the error for a migration that failed and was rolled back."""
    return StoreError(
        f"migration {migration.name} failed, and nothing of it stays: {str(problem).strip()}"
    )
