"""Notices that another connection has written, by reading SQLite's own count of changes many times
a second."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing

from rhythm.store.interfaces.store import Listening

POLL_INTERVAL_S = 0.02  # a poll takes microseconds
RETRY_S = 1.0
CLOSE_S = 1.0


class SqliteListening(Listening):
    """A thread with a connection of its own, which polls one number."""

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], heard: Callable[[frozenset[str]], None]
    ) -> None:
        super().__init__()
        self._connect, self._heard = connect, heard
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rhythm listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                with closing(self._connect()) as db:
                    self._poll(db)
            except sqlite3.Error as problem:
                self.problem = f"the SQLite database cannot be read: {problem}"
                self._closed.wait(RETRY_S)

    def _poll(self, db: sqlite3.Connection) -> None:
        seen = None
        while not self._closed.is_set():
            version = db.execute("PRAGMA data_version").fetchone()
            if version != seen:
                seen, self.problem = version, ""
                self._heard(frozenset())
            self._closed.wait(POLL_INTERVAL_S)
