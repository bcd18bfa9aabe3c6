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
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, store: Store, name: str, version: str | None = None) -> Program | None:
        """Returns a program by its version (None: the current one).

        None if there is no such workflow or version. Raises `InvalidProgram` if it cannot be read.
        """
        if version is None:
            listed = store.definitions.current([name]).get(name)
            if listed is None:
                return None
            version = listed.version
        with self._lock:
            if found := self._kept.get((name, version)):
                self._kept.move_to_end((name, version))
                return found[0]
        text = store.definitions.program(name, version)
        return None if text is None else self._keep((name, version), load_program(text), len(text))

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
                self._bytes -= self._kept.popitem(last=False)[1][1]
            return program

    @property
    def size(self) -> tuple[int, int]:
        """How many programs are kept, and the bytes of their stored form."""
        return len(self._kept), self._bytes
