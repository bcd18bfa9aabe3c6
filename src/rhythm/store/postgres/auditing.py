"""The audit on PostgreSQL: checks the actor's token, and adds rows to the chain.

These are the last two locks of a transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rhythm.store.access import Act, Actor, StoredToken, authorise
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
            authorise(actor, self.share_token(actor.token))

    def add(self, actor: Actor | None, acts: Sequence[Act], now: int | None) -> None:
        """Adds acts to the audit, as the last statement of the transaction.

        Without an actor nothing is added. It does not check the token (`record` does).
        """
        if actor is not None:
            who = {"actor": actor.name, "token": actor.token, "source": actor.source}
            self.db.write("insert_audit", [fields(act) for act in acts], at=now, **who)

    def record(self, actor: Actor | None, acts: Sequence[Act], now: int | None = None) -> None:
        """Records what this transaction does, at its end. Raises `TokenRevoked` or `Denied` if the
        actor's token no longer allows it."""
        if acts:
            self.authorise(actor)
            self.add(actor, acts, now)

    def business_roles(
        self, actor: Actor, now: int, execution_id: str = ""
    ) -> tuple[Collection[str] | None, Collection[str]]:
        """Returns the business roles that an actor holds now for this execution (None: all), and
        the roles that were taken away."""
        if actor.token is None:
            return actor.roles, ()
        shared = self.share_token(actor.token)
        token = shared.replace(now=now) if shared else None
        roots = self.db.all("root_names", ids=[execution_id]) if token and token.limited else []
        return token.entitlement(roots[0][1] if roots else None) if token else ((), ())

    def share_token(self, id: str) -> StoredToken | None:
        """Returns the token, locked so that nobody can change it until the end of the transaction.
        None: there is no such token."""
        found = records(StoredToken, self.db.all("share_token", id=id))
        return found[0] if found else None
