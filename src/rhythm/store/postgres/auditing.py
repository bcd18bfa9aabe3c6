"""The audit on PostgreSQL: checks the actor's token, and adds rows to the chain.

These are the last two locks of a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rhythm.store.access import (
    Act,
    Actor,
    BusinessRoles,
    StoredToken,
    authorise,
    business_roles,
    limited_to_names,
)
from rhythm.store.postgres.connection import Connection
from rhythm.store.rows import fields, records


class PostgresAuditor:
    """Records what transactions on one connection do. Always inside a transaction."""

    def __init__(self, db: Connection) -> None:
        self.db = db

    def authorise(self, actor: Actor | None) -> None:
        """Raises `TokenRevoked` or `Denied` if the actor's token no longer allows the act.

        Nobody can change the token until the end of the transaction.
        """
        if actor is not None and actor.token is not None:
            authorise(actor, self.share_tokens([actor.token]).get(actor.token))

    def add(self, actor: Actor | None, acts: Sequence[Act], now: int | None) -> None:
        """Adds acts to the audit, as the last statement of the transaction.

        Without an actor nothing is added. It does not check the token (`record` does).
        """
        if actor is not None:
            self.add_all([(actor, act) for act in acts], now)

    def add_all(self, done: Sequence[tuple[Actor, Act]], now: int | None) -> None:
        """Adds acts of several actors to the audit, in this order, as `add` does."""
        rows = [
            {"actor": by.name, "token": by.token, "source": by.source, **fields(act)}
            for by, act in done
        ]
        self.db.write("insert_audit", rows, at=now)

    def record(self, actor: Actor | None, acts: Sequence[Act], now: int | None = None) -> None:
        """Records what this transaction does, at its end. Raises `TokenRevoked` or `Denied` if the
        actor's token no longer allows it."""
        if acts:
            self.authorise(actor)
            self.add(actor, acts, now)

    def business_roles(self, asked: Sequence[tuple[Actor, str]], now: int) -> list[BusinessRoles]:
        """Returns the business roles that actors hold now, each for an execution. Nobody can change
        their tokens until the end of the transaction."""
        tokens = self.share_tokens(by.token for by, _ in asked if by.token is not None)
        limited = limited_to_names(asked, tokens)
        roots = dict(self.db.all("root_names", ids=limited)) if limited else {}
        return business_roles(asked, tokens, roots, now)

    def share_tokens(self, ids: Iterable[str]) -> dict[str, StoredToken]:
        """Returns these tokens by id, locked so that nobody can change them until the end of the
        transaction. Those that do not exist are left out."""
        asked = sorted(set(ids))
        rows = self.db.all("share_tokens", ids=asked) if asked else []
        return {token.id: token for token in records(StoredToken, rows)}
