"""Stores in a forked process: connections that were opened before the fork belong to the parent.

The child neither uses nor closes them, and opens its own.
"""

from __future__ import annotations

import os
from typing import Any, Protocol
from weakref import WeakSet


class Renewed(Protocol):
    """A store, or a part of it, that can be opened again after a fork."""

    def renew(self) -> Any:
        """Opens everything again, in the child. Returns what was open before."""


_stores: WeakSet[Renewed] = WeakSet()
# Kept, because Python would close unreferenced connections, and that would close them for the
# parent, too.
_inherited: list[Any] = []


def renew_after_fork(store: Renewed) -> None:
    """Has this store opened again in every child process that is forked from now on."""
    _stores.add(store)


def forget(store: Renewed) -> None:
    """Forgets a store that was closed: a child process has nothing to open again."""
    _stores.discard(store)


def _renew() -> None:
    _inherited.extend(store.renew() for store in list(_stores))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
