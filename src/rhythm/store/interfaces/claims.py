"""Time-limited ownership of ready rows: claim, extend, release, park."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from rhythm.record import Record
from rhythm.store.interfaces.turns import Committed, Loaded, LoadedTask

SYSTEM_QUEUE = "system"  # workflows that are woken wait here; every worker serves it


class Claim(Record):
    """Ownership of a ready row for a limited time.

    `wakes` is the row's count when it was claimed, before its owner loads anything.
    """

    id: str
    kind: int
    queue: str
    fence: int
    wakes: int
    attempt: int
    crashes: int


class Claimed(list[Claim]):
    """Claims, and the rows of what was claimed, by id: what its owner needs to begin.

    The rows are read after the claims, in the transaction of each, so they are as new as the
    `wakes` of the claims: whatever is not in them counts a wake later. An execution that no longer
    exists has no row.
    """

    def __init__(
        self,
        claims: Iterable[Claim] = (),
        workflows: Iterable[Loaded] = (),
        tasks: Iterable[LoadedTask] = (),
    ) -> None:
        super().__init__(claims)
        self.workflows = {row.id: row for row in workflows}
        self.tasks = {row.id: row for row in tasks}

    def and_those(self, others: Claimed) -> Claimed:
        """Returns these claims, and after them others, as one."""
        workflows = (*self.workflows.values(), *others.workflows.values())
        return Claimed((*self, *others), workflows, (*self.tasks.values(), *others.tasks.values()))


class ClaimStore(ABC):
    """Claims, extends, releases and parks ready rows."""

    @abstractmethod
    def claim(self, worker: str, queues: Sequence[str], limit: int, ttl_s: float) -> Claimed:
        """Claims up to `limit` free rows of these queues, in their order, and reads what was
        claimed.

        Paused queues are skipped. Woken workflows (the system queue) come first, unless `queues`
        names that queue in another place. Of one queue the highest priority comes first, and then
        what has waited longest; while more is free than claims take, what became free out of order
        may come later, by a second in ordinary times.
        """

    @abstractmethod
    def extend(self, claims: Mapping[str, int], ttl_s: float) -> dict[str, int]:
        """Extends claims (id -> fence). Returns the `wakes` of the claims that are still held; the
        others are lost."""

    @abstractmethod
    def release(self, claims: Mapping[str, int], delay_s: float = 0.0) -> None:
        """Releases claims, so that they can be claimed again at once or after `delay_s`.

        The attempt of a task is given back: it did not begin.
        """

    @abstractmethod
    def claimed_by(self, worker: str) -> dict[str, int]:
        """Returns the claims of a worker as the database knows them: id -> fence."""

    @abstractmethod
    def park(self, claims: Sequence[Claim]) -> list[Committed]:
        """Parks workflows that have nothing to do. Returns what became of each: "parked", "woken"
        or "lost"."""

    @abstractmethod
    def drop(self, claims: Mapping[str, int]) -> None:
        """Deletes the ready rows of workflows that have ended or no longer exist."""
