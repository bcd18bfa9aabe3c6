"""Keeps the programs of a database that were used last, within limits.

It may be used from any thread.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from rhythm.ir.codec import load_program
from rhythm.ir.program import Program
from rhythm.limits import DEFAULT_LIMITS, Limits
from rhythm.store.interfaces.store import Store

Key = tuple[str, str]  # name and version


class ProgramCache:
    """The programs that were used last, limited by number and by the bytes of their stored form."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._most, self._most_bytes = limits.cached_programs, limits.cached_program_bytes
        self._kept: OrderedDict[Key, tuple[Program, int]] = OrderedDict()
        self._current: dict[str, str] = {}  # versions of kept programs, by name
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, store: Store, name: str, version: str | None = None) -> Program | None:
        """Returns a program by its version (None: the current one).

        None if there is no such workflow or version. Raises `InvalidProgram` if it cannot be read.
        """
        if version is not None:
            return self._of_version(store, name, version)
        listed = store.definitions.current([name]).get(name)
        found = None if listed is None else self._of_version(store, name, listed.version)
        if found is not None:
            with self._lock:
                self._current[name] = found.version
        return found

    def last_known(self, name: str) -> Program | None:
        """Returns the program that was the current one when it was last asked for, if it is still
        kept: nothing is asked."""
        with self._lock:
            return self._used((name, self._current.get(name, "")))

    def _of_version(self, store: Store, name: str, version: str) -> Program | None:
        with self._lock:
            if found := self._used((name, version)):
                return found
        text = store.definitions.program(name, version)
        return None if text is None else self._keep((name, version), load_program(text), len(text))

    def _used(self, key: Key) -> Program | None:
        """Returns a program that is kept, which is the last one to go then."""
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def _keep(self, key: Key, program: Program, size: int) -> Program:
        """Keeps a program, and returns it or the one that another thread has loaded meanwhile.

        There must be only one, since what is compiled from it is kept with it.
        """
        with self._lock:
            if found := self._kept.get(key):
                return found[0]
            self._kept[key] = program, size
            self._bytes += size
            while len(self._kept) > self._most or (
                self._bytes > self._most_bytes and len(self._kept) > 1
            ):
                self._forget_oldest()
            return program

    def _forget_oldest(self) -> None:
        (name, version), (_, size) = self._kept.popitem(last=False)
        self._bytes -= size
        if self._current.get(name) == version:
            del self._current[name]

    @property
    def size(self) -> tuple[int, int]:
        """How many programs are kept, and the bytes of their stored form."""
        return len(self._kept), self._bytes
