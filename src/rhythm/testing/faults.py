"""A store whose calls are counted, and at one of them the worker dies.

Only calls that change something count: between two of them a crash leaves the same database.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, get_type_hints

from rhythm.errors import StoreError
from rhythm.record import Record
from rhythm.store.interfaces.store import Store
from rhythm.testing.bodies import Crashed

BEFORE, AFTER, LOST = "before", "after", "lost"
MODES = {
    BEFORE: "the worker dies before it",
    AFTER: "the worker dies after it",
    LOST: "the worker gets no answer to it",
}
ROLES = frozenset(name for name in get_type_hints(Store) if name not in ("package", "limits"))

# Calls of a worker that change the database: what each is called, and whether it changed anything.
COMMITS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "claims.claim": ("claim", bool),
    "claims.park": ("park", bool),
    "claims.release": ("give back", lambda answer: True),
    "claims.drop": ("drop", lambda answer: True),
    "turns.commit": ("commit", lambda answer: True),
    "maintenance.fire_timers": ("fire a timer", lambda answer: bool(answer[0])),
    "schedules.fire": ("start by schedule", lambda answer: bool(answer[0])),
}  # fmt: skip


class CrashPoint(Record):
    """Where a worker meets its fault: before, after or at commit number `at`, from 1."""

    at: int
    kind: str  # the name of the call, as in COMMITS
    mode: str

    def __str__(self) -> str:
        return f"{self.mode} {self.at}"


class WatchedStore:
    """A store as a worker sees it: counts what it commits, and fails where it shall."""

    def __init__(
        self,
        inner: Store,
        fault: CrashPoint | None = None,
        report: Callable[[str, str], None] = lambda what, kind: None,
    ) -> None:
        """`report` gets each commit ("commit"), and the fault when it comes (its mode)."""
        self._inner, self._fault, self._report = inner, fault, report
        self._thread = threading.get_ident()  # bodies of tasks commit in others, by themselves
        self.commits: list[str] = []  # the names of the calls that changed something
        self.met = False  # whether the fault has come

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return _Role(found, name, self) if name in ROLES else found

    def call(self, name: str, method: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Makes a call of a role, with the fault if it is its turn."""
        if name not in COMMITS or threading.get_ident() != self._thread:
            return method(*args, **kwargs)
        faulty = self._is_next(name)
        if faulty and self._fault and self._fault.mode == BEFORE:
            self._meet()
        answer = method(*args, **kwargs)
        if not COMMITS[name][1](answer):
            return answer
        self.commits.append(name)
        self._report("commit", name)
        if faulty:
            self._meet()
        return answer

    def _is_next(self, name: str) -> bool:
        fault = self._fault
        return (
            fault is not None
            and not self.met
            and len(self.commits) == fault.at - 1
            and name == fault.kind
        )

    def _meet(self) -> None:
        assert self._fault is not None
        self.met = True
        self._report(self._fault.mode, self._fault.kind)
        if self._fault.mode == LOST:
            raise StoreError("the answer of the database was lost")
        raise Crashed


class _Role:
    """One role of a watched store."""

    def __init__(self, inner: Any, name: str, store: WatchedStore) -> None:
        self._inner, self._name, self._store = inner, name, store

    def __getattr__(self, name: str) -> Any:
        found, whole = getattr(self._inner, name), f"{self._name}.{name}"
        if not callable(found):
            return found
        return lambda *args, **kwargs: self._store.call(whole, found, args, kwargs)
