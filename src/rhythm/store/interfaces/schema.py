"""The tables, and the migrations that make them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from rhythm.store.schema import Migration


class SchemaStore(ABC):
    """The tables, and the migrations that make them."""

    @abstractmethod
    def migrations(self) -> list[Migration]:
        """Every migration that this Rhythm knows, in order; asks no database."""

    @abstractmethod
    def pending(self) -> list[Migration]:
        """Those that have not run. `StoreError` if the schema is newer than this Rhythm."""

    @abstractmethod
    def migrate(self) -> list[str]:
        """Runs what is pending; the names of the migrations that ran. Safe when many processes
        start at once.

        Each is one transaction: one that fails leaves nothing behind, and is a `StoreError`.
        """

    @abstractmethod
    def version(self) -> int:
        """The newest migration that has run; 0 if none has."""
