"""Tokens and the audit chain on SQLite."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rhythm.store.access import Act, Actor
from rhythm.store.sqlite.session import Session


class SqliteAccess(Session):
    def _audit(self, actor: Actor | None, acts: Sequence[Act], now: int) -> None:
        """Records what this transaction does, as its last statement; without an actor nobody asked for it."""

    def _business_roles(self, actor: Actor, now: int) -> tuple[Collection[str] | None, Collection[str]]:
        """The roles that an actor holds at this moment (None: all), and those that were taken away."""
        return actor.roles, ()
