"""Stores in a process that was forked: what was opened before is the parent's. The child neither
uses nor closes it, and opens its own."""

from __future__ import annotations

import os
from typing import Any, Protocol
from weakref import WeakSet


class Renewed(Protocol):
    def renew(self) -> Any:
        """Opens everything anew, in the child; returns what was open before."""


_stores: WeakSet[Renewed] = WeakSet()
# kept: what nobody refers to any more would be closed, for the parent, too
_inherited: list[Any] = []


def renew_after_fork(store: Renewed) -> None:
    _stores.add(store)


def forget(store: Renewed) -> None:
    """It was closed: a child has nothing to open."""
    _stores.discard(store)


def _renew() -> None:
    _inherited.extend(store.renew() for store in list(_stores))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
