"""The live workers, their heartbeats and leases, queues, and declared tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from rhythm.record import Record
from rhythm.store.access import Actor
from rhythm.store.interfaces.claims import SYSTEM_QUEUE

DEAD_AFTER_S = 30.0  # a worker without a beat for so long counts as dead


class Beat(Record):
    """A heartbeat: a worker says that it lives, and how it is."""

    worker: str
    host: str
    pid: int
    queues: tuple[str, ...]
    concurrency: int
    running: int
    draining: bool
    version: str
    machine: str = ""  # where the process id is valid; empty: not known
    # After this long without a successful beat the worker considers itself dead, and so do the
    # others.
    dead_after_s: float = DEAD_AFTER_S


class OwnClaims(dict[str, tuple[int, int]]):
    """The claims of a worker: id -> (fence, wakes)."""

    def __init__(
        self, claims: Iterable[tuple[str, int, int]], not_extended: Iterable[str] = ()
    ) -> None:
        """`not_extended`: claims that should have been extended and were not, because other
        transactions lock them."""
        super().__init__({id: (fence, wakes) for id, fence, wakes in claims})
        self.not_extended = frozenset(not_extended)


class SeenWorker(Record):
    """A worker as of its last beat, and how many claims it has at `now`."""

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
    """The declaration of a task, made by the worker that has its handler.

    Every worker that plans a turn learns about the task from it.
    """

    name: str
    queue: str
    retries: int
    timeout_s: float | None
    backoff: str  # JSON
    transactional: bool


class Queue(Record):
    """The number of rows in a queue by state: ready, claimed, claimed by a worker that was not
    heard of in time (`expired`), delayed.

    `oldest_at`: since when the oldest ready row waits. `workers`: how many live workers claim from
    it.
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
    """Raises `ValueError` for a pause of the system queue: it would stop workflows that nobody has
    paused."""
    if paused and queue == SYSTEM_QUEUE:
        raise ValueError(
            f"queue `{SYSTEM_QUEUE}` cannot be paused: the workflows of all queues go "
            f"on through it; pause the queue of their tasks"
        )


class WorkerStore(ABC):
    """The live workers, their heartbeats and leases, queues, and declared tasks."""

    @abstractmethod
    def beat(self, beat: Beat, claims: Mapping[str, int], ttl_s: float) -> OwnClaims:
        """Records that a worker lives, and extends its claims (id -> fence; only those it still
        has). Returns all claims that it has now, also those that it does not know of.

        It waits for nobody: a claim that another transaction has locked is not extended.
        """

    @abstractmethod
    def leave(self, *workers: str) -> None:
        """Records that these workers have stopped: nobody waits for their beats, and their
        remaining claims expire now."""

    @abstractmethod
    def seen(self) -> list[SeenWorker]:
        """Returns the workers that have sent beats, including those that died within the last
        day."""

    @abstractmethod
    def declare(self, declarations: Sequence[Declaration]) -> None:
        """Stores how tasks were declared: their queues, retries and timeouts.

        If several workers declare the same task, the last declaration counts.
        """

    @abstractmethod
    def declared(self) -> list[Declaration]:
        """Returns the declarations of all tasks, by name."""

    @abstractmethod
    def queues(self) -> list[Queue]:
        """Returns every queue that has rows, is paused, or is served by a live worker that is not
        draining."""

    @abstractmethod
    def paused_queues(self) -> frozenset[str]:
        """Returns the names of the paused queues."""

    @abstractmethod
    def pause_queue(
        self, name: str, paused: bool, actor: Actor | None = None, reason: str = ""
    ) -> bool:
        """Pauses a queue or lets it go on. False: it was so already; who paused it first, and why,
        is kept.

        Nothing of a paused queue is claimed: no workflow of it starts, and no task. What has begun
        goes on. Raises `ValueError` for a pause of the system queue.
        """

    @abstractmethod
    def lease(self, name: str, holder: str, ttl_s: float) -> bool:
        """Takes or extends a lease, which one process at a time has. True: `holder` has it now.

        It only keeps several processes from doing the same work. Nothing may rely on it to be
        correct.
        """
