"""The audit on SQLite: checks the actor's token, and adds rows to the chain.

Always inside a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from rhythm.store.access import (
    Act,
    Actor,
    BusinessRoles,
    Head,
    StoredToken,
    authorise,
    business_roles,
    chained,
    limited_to_names,
)
from rhythm.store.rows import fields, records
from rhythm.store.sqlite.session import SqliteSession


class SqliteAuditor:
    """Refuses acts that the token of an actor no longer allows, and records the others."""

    def __init__(self, db: SqliteSession) -> None:
        self.db = db

    def token(self, id: str, now: int) -> StoredToken | None:
        """Returns the token with this id. None: there is no such token."""
        return self.db.first(StoredToken, "token", {"id": id, "now": now})

    def business_roles(self, asked: Sequence[tuple[Actor, str]], now: int) -> list[BusinessRoles]:
        """Returns the business roles that actors hold now, each for an execution."""
        ids = sorted({by.token for by, _ in asked if by.token is not None})
        rows = self.db.all("tokens_of", {"ids": json.dumps(ids), "now": now}) if ids else []
        tokens = {token.id: token for token in records(StoredToken, rows)}
        limited = limited_to_names(asked, tokens)
        roots = dict(self.db.all("root_names", json.dumps(limited))) if limited else {}
        return business_roles(asked, tokens, roots, now)

    def authorise(self, actor: Actor | None, now: int) -> None:
        """Raises `TokenRevoked` or `Denied` if the actor's token no longer allows the act."""
        if actor is not None and actor.token is not None:
            authorise(actor, self.token(actor.token, now))

    def add(self, actor: Actor | None, acts: Sequence[Act], now: int) -> None:
        """Adds acts to the audit, without checking the token (`record` checks it).

        Without an actor nothing is added.
        """
        if actor is not None:
            self.add_all([(actor, act) for act in acts], now)

    def add_all(self, done: Sequence[tuple[Actor, Act]], now: int) -> None:
        """Adds acts of several actors to the audit, in this order, as `add` does."""
        if done:
            (head,) = records(Head, self.db.all("audit_head"))
            for row in chained(head, done, now):
                self.db.all("insert_audit", fields(row))

    def record(self, actor: Actor | None, acts: Sequence[Act], now: int) -> None:
        """Records what this transaction does. Raises `TokenRevoked` or `Denied` if the actor's
        token no longer allows it."""
        if acts:
            self.authorise(actor, now)
            self.add(actor, acts, now)
