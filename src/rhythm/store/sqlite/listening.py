"""Notices that another connection has committed, in this process or another.

SQLite itself tells nobody, but counts the changes of a file. A look at this count takes
microseconds. On Linux the kernel reports every write to the log of SQLite, so that nobody looks
while nothing is written. A write is reported before its commit can be seen: the log is synced to
disk first. So after a write the count is looked at, more and more rarely, until it changes or it
takes too long. Elsewhere, or if the kernel refuses, it is looked at many times a second.

The listeners of one file in a process share one thread.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing

from rhythm.store.interfaces.store import Listening
from rhythm.store.sqlite.inotify import FileWatch, watch
from rhythm.store.sqlite.session import connect

POLL_INTERVAL_S = 0.02  # between two looks where writes are not reported
# Between two looks after a write: a part of the time since then, so that a commit is noticed after
# a little more than it took.
PART, SHORTEST_S, LONGEST_S = 0.3, 0.0002, 0.02
AFTER_WRITE_S = 0.25  # how long the commit of a write is waited for
REST_S = 0.001  # after a change: commits that follow each other closely are noticed together
NET_S = 1.0  # between two looks while no write is reported
RETRY_S = 1.0
CLOSE_S = 1.0

Heard = Callable[[frozenset[str]], None]


class SqliteListening(Listening):
    """One listener for the changes of a file."""

    def __init__(self, path: str, heard: Heard) -> None:
        super().__init__()
        self.heard, self._path = heard, os.path.realpath(path)
        _join(self._path, self)

    def close(self) -> None:
        _leave(self._path, self)


class Pause:
    """Waits where writes are not reported: for a short time."""

    def __init__(self) -> None:
        self._rung = threading.Event()

    def wait(self, limit_s: float) -> bool:
        """Waits for so long, or until it is rung, and returns False: it knows of no write."""
        self._rung.wait(min(limit_s, POLL_INTERVAL_S))
        self._rung.clear()
        return False

    def ring(self) -> None:
        """Ends a wait, or the next one."""
        self._rung.set()

    def close(self) -> None:
        """Does nothing."""


class Ear:
    """The thread that listens to one file, while there is anybody who wants to hear."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.listeners: list[SqliteListening] = []
        self.closed = False
        self._new: list[SqliteListening] = []  # those that have not been called yet
        self._waits: FileWatch | Pause = Pause()
        self._unreported = False  # there was a commit whose write was not reported
        self.thread = threading.Thread(target=self._run, name="rhythm listener", daemon=True)

    # called with the lock

    def add(self, listening: SqliteListening) -> None:
        """Calls this listener at once, and from now on."""
        self.listeners.append(listening)
        self._new.append(listening)
        self._waits.ring()

    def remove(self, listening: SqliteListening) -> None:
        """Calls this listener no more. After the last one, the thread ends."""
        self.listeners.remove(listening)
        if listening in self._new:
            self._new.remove(listening)
        self.closed = not self.listeners
        self._waits.ring()

    # in its thread

    def _run(self) -> None:
        while not self.closed:
            try:
                with closing(connect(self.path, "ro")) as db:
                    self._listen(db)
            except sqlite3.Error as problem:
                with _lock:
                    for each in self.listeners:
                        each.problem = f"the SQLite database cannot be read: {problem}"
                self._rest()
        self._wait_with(Pause())

    def _rest(self) -> None:
        """Waits before the file is opened again."""
        self._wait_with(Pause())
        until = time.monotonic() + RETRY_S
        while not self.closed and time.monotonic() < until:
            self._waits.wait(RETRY_S)

    def _listen(self, db: sqlite3.Connection) -> None:
        """Listens until the file is another one, or nobody listens any more."""
        version, files = _version(db), _identity(self.path)
        # Whoever has read the version has made the log, if there was none.
        reports = None if self._unreported else watch(f"{self.path}-wal")
        self._wait_with(reports or Pause())
        self._notify(everybody=True)
        written_at: float | None = time.monotonic()  # of a write whose commit may be to come
        while not self.closed:
            rest_s = _rest_s(written_at)
            written = self._waits.wait(rest_s)
            if rest_s == NET_S and not written and _identity(self.path) != files:
                return
            before, version = version, _version(db)
            self._notify(everybody=version != before)
            if version != before:
                if reports and rest_s == NET_S and not written:
                    written = reports.wait(0.0)  # it may have come just now
                    self._unreported = not written
                if self._unreported and reports:
                    return
                # There is one writer at a time. So a write that came before the last look, which
                # did not see this commit, belongs to it; a later one may belong to the next.
                written_at = None
                time.sleep(REST_S)
            if written:
                written_at = time.monotonic()

    def _wait_with(self, waits: FileWatch | Pause) -> None:
        with _lock:
            before, self._waits = self._waits, waits
            before.close()

    def _notify(self, everybody: bool) -> None:
        """Calls the listeners: all, or those that have not been called yet."""
        if not (everybody or self._new):
            return
        with _lock:
            called, self._new = [*self.listeners] if everybody else self._new, []
        for each in called:
            try:
                each.problem = ""
                each.heard(frozenset())
            except Exception as problem:  # of one listener: the others go on
                each.problem = f"the listener has failed: {problem!r}"


def _version(db: sqlite3.Connection) -> int:
    """Returns a number that changes with every commit of another connection."""
    version: int = db.execute("PRAGMA data_version").fetchone()[0]
    return version


def _identity(path: str) -> list[tuple[int, int] | None]:
    """Returns which files the database and its log are."""
    found = list[tuple[int, int] | None]()
    for name in (path, f"{path}-wal"):
        try:
            there = os.stat(name)
            found.append((there.st_dev, there.st_ino))
        except OSError:
            found.append(None)
    return found


def _rest_s(written_at: float | None) -> float:
    """Returns how long to wait for the next write, at most, before the next look."""
    since_s = NET_S if written_at is None else time.monotonic() - written_at
    return NET_S if since_s > AFTER_WRITE_S else min(max(PART * since_s, SHORTEST_S), LONGEST_S)


# The ears of this process, by file. The lock is held for moments, never while a listener is called.
_ears: dict[str, Ear] = {}
_lock = threading.Lock()


def _join(path: str, listening: SqliteListening) -> None:
    with _lock:
        ear = _ears.get(path)
        if ear is None:
            ear = Ear(path)
            ear.thread.start()
            _ears[path] = ear
        ear.add(listening)


def _leave(path: str, listening: SqliteListening) -> None:
    with _lock:
        ear = _ears.get(path)
        if ear is None or listening not in ear.listeners:
            return  # closed before, or in a forked process, where the thread is not
        ear.remove(listening)
        if ear.closed:
            del _ears[path]
    if ear.closed and ear.thread is not threading.current_thread():
        ear.thread.join(CLOSE_S)


def _forget() -> None:
    """Forgets the ears of the parent, in a forked process: their threads are not here."""
    global _lock
    _lock = threading.Lock()
    _ears.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
