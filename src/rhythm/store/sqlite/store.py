"""The store on SQLite, put together: one session, and the roles on it.

Every method of a role is one transaction, and the only writer while it lasts (`session`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rhythm.limits import Limits
from rhythm.store.callers import in_turn, reach
from rhythm.store.interfaces.store import Listening, Store
from rhythm.store.sqlite.access import SqliteAccess
from rhythm.store.sqlite.auditing import SqliteAuditor
from rhythm.store.sqlite.claims import SqliteClaims
from rhythm.store.sqlite.definitions import SqliteDefinitions
from rhythm.store.sqlite.exchange import SqliteExchange
from rhythm.store.sqlite.executions import SqliteExecutions
from rhythm.store.sqlite.logs import SqliteLogs
from rhythm.store.sqlite.maintenance import SqliteMaintenance
from rhythm.store.sqlite.messages import SqliteMessages
from rhythm.store.sqlite.operating import SqliteOperating
from rhythm.store.sqlite.people import SqlitePeople
from rhythm.store.sqlite.reading import SqliteReading
from rhythm.store.sqlite.rows import SqliteRows
from rhythm.store.sqlite.schedules import SqliteSchedules
from rhythm.store.sqlite.schema import SqliteSchema
from rhythm.store.sqlite.session import PACKAGE, Clock, SqliteSession, clock_us
from rhythm.store.sqlite.turns import SqliteTurns
from rhythm.store.sqlite.workers import SqliteWorkers


class SqliteStore(Store):
    """Executions in one SQLite file, or in memory (`:memory:`)."""

    package = PACKAGE

    def __init__(
        self,
        path: str,
        clock: Clock = clock_us,
        create: bool = True,
        db: SqliteSession | None = None,
    ) -> None:
        """Without `create` the file must exist, and opening it changes nothing in it.

        `db`: a session that is open already.
        """
        self.db = db = db or SqliteSession(path, clock, create)
        self.rows, self.auditor = SqliteRows(db), SqliteAuditor(db)
        shared = db, self.rows, self.auditor
        exchange = SqliteExchange(db, self.rows)
        self.schema = SqliteSchema(*shared)
        self.executions = SqliteExecutions(*shared)
        self.claims = SqliteClaims(*shared)
        self.turns = SqliteTurns(*shared, exchange)
        self.messages = SqliteMessages(*shared, exchange)
        self.people = people = SqlitePeople(*shared)
        self.schedules = schedules = SqliteSchedules(*shared)
        self.definitions = SqliteDefinitions(*shared, schedules)
        self.access = SqliteAccess(*shared)
        self.workers = SqliteWorkers(*shared)
        self.maintenance = SqliteMaintenance(*shared, people)
        self.reading = SqliteReading(*shared)
        self.operating = SqliteOperating(*shared)
        self.logs = SqliteLogs(*shared)

    @property
    def limits(self) -> Limits:
        return self.rows.limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self.rows.limits = limits

    def expect(self, threads: int) -> None:
        """Does nothing: each thread that reads has a connection of its own."""

    def close(self) -> None:
        self.db.close()

    def listen(self, heard: Callable[[frozenset[str]], None]) -> Listening:
        """Listens for changes of the file.

        A database in memory needs no listener: all its users are in this process, and notify each
        other.
        """
        from rhythm.store.sqlite.listening import SqliteListening

        path = self.db.path
        return Listening() if path == ":memory:" else SqliteListening(path, heard)

    def listen_ends(self, ended: Callable[[frozenset[str]], None]) -> Listening:
        """Calls `ended` whenever another connection has written: what, nobody says."""
        return self.listen(ended)

    def within(self, connection: Any) -> SqliteStore:
        from rhythm.store.sqlite.callers import caller_of
        from rhythm.store.sqlite.joined import JoinedSession

        path, clock = self.db.path, self.db.clock
        reached = reach(connection)
        turns = partial(in_turn, reached)
        session = JoinedSession(path, clock, caller_of(reached, path), turns)
        joined = SqliteStore(path, db=session)
        joined.limits = self.limits
        return joined

    def sibling(self) -> SqliteStore:
        return (
            self
            if self.db.path == ":memory:"
            else SqliteStore(self.db.path, self.db.clock, create=False)
        )
