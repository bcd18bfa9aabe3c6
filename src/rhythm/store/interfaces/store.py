"""A database, as the engine sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import MethodType
from typing import Any, ClassVar

from rhythm.limits import Limits
from rhythm.store.interfaces.access import AccessStore
from rhythm.store.interfaces.claims import ClaimStore
from rhythm.store.interfaces.definitions import DefinitionStore
from rhythm.store.interfaces.executions import ExecutionStore
from rhythm.store.interfaces.maintenance import MaintenanceStore, Recovered
from rhythm.store.interfaces.messages import MessageStore
from rhythm.store.interfaces.operating import OperatingStore
from rhythm.store.interfaces.people import PeopleStore
from rhythm.store.interfaces.reading import ReadingStore
from rhythm.store.interfaces.schedules import ScheduleStore
from rhythm.store.interfaces.schema import SchemaStore
from rhythm.store.interfaces.turns import TurnStore
from rhythm.store.interfaces.workers import WorkerStore


def driver_connection(given: Any) -> Any:
    """The driver's own connection behind what a library hands out: a connection or session of
    SQLAlchemy, a connection of Django."""
    if isinstance(getattr(given, "connection", None), MethodType):  # a session
        given = given.connection()
    behind = getattr(given, "connection", None)
    return given if behind is None else getattr(behind, "driver_connection", behind)


class Listening:
    """What hears of new work, until it is closed. `problem`: why it hears nothing, in words; then
    work is found by looking for it."""

    def __init__(self, problem: str = "") -> None:
        self.problem = problem

    def close(self) -> None:
        """Nothing more is heard; somebody who is being told may still be told."""


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
    schema: SchemaStore

    @abstractmethod
    def close(self) -> None: ...

    @property
    def era(self) -> int:
        """Another number after a connection was lost, whoever met it: behind the next one may be a
        database that knows less."""
        return 0

    @abstractmethod
    def listen(self, heard: Callable[[frozenset[str]], None]) -> Listening:
        """Calls `heard` from another thread, soon after something in these queues can be claimed;
        without any, it may be in all.

        It is a hint: some are not heard, and some are about what others have taken already.
        Whenever hearing begins, also after a while without a connection, it is called for all
        queues.
        """

    @abstractmethod
    def within(self, connection: Any) -> Store:
        """The same tables on the caller's own connection: what is started there comes with the
        caller's commit, or not at all."""

    @abstractmethod
    def sibling(self) -> Store:
        """The same database on connections of its own; an SQLite database in memory has only one,
        and is its own sibling."""

    @abstractmethod
    def expect(self, threads: int) -> None:
        """So many threads may ask at once from now on: they are not to wait for each other."""

    def recover(self, limit: int, crash_limit: int, dead: bool = False) -> Recovered:
        """`rescue`, `end_cancelled_tasks`, `end_terminated` and forgetting workers of long ago: one
        look at the database while there is nothing to do."""
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
