"""Tokens and the audit chain on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from rhythm.store.access import AccessStore, Act, Actor, AuditRow, Filter, Grant, StoredToken, authorise, token_acts
from rhythm.store.postgres.connection import SQL
from rhythm.store.postgres.rows import US
from rhythm.store.postgres.session import Session, alone, transaction
from rhythm.store.reading import Found
from rhythm.store.rows import fields, records


class PostgresAccess(Session, AccessStore):
    # tokens

    @transaction
    def create_token(self, grant: Grant, actor: Actor | None = None) -> StoredToken | None:
        roles = {"roles": json.dumps(grant.roles), "business_roles": json.dumps(grant.business_roles)}
        expires_us = None if grant.expires_s is None else int(grant.expires_s * US)
        told = {"by": _name(actor), "expires_us": expires_us}
        made = records(StoredToken, self.db.all("insert_token", **{**fields(grant), **roles, **told}))
        return self._recorded(None, made[0], actor) if made else None

    def token(self, id: str) -> StoredToken | None:
        found = records(StoredToken, self.door.alone(lambda: self.door.all("token", id=id)))
        return found[0] if found else None

    def tokens(self) -> list[StoredToken]:
        return records(StoredToken, self._all("tokens"))

    def touch_token(self, id: str) -> None:
        self.door.alone(lambda: self.door.do("touch_token", id=id))

    @transaction
    def revoke_token(self, id: str, actor: Actor | None = None) -> bool | None:
        before = self._lock_token(id)
        if before is None or before.revoked_at is not None:
            return None if before is None else False
        self.db.do("revoke_token", id=id, now=before.now, by=_name(actor))
        self._recorded(before, before.replace(revoked_at=before.now, revoked_by=_name(actor)), actor)
        return True

    @transaction
    def change_token(
        self, id: str, roles: tuple[str, ...] | None, business_roles: tuple[str, ...] | None, actor: Actor | None = None
    ) -> StoredToken | None:
        before = self._lock_token(id)
        if before is None or before.revoked_at is not None:
            return before
        after = before.changed(roles, business_roles)
        names = {column: json.dumps(getattr(after, column)) for column in ("roles", "business_roles", "taken_roles")}
        self.db.do("change_token", id=id, **names)
        return self._recorded(before, after, actor)

    def _lock_token(self, id: str) -> StoredToken | None:
        found = records(StoredToken, self.db.all("lock_token", id=id))
        return found[0] if found else None

    def _share_token(self, id: str) -> StoredToken | None:
        found = records(StoredToken, self.db.all("share_token", id=id))
        return found[0] if found else None

    def _recorded(self, before: StoredToken | None, after: StoredToken, actor: Actor | None) -> StoredToken:
        self._record(actor, token_acts(before, after), after.now)
        return after

    def _business_roles(self, actor: Actor, now: int, execution_id: str = "") -> tuple[Collection[str] | None, Collection[str]]:
        """The roles that an actor holds at this moment for this execution (None: all), and those that were taken away."""
        if actor.token is None:
            return actor.roles, ()
        shared = self._share_token(actor.token)
        token = shared.replace(now=now) if shared else None
        roots = self.db.all("root_names", ids=[execution_id]) if token and token.limited else []
        return token.entitlement(roots[0][1] if roots else None) if token else ((), ())

    def _authorise(self, actor: Actor | None) -> None:
        """Refuses an act with a token that does not allow it any more; until the end of the transaction it stays as it is."""
        if actor is not None and actor.token is not None:
            authorise(actor, self._share_token(actor.token))

    # the audit

    def _audit(self, actor: Actor | None, acts: Sequence[Act], now: int | None) -> None:
        """Adds to the audit, as the last statement of the transaction; without an actor nobody asked for it. For acts: see `_record`."""
        if actor is not None:
            who = {"actor": actor.name, "token": actor.token, "source": actor.source}
            self.db.batch("insert_audit", [fields(act) for act in acts], at=now, **who)

    def _record(self, actor: Actor | None, acts: Sequence[Act], now: int | None = None) -> None:
        """Records what this transaction does, at its end, or refuses it: if the token of the actor does not allow it any more."""
        if acts:
            self._authorise(actor)
            self._audit(actor, acts, now)

    @alone
    def audit(self, wanted: Filter, limit: int, most_bytes: int | None = None) -> Found[AuditRow]:
        where = [
            condition
            for condition, value in zip(
                (b"actor = %(actor)s", b"action = %(action)s", b"object = %(object)s", b"n < %(before)s"), wanted.astuple(), strict=True
            )
            if value is not None
        ]
        text = SQL["audit"] + b" WHERE " * bool(where) + b" AND ".join(where) + b" ORDER BY n DESC LIMIT %(limit)s"
        rows, cut = self.db.some(text, {**fields(wanted), "limit": limit}, ("detail", "object"), most_bytes)
        return Found.of(records(AuditRow, rows), cut)

    def audit_after(self, n: int, limit: int) -> list[AuditRow]:
        return records(AuditRow, self._all("audit_after", n=n, limit=limit))


def _name(actor: Actor | None) -> str:
    return actor.name if actor else ""
