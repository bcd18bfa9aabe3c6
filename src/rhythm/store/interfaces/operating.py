"""The database, for operators: selections, the doctor, its health."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from rhythm.record import Record
from rhythm.store.doctor import Finding, Judge
from rhythm.store.interfaces.workers import Queue


class Silent(Record):
    """A worker that has claims, and has not been heard of for too long, or never: then `beat_at` is
    None."""

    worker: str
    claims: int
    beat_at: int | None


class Health(Record):
    """How a database is, besides being right. What the database has no such thing of is empty."""

    now: int
    executions: int
    queues: tuple[Queue, ...]
    transaction_s: float | None = None  # the age of the oldest one
    dead_rows: tuple[tuple[str, int, int], ...] = ()  # table, live rows, dead rows
    notifications: float | None = None  # how full their queue is, from 0 to 1
    server: bool = False  # whether its clock is another machine's
    silent: tuple[Silent, ...] = ()


class Selection(Record):
    """Which executions are meant, of those that nobody else started. Times are microseconds since
    1970; what is empty or None counts for nothing."""

    statuses: tuple[str, ...]  # as they are shown
    workflow: str | None = None
    queue: str | None = None
    created_after: int | None = None  # or at that time
    created_before: int | None = None
    attributes: str = "{}"  # JSON: names and plain values
    type: int | None = None
    paused: bool = False  # only those that somebody has paused
    unpaused: bool = False  # only the others
    unasked: bool = False  # only those that have not been asked to end
    unretried: bool = False  # only those of which there is no retry
    names: tuple[str, ...] | None = None  # only those of these workflows and tasks

    @property
    def asked(self) -> list[str]:
        """The names of what counts."""
        values = {name: getattr(self, name) for name in self._fields}
        return [
            name
            for name, value in values.items()
            if value is not None and value is not False and value != "{}"
        ]


class Standing(Record):
    """Where in a queue an execution is, and who has it."""

    id: str
    state: int  # free, claimed or delayed
    queue: str
    since: int  # when it was queued
    due_at: int | None
    worker: str | None


class OperatingStore(ABC):
    """The database, for operators: selections, the doctor, its health."""

    @abstractmethod
    def count(self, selection: Selection) -> tuple[int, int]:
        """How many are meant, and what time it is."""

    @abstractmethod
    def select(
        self, selection: Selection, after: tuple[int, str], limit: int
    ) -> list[tuple[int, str]]:
        """`created_at` and id of those that are meant, oldest first, beginning after this one."""

    @abstractmethod
    def standing(self, ids: Sequence[str]) -> dict[str, Standing]:
        """Where these are in a queue; one that nobody must look at is left out."""

    @abstractmethod
    def check(self, grace_s: float, judge: Judge | None = None) -> list[Finding]:
        """What breaks the rules of `store.doctor`, in one snapshot. What takes a moment may be late
        by `grace_s`.

        The rules about snapshots and waits are the judge's: `engine.doctor.examine` brings it
        along.
        """

    @abstractmethod
    def health(self) -> Health: ...
