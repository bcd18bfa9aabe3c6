"""Tokens and the audit chain on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from rhythm.store.access import Act, Actor
from rhythm.store.sqlite.session import Session


class SqliteAccess(Session):
    def _audit(self, actor: Actor | None, acts: Sequence[Act], now: int) -> None:
        """Records what this transaction does, as its last statement; without an actor nobody asked for it."""
