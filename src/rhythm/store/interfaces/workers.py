"""The workers that live, their queues and their tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from rhythm.record import Record
from rhythm.store.access import Actor
from rhythm.store.interfaces.claims import SYSTEM_QUEUE

DEAD_AFTER_S = 30.0  # without a beat for so long a worker counts as dead


class Beat(Record):
    """A worker says that it lives, and how it is."""

    worker: str
    host: str
    pid: int
    queues: tuple[str, ...]
    concurrency: int
    running: int
    draining: bool
    version: str
    machine: str = ""  # within which the process id means something; empty: not known
    # silent for so long, it takes itself for dead; so do the others
    dead_after_s: float = DEAD_AFTER_S


class OwnClaims(dict[str, tuple[int, int]]):
    """What a worker has claimed: id -> (fence, wakes)."""

    def __init__(
        self, claims: Iterable[tuple[str, int, int]], not_extended: Iterable[str] = ()
    ) -> None:
        """`not_extended`: claims that were to be extended and were not, since others lock them."""
        super().__init__({id: (fence, wakes) for id, fence, wakes in claims})
        self.not_extended = frozenset(not_extended)


class SeenWorker(Record):
    """A worker as it was when it was last heard of, and how many claims it has `now`."""

    worker: str
    host: str
    pid: int
    queues: tuple[str, ...]
    concurrency: int
    running: int
    draining: bool
    version: str
    started_at: int
    beat_at: int
    claims: int
    now: int
    machine: str = ""
    dead_after_s: float = DEAD_AFTER_S


class Declaration(Record):
    """What a task is, as the worker says that has its handler: whoever plans a turn knows it from
    here."""

    name: str
    queue: str
    retries: int
    timeout_s: float | None
    backoff: str  # JSON
    transactional: bool


class Queue(Record):
    """What is in a queue: ready (since when the oldest of it), claimed, claimed by one who has not
    been heard of in time, delayed.

    `workers`: how many live ones take from it.
    """

    name: str
    ready: int
    oldest_at: int | None
    claimed: int
    expired: int
    delayed: int = 0
    paused_at: int | None = None
    paused_by: str = ""
    paused_reason: str = ""
    workers: int = 0
    now: int = 0


def refuse_system(queue: str, paused: bool) -> None:
    """`ValueError` for a pause of the queue of resumes: workflows would stand still that nobody has
    paused."""
    if paused and queue == SYSTEM_QUEUE:
        raise ValueError(
            f"queue `{SYSTEM_QUEUE}` cannot be paused: it has the resumes of all "
            f"workflows; pause the queue of their tasks"
        )


class WorkerStore(ABC):
    """The workers that live, their queues and their tasks."""

    @abstractmethod
    def beat(self, beat: Beat, claims: Mapping[str, int], ttl_s: float) -> OwnClaims:
        """Says that a worker lives, and prolongs claims of it (id -> fence; only those it still
        has). It waits for nobody: what somebody has locked at the moment is not prolonged.

        Everything that it has now, also what it does not know of.
        """

    @abstractmethod
    def leave(self, *workers: str) -> None:
        """These workers are no more: nobody waits for a beat of theirs, and claims that they still
        have expire now."""

    @abstractmethod
    def seen(self) -> list[SeenWorker]:
        """The workers that have said that they live, the dead ones of the last day among them."""

    @abstractmethod
    def declare(self, declarations: Sequence[Declaration]) -> None:
        """Stores what tasks are; of several workers that say it, the last one is right."""

    @abstractmethod
    def declared(self) -> list[Declaration]:
        """What all tasks are, by name."""

    @abstractmethod
    def queues(self) -> list[Queue]:
        """Every queue that has rows, is paused, or is served by a worker: one that is not dead, and
        not draining."""

    @abstractmethod
    def paused_queues(self) -> frozenset[str]: ...

    @abstractmethod
    def pause_queue(
        self, name: str, paused: bool, actor: Actor | None = None, reason: str = ""
    ) -> bool:
        """Nothing of a paused queue is claimed: no workflow of it starts, and no task. Those that
        have begun go on.

        False: it was paused, or not, already; who paused it first, and why, stays. `ValueError` for
        the queue of resumes.
        """

    @abstractmethod
    def lease(self, name: str, holder: str, ttl_s: float) -> bool:
        """Takes or prolongs the right to do what one process at a time should do. It saves work;
        nothing is safe because of it."""
