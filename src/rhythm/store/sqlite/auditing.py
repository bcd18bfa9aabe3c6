"""The audit on SQLite: checks the actor's token, and adds rows to the chain.

Always inside a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from rhythm.store.access import Act, Actor, Head, StoredToken, authorise, chained
from rhythm.store.rows import fields, records
from rhythm.store.sqlite.session import SqliteSession


class SqliteAuditor:
    """Refuses acts that the token of an actor no longer allows, and records the others."""

    def __init__(self, db: SqliteSession) -> None:
        self.db = db

    def token(self, id: str, now: int) -> StoredToken | None:
        """Returns the token with this id. None: there is no such token."""
        return self.db.first(StoredToken, "token", {"id": id, "now": now})

    def business_roles(
        self, actor: Actor, now: int, execution_id: str = ""
    ) -> tuple[Collection[str] | None, Collection[str]]:
        """Returns the business roles that an actor holds now for this execution (None: all), and
        the roles that were taken away."""
        if actor.token is None:
            return actor.roles, ()
        token = self.token(actor.token, now)
        root = (
            self.db.one("root_names", json.dumps([execution_id]))
            if token and token.limited
            else None
        )
        return token.entitlement(root and root[1]) if token else ((), ())

    def authorise(self, actor: Actor | None, now: int) -> None:
        """Raises `TokenRevoked` or `Denied` if the actor's token no longer allows the act."""
        if actor is not None and actor.token is not None:
            authorise(actor, self.token(actor.token, now))

    def add(self, actor: Actor | None, acts: Sequence[Act], now: int) -> None:
        """Adds acts to the audit, without checking the token (`record` checks it).

        Without an actor nothing is added.
        """
        if actor is None or not acts:
            return
        (head,) = records(Head, self.db.all("audit_head"))
        rows = chained(head, actor, acts, now)
        for row in rows:
            self.db.all("insert_audit", fields(row))

    def record(self, actor: Actor | None, acts: Sequence[Act], now: int) -> None:
        """Records what this transaction does. Raises `TokenRevoked` or `Denied` if the actor's
        token no longer allows it."""
        if acts:
            self.authorise(actor, now)
            self.add(actor, acts, now)
