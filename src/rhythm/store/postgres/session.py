"""Decorators that run a method in a transaction, for objects that have a connection."""

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
    """An object that has a connection."""

    @property
    def db(self) -> Connection:
        """The connection."""


def transaction(method: Method[S, P, T]) -> Method[S, P, T]:
    """Runs the method in one transaction, and again after a conflict with another one."""

    @wraps(method)
    def inside(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.db.transaction(lambda: method(self, *args, **kwargs))

    return inside


def service(method: Method[S, P, T]) -> Method[S, P, T]:
    """Runs the method in a transaction that waits only a short time for locks: services try again
    later."""

    @wraps(method)
    def inside(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        self.db.hasten()
        return method(self, *args, **kwargs)

    return transaction(inside)


def autocommit(method: Method[S, P, T]) -> Method[S, P, T]:
    """Runs the method without a transaction around it: each statement is committed by itself."""

    @wraps(method)
    def inside(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.db.autocommit(lambda: method(self, *args, **kwargs))

    return inside
