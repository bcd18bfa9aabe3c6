"""The store on PostgreSQL, put together: every method of its roles is one transaction of set-based
statements, in the lock order that `rows` describes.

Any thread may use it. It has a schema of its own, so several stores can share a database.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

from rhythm.limits import Limits
from rhythm.store.callers import in_turn, reach
from rhythm.store.forked import renew_after_fork
from rhythm.store.interfaces.store import Listening, Store
from rhythm.store.postgres.access import PostgresAccess
from rhythm.store.postgres.auditing import PostgresAuditor
from rhythm.store.postgres.callers import caller_of
from rhythm.store.postgres.claims import PostgresClaims
from rhythm.store.postgres.connecting import Access, connected
from rhythm.store.postgres.connection import (
    DIRECT,
    PACKAGE,
    Clock,
    Connection,
    Spare,
)
from rhythm.store.postgres.definitions import PostgresDefinitions
from rhythm.store.postgres.executions import PostgresExecutions
from rhythm.store.postgres.hints import (
    Notifier,
    PostgresListening,
    channel_of,
    ends_channel_of,
)
from rhythm.store.postgres.joined import Joined, OtherServer
from rhythm.store.postgres.logs import PostgresLogs
from rhythm.store.postgres.maintenance import PostgresMaintenance
from rhythm.store.postgres.messages import PostgresMessages
from rhythm.store.postgres.operating import PostgresOperating
from rhythm.store.postgres.people import PostgresPeople
from rhythm.store.postgres.reading import PostgresReading
from rhythm.store.postgres.rows import PostgresRows
from rhythm.store.postgres.schedules import PostgresSchedules
from rhythm.store.postgres.schema import PostgresSchema
from rhythm.store.postgres.turns import PostgresTurns
from rhythm.store.postgres.workers import PostgresWorkers


class PostgresStore(Store):
    """Executions in one schema of a PostgreSQL database.

    `clock` replaces the database's clock in tests.
    """

    lends_connections = True
    package = PACKAGE

    def __init__(
        self, url: str, schema: str = "rhythm", clock: Clock | None = None, access: Access = DIRECT
    ) -> None:
        self._begin(url, schema, clock, access)
        renew_after_fork(self)

    def _begin(self, url: str, schema: str, clock: Clock | None, access: Access) -> None:
        self._notifier = Notifier(
            lambda: connected(url, access.answer_s, prepares=False),
            channel_of(schema),
            ends_channel_of(schema),
        )
        # Looks up the tokens of callers. It connects when the first one comes.
        self.door = Connection(url, schema, clock, access)
        self.spare = Spare(url, access)
        self._assemble(
            Connection(url, schema, clock, access, self._notifier if access.notify else None)
        )
        self._other = OtherServer(self.db)

    def _assemble(self, db: Connection) -> None:
        """Creates all roles on one connection."""
        self.db, self.rows, self.auditor = db, PostgresRows(db), PostgresAuditor(db)
        shared = (self.db, self.rows, self.auditor)
        schedules = PostgresSchedules(*shared)
        people = PostgresPeople(*shared)
        workers = PostgresWorkers(*shared)
        self.definitions = PostgresDefinitions(*shared, schedules)
        self.executions = PostgresExecutions(*shared)
        self.claims = PostgresClaims(*shared)
        self.turns = PostgresTurns(*shared, self.spare)
        self.messages = PostgresMessages(*shared)
        self.people = people
        self.schedules = schedules
        self.access = PostgresAccess(*shared, self.door)
        self.workers = workers
        self.maintenance = PostgresMaintenance(*shared, people)
        self.reading = PostgresReading(*shared)
        self.operating = PostgresOperating(*shared, workers)
        self.logs = PostgresLogs(*shared)
        self.schema = PostgresSchema(*shared)

    def renew(self) -> Any:
        """Opens all connections again, in a forked process. Returns what was open before."""
        before = (self._notifier, self.db, self.spare, self.door)
        db = self.db
        limits = self.rows.limits
        self._begin(db.url, db.schema, db.clock, db.access)
        self.db.era = db.era + 1
        self.rows.limits = limits
        return before

    def close(self) -> None:
        self.db.close()
        self.door.close()
        self.spare.close()
        self._notifier.close()

    @property
    def limits(self) -> Limits:
        return self.rows.limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self.rows.limits = limits

    @property
    def era(self) -> int:
        return self.db.era

    def listen(self, heard: Callable[[frozenset[str]], None]) -> Listening:
        return self._listen(channel_of(self.db.schema), heard, own=True)

    def listen_ends(self, ended: Callable[[frozenset[str]], None]) -> Listening:
        return self._listen(ends_channel_of(self.db.schema), ended, own=False)

    def _listen(
        self, channel: str, heard: Callable[[frozenset[str]], None], own: bool
    ) -> Listening:
        """`own`: it is told of this store's own commits at once, and not by NOTIFY."""
        url, access = self.db.url, self.db.access
        if not access.notify:
            return Listening()
        if access.pooled and not access.listen_url:
            return Listening(
                "no hint of new work is heard through a pooler (pooled=true): set "
                "listen_url to the URL of the server itself"
            )
        sender = lambda: connected(url, access.answer_s, prepares=False)  # noqa: E731 - two of a kind
        listen = lambda: connected(access.listen_url or url, access.answer_s)  # noqa: E731 - as above
        if not own:
            return PostgresListening(listen, sender, channel, heard)
        here = self._notifier.heard
        here.append(heard)
        return PostgresListening(
            listen, sender, channel, heard, self._backends, lambda: here.remove(heard)
        )

    def _backends(self) -> set[int]:
        """Returns the processes of the server that send this store's own hints, as far as a pooler
        does not hide them."""
        return self.db.backends | {self._notifier.pid}

    def within(self, connection: Any) -> PostgresStore:
        joined, definitions = copy(self), self.definitions
        reached = reach(connection)
        turns = partial(in_turn, reached)
        joined._assemble(Joined(caller_of(reached), self.db, self._other, in_turn=turns))
        # No caller's transaction changes them: they are read on a connection of ours.
        joined.definitions, joined.limits = definitions, self.limits
        return joined

    def sibling(self) -> PostgresStore:
        return PostgresStore(self.db.url, self.db.schema, self.db.clock, self.db.access)

    def expect(self, threads: int) -> None:
        self.db.expect(threads)
