"""The way of the store to PostgreSQL, and what makes a method of it a transaction."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from rhythm.store.forked import renew_after_fork
from rhythm.store.postgres.connecting import Access, Row, connected
from rhythm.store.postgres.connection import DIRECT, Clock, Connection, Spare
from rhythm.store.postgres.hints import Notifier, channel_of
from rhythm.store.postgres.rows import Rows

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Session")
Method = Callable[Concatenate[S, P], T]


def transaction(method: Method[S, P, T]) -> Method[S, P, T]:
    """All of the method in one transaction; it is run again when it met another one."""

    @wraps(method)
    def inside(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.db.transaction(lambda: method(self, *args, **kwargs))

    return inside


def service(method: Method[S, P, T]) -> Method[S, P, T]:
    """A transaction of what is done again after a while: it does not wait long for others."""

    @wraps(method)
    def inside(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        self.db.hasten()
        return method(self, *args, **kwargs)

    return transaction(inside)


def alone(method: Method[S, P, T]) -> Method[S, P, T]:
    """Statements that need no transaction around them."""

    @wraps(method)
    def inside(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.db.alone(lambda: method(self, *args, **kwargs))

    return inside


class Session:
    """One schema of a PostgreSQL database. `clock` replaces the database's clock in tests."""

    def __init__(self, url: str, schema: str = "rhythm", clock: Clock | None = None, access: Access = DIRECT) -> None:
        self._begin(url, schema, clock, access)
        renew_after_fork(self)

    def _begin(self, url: str, schema: str, clock: Clock | None, access: Access) -> None:
        self._notifier = Notifier(lambda: connected(url, access.answer_s, prepares=False), channel_of(schema))
        self.db = Connection(url, schema, clock, access, self._notifier.tell if access.notify else None)
        self.door = Connection(url, schema, clock, access)  # to find out who comes in; it connects when the first one does
        self.rows = Rows(self.db)
        self.spare = Spare(url, access)

    def renew(self) -> Any:
        before, db = (self._notifier, self.db, self.spare, self.door), self.db
        self._begin(db.url, db.schema, db.clock, db.access)
        self.db.era = db.era + 1
        return before

    def close(self) -> None:
        self.db.close()
        self.door.close()
        self.spare.close()
        self._notifier.close()

    @alone
    def _all(self, name: str, /, **values: Any) -> list[Row]:
        return self.db.all(name, **values)
