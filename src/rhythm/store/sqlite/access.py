"""Tokens and the audit chain on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rhythm.store.access import AccessStore, Act, Actor, AuditRow, Head, StoredToken, chained
from rhythm.store.sqlite.session import SQL, Session


class SqliteAccess(Session, AccessStore):
    def _audit(self, actor: Actor | None, acts: Sequence[Act], now: int) -> None:
        """Records what this transaction does, as its last statement; without an actor nobody asked for it."""
        if actor is None or not acts:
            return
        rows = chained(Head(*self._one("audit_head")), actor, acts, now)
        for row in rows:
            self._all("insert_audit", *row.astuple())
        self._all("move_audit_head", rows[-1].n, rows[-1].hash)

    def _business_roles(self, actor: Actor) -> tuple[frozenset[str], frozenset[str]] | None:
        """The business roles that count in this transaction, and those taken away before. None: the token is no longer valid."""
        if actor.token is None:
            return frozenset(actor.roles), frozenset()
        row = self._one("token", actor.token)
        return _token(row, self.clock()).entitlement() if row else None

    def audit_after(self, n: int, limit: int) -> list[AuditRow]:
        return [AuditRow(*row) for row in self._read(SQL["audit_after"], (n, limit))]


def _token(row: Any, now: int) -> StoredToken:
    roles, business, taken = (tuple(json.loads(text)) for text in row[3:6])
    return StoredToken(*row[:3], roles, business, taken, *row[6:12], now=now)
