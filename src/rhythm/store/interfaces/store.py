"""A database, as the engine sees it: all roles together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from rhythm.limits import Limits
from rhythm.store.interfaces.access import AccessStore
from rhythm.store.interfaces.claims import ClaimStore
from rhythm.store.interfaces.definitions import DefinitionStore
from rhythm.store.interfaces.executions import ExecutionStore
from rhythm.store.interfaces.logs import LogStore
from rhythm.store.interfaces.maintenance import MaintenanceStore, Recovered
from rhythm.store.interfaces.messages import MessageStore
from rhythm.store.interfaces.operating import OperatingStore
from rhythm.store.interfaces.people import PeopleStore
from rhythm.store.interfaces.reading import ReadingStore
from rhythm.store.interfaces.schedules import ScheduleStore
from rhythm.store.interfaces.schema import SchemaStore
from rhythm.store.interfaces.turns import TurnStore
from rhythm.store.interfaces.workers import WorkerStore


class Listening:
    """A listener for new work, until it is closed.

    `problem` says why it hears nothing; then workers find work by polling.
    """

    def __init__(self, problem: str = "") -> None:
        self.problem = problem

    @property
    def hears_all(self) -> bool:
        """Whether it hears of all work, also of what this store itself has queued, at once."""
        return False

    def close(self) -> None:
        """Stops listening. A call of the listener that is under way may still finish."""


class Store(ABC):
    """A database that holds executions: its roles, and what belongs to all of them."""

    package: ClassVar[str]  # where its statements and migrations are
    lends_connections = False  # whether `turns.complete_within` can be used
    limits: Limits  # of families

    definitions: DefinitionStore
    executions: ExecutionStore
    claims: ClaimStore
    turns: TurnStore
    messages: MessageStore
    people: PeopleStore
    schedules: ScheduleStore
    access: AccessStore
    workers: WorkerStore
    maintenance: MaintenanceStore
    reading: ReadingStore
    operating: OperatingStore
    logs: LogStore
    schema: SchemaStore

    @abstractmethod
    def close(self) -> None:
        """Closes the connections of this store."""

    @property
    def era(self) -> int:
        """A number that changes whenever any caller loses a connection.

        Behind the next connection may be a database that knows less, for example after a failover.
        """
        return 0

    @abstractmethod
    def listen(self, heard: Callable[[frozenset[str]], None]) -> Listening:
        """Calls `heard` from another thread, soon after something in these queues can be claimed.

        An empty set means that it may be any queue. It is a hint: some are missed, and some are
        about work that others have already claimed. Whenever listening begins, also after a lost
        connection, `heard` is called for all queues.
        """

    @abstractmethod
    def listen_ends(self, ended: Callable[[frozenset[str]], None]) -> Listening:
        """Calls `ended` from another thread, soon after executions without a parent have ended.

        It is given their ids. An empty set means that any may have ended. It is a hint, as those of
        `listen` are.
        """

    @abstractmethod
    def within(self, connection: Any) -> Store:
        """Returns the same tables on the caller's own connection, which `callers.reach` knows.

        What is started, sent or published there is committed with the caller's transaction, or not
        at all. Raises `TypeError` or `ValueError` for a connection that cannot be used.
        """

    @abstractmethod
    def sibling(self) -> Store:
        """Returns the same database on connections of its own.

        An SQLite database in memory has only one connection, so it returns itself.
        """

    @abstractmethod
    def expect(self, threads: int) -> None:
        """Prepares for calls from this many threads at once, so that none waits for another."""

    def recover(self, limit: int, crash_limit: int, dead: bool = False) -> Recovered:
        """Runs the maintenance that is due: rescue, cancelled tasks, terminated families, and
        forgetting old workers.

        If nothing is due, it costs one query.
        """
        due = self.maintenance.due(dead)
        if due.forgotten:
            self.maintenance.forget_workers(limit)
        rescued = self.maintenance.rescue(limit, crash_limit, dead) if due.lost else ()
        terminated = self.executions.end_terminated(limit) if due.terminated else ()
        return Recovered(
            tuple(rescued),
            tuple(self.maintenance.end_cancelled_tasks(limit)) if due.cancelled else (),
            due.slot_us,
            tuple(terminated),
        )
