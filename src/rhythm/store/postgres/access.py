"""Tokens and the audit chain on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from rhythm.store.access import Act, Actor
from rhythm.store.postgres.session import Session


class PostgresAccess(Session):
    def _audit(self, actor: Actor | None, acts: Sequence[Act], now: int) -> None:
        """Records what this transaction does, as its last statement; without an actor nobody asked for it."""
