"""The tables, and the migrations that create them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from rhythm.store.schema import Migration


class SchemaStore(ABC):
    """Creates the tables, by migrations."""

    @abstractmethod
    def migrations(self) -> list[Migration]:
        """Returns every migration that this Rhythm knows, in order, without asking the database."""

    @abstractmethod
    def pending(self) -> list[Migration]:
        """Returns the migrations that have not run. Raises `StoreError` if the schema is newer than
        this Rhythm."""

    @abstractmethod
    def migrate(self, on_ran: Callable[[str], None] = lambda name: None) -> list[str]:
        """Runs the pending migrations, calls `on_ran` after each, and returns their names.

        Safe when many processes start at once. Each migration is one transaction: one that fails
        leaves nothing behind, and raises `StoreError`.
        """

    @abstractmethod
    def version(self) -> int:
        """Returns the number of the newest migration that has run; 0 if none has."""
