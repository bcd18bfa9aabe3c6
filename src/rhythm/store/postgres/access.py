"""Tokens and the audit chain on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rhythm.store.access import AccessStore, Act, Actor, AuditRow, Head, StoredToken, chained
from rhythm.store.postgres.connecting import Row
from rhythm.store.postgres.rows import fields
from rhythm.store.postgres.session import Session


class PostgresAccess(Session, AccessStore):
    def _audit(self, actor: Actor | None, acts: Sequence[Act], now: int) -> None:
        """Records what this transaction does, as its last statement; without an actor nobody asked for it."""
        if actor is None or not acts:
            return
        rows = chained(Head(*self.db.all("lock_audit_head")[0]), actor, acts, now)
        self.db.batch("insert_audit", [fields(row) for row in rows], last=rows[-1].n, head=rows[-1].hash)

    def _business_roles(self, actor: Actor) -> tuple[frozenset[str], frozenset[str]] | None:
        """The business roles that count in this transaction, and those taken away before. None: the token is no longer valid."""
        if actor.token is None:
            return frozenset(actor.roles), frozenset()
        rows = self.db.all("share_token", id=actor.token)
        return _token(rows[0]).entitlement() if rows else None

    def audit_after(self, n: int, limit: int) -> list[AuditRow]:
        return [AuditRow(*row) for row in self._all("audit_after", n=n, limit=limit)]


def _token(row: Row) -> StoredToken:
    roles, business, taken = (tuple(json.loads(text)) for text in row[3:6])
    return StoredToken(*row[:3], roles, business, taken, *row[6:])
