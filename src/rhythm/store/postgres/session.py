"""What makes a method a transaction, of whatever has a connection."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from rhythm.store.postgres.connection import Connection

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Connected")
Method = Callable[Concatenate[S, P], T]


class Connected(Protocol):
    """Whatever has a connection to be asked on."""

    @property
    def db(self) -> Connection: ...


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


def autocommit(method: Method[S, P, T]) -> Method[S, P, T]:
    """Statements that need no transaction around them."""

    @wraps(method)
    def inside(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.db.autocommit(lambda: method(self, *args, **kwargs))

    return inside
