"""The database, for operators: selections, the doctor, its health."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

from rhythm.filters.terms import EVERYTHING, ExecutionFilter
from rhythm.record import Record
from rhythm.store.doctor import Finding, Judge, OnProgress
from rhythm.store.interfaces.workers import Queue

Order = Literal["created", "finished"]  # the time by which executions are listed
FAILURE_CHARACTERS = 2000  # of the error of a failure
MOST_QUEUES = 100  # queues with ready work that are counted


class Silent(Record):
    """A worker that has claims and has been silent for too long.

    `beat_at` is None if it was never heard of.
    """

    worker: str
    claims: int
    beat_at: int | None


class Health(Record):
    """The condition of a database, apart from its correctness.

    Fields that a database has nothing for stay empty.
    """

    now: int
    executions: int
    queues: tuple[Queue, ...]
    transaction_s: float | None = None  # the age of the oldest open transaction
    dead_rows: tuple[tuple[str, int, int], ...] = ()  # table, live rows, dead rows
    notifications: float | None = None  # how full their queue is, from 0 to 1
    server: bool = False  # whether its clock is that of another machine
    silent: tuple[Silent, ...] = ()


class Selection(Record):
    """Which root executions are selected: those that meet the filter, and all else that is set."""

    filter: ExecutionFilter = EVERYTHING
    attributes: str = "{}"  # JSON: names, and plain values of the same type
    type: int | None = None
    paused: bool = False  # only executions that somebody has paused
    unpaused: bool = False  # only executions that nobody has paused
    unasked: bool = False  # only executions that were not asked to end
    unretried: bool = False  # only executions without a retry
    before: int | None = None  # only executions that were created before this time
    names: tuple[str, ...] | None = None  # only executions of these workflows and tasks
    # For a filter by line: the statements that stand on it, for each version of the workflow.
    lines: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def order(self) -> Order:
        """The time by which a list of the selected executions is ordered."""
        return "created" if self.filter.of("finished") is None else "finished"

    @property
    def shared_names(self) -> tuple[str, ...] | None:
        """The names that both the filter and `names` allow; None: all names."""
        term = self.filter.of("workflow")
        if term is None or self.names is None:
            return self.names if term is None else term.values
        return tuple(name for name in term.values if name in self.names)


class Standing(Record):
    """Where an execution is in its queue, and which worker has claimed it."""

    id: str
    state: int  # free, claimed or delayed
    queue: str
    since: int  # when it was queued
    due_at: int | None
    worker: str | None


class Counted(Record):
    """A count for operators: of what, by which status or of which queue; `at` of a queue is since
    when the row waits that is claimed next."""

    what: str  # live, ended, started, approvals, queue, paused queue, now
    name: str
    n: int
    at: int | None


class FailedRoot(Record):
    """A root that failed, with the beginning of its error as JSON text."""

    id: str
    name: str
    at: int
    error: str | None


class OperatingStore(ABC):
    """The database, for operators: selections, the doctor, its health."""

    @abstractmethod
    def count(self, selection: Selection) -> tuple[int, int]:
        """Returns how many executions are selected, and the time of the database."""

    @abstractmethod
    def select(
        self, selection: Selection, after: tuple[int, str], limit: int
    ) -> list[tuple[int, str]]:
        """Returns `created_at` and id of selected executions, oldest first, beginning after
        `after`."""

    @abstractmethod
    def standing(self, ids: Sequence[str]) -> dict[str, Standing]:
        """Returns where these executions are in their queues.

        Executions without a ready row are left out.
        """

    @abstractmethod
    def overview(self, window_us: int, most: int) -> list[Counted]:
        """Returns counts for operators, also of what has started and ended within `window_us`.

        At most `most` rows are read for each, however many there are.
        """

    @abstractmethod
    def failures(self, limit: int, among: int) -> list[FailedRoot]:
        """Returns the newest roots that failed, among so many of the newest that have ended."""

    @abstractmethod
    def check(
        self,
        grace_s: float,
        judge: Judge | None = None,
        on_progress: OnProgress = lambda done, of: None,
    ) -> list[Finding]:
        """Returns what breaks the rules of `store.doctor`, in one snapshot.

        Things that take a moment may be late by `grace_s`. The rules about snapshots and waits
        belong to `judge`: `engine.doctor.examine` passes it.
        """

    @abstractmethod
    def health(self) -> Health:
        """Returns the condition of the database: queues, long transactions, silent workers."""
