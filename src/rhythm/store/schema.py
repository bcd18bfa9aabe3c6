"""Which migrations there are, and which of them a database still needs. Knows numbers and texts, no
database."""

from __future__ import annotations

from collections.abc import Sequence

from rhythm.errors import StoreError
from rhythm.record import Record


class Migration(Record):
    """A step of the schema. `sql` is all of it, with the line that says it has run: by hand it does
    the same."""

    number: int
    name: str
    sql: str


def missing(known: Sequence[Migration], version: int) -> list[Migration]:
    """What a database at this version needs. `StoreError` if it has been migrated by a newer
    Rhythm: nothing here may touch it."""
    newest = known[-1].number
    if version > newest:
        raise StoreError(
            f"this Rhythm knows schema {newest}, the database has {version}; upgrade Rhythm"
        )
    return [migration for migration in known if migration.number > version]


def failed(migration: Migration, problem: Exception) -> StoreError:
    return StoreError(
        f"migration {migration.name} failed, and nothing of it stays: {str(problem).strip()}"
    )
