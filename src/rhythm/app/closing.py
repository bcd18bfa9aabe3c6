"""The store of an application until the application is closed: then every use of it is refused.

A store by itself would answer in its own way: SQLite's with an error of the driver, PostgreSQL's by
connecting anew.
"""

from __future__ import annotations

from typing import Any

from rhythm.errors import ApplicationClosed
from rhythm.store.interfaces.store import Store


class StoreUntilClosed:
    """Offers what a store offers, until it is closed. The store itself stays as it is."""

    def __init__(self, store: Store) -> None:
        self._store, self._closed = store, False

    def close(self) -> None:
        """Refuses every use from now on."""
        self._closed = True

    def refuse_if_closed(self) -> None:
        """Raises `ApplicationClosed` if the application is closed."""
        if self._closed:
            raise ApplicationClosed(
                "this application is closed: make another one with rhythm.Rhythm(…) or "
                "rhythm.init(…), and call close() when it is needed no more"
            )

    def __getattr__(self, name: str) -> Any:
        self.refuse_if_closed()
        return getattr(self._store, name)
