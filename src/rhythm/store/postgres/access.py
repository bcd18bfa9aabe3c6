"""Tokens and the audit chain on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from rhythm.store.access import Actor, AuditRow, Chain, Filter, Grant, Head, StoredToken, token_acts
from rhythm.store.doctor import verified
from rhythm.store.interfaces.access import AccessStore
from rhythm.store.postgres.auditing import PostgresAuditor
from rhythm.store.postgres.connection import SQL, Connection
from rhythm.store.postgres.doctor import ask
from rhythm.store.postgres.role import PostgresRole
from rhythm.store.postgres.rows import US, PostgresRows
from rhythm.store.postgres.session import autocommit, transaction
from rhythm.store.reading import Found
from rhythm.store.rows import fields, records


class PostgresAccess(PostgresRole, AccessStore):
    """Tokens and the audit chain.

    The connection `door` is used only to look up tokens and to record their use, so it is never
    busy with something large.
    """

    def __init__(
        self, db: Connection, rows: PostgresRows, auditor: PostgresAuditor, door: Connection
    ) -> None:
        super().__init__(db, rows, auditor)
        self.door = door

    @transaction
    def create_token(self, grant: Grant, actor: Actor | None = None) -> StoredToken | None:
        roles = {
            "roles": json.dumps(grant.roles),
            "business_roles": json.dumps(grant.business_roles),
        }
        expires_us = None if grant.expires_s is None else int(grant.expires_s * US)
        detail = {"by": _name(actor), "expires_us": expires_us}
        made = records(
            StoredToken, self.db.all("insert_token", **{**fields(grant), **roles, **detail})
        )
        return self._recorded(None, made[0], actor) if made else None

    def _recorded(
        self, before: StoredToken | None, after: StoredToken, actor: Actor | None
    ) -> StoredToken:
        self.auditor.record(actor, token_acts(before, after), after.now)
        return after

    def tokens_of(self, ids: Sequence[str]) -> dict[str, StoredToken]:
        rows = self.door.autocommit(lambda: self.door.all("tokens_of", ids=list(ids)))
        return {token.id: token for token in records(StoredToken, rows)}

    def tokens(self) -> list[StoredToken]:
        return records(StoredToken, self.db.ask("tokens"))

    def touch_tokens(self, ids: Sequence[str]) -> None:
        self.door.autocommit(lambda: self.door.do("touch_tokens", ids=list(ids)))

    @transaction
    def revoke_token(self, id: str, actor: Actor | None = None) -> bool | None:
        before = self._lock_token(id)
        if before is None or before.revoked_at is not None:
            return None if before is None else False
        self.db.do("revoke_token", id=id, now=before.now, by=_name(actor))
        self._recorded(
            before, before.replace(revoked_at=before.now, revoked_by=_name(actor)), actor
        )
        return True

    def _lock_token(self, id: str) -> StoredToken | None:
        found = records(StoredToken, self.db.all("lock_token", id=id))
        return found[0] if found else None

    @transaction
    def change_token(
        self,
        id: str,
        roles: tuple[str, ...] | None,
        business_roles: tuple[str, ...] | None,
        actor: Actor | None = None,
    ) -> StoredToken | None:
        before = self._lock_token(id)
        if before is None or before.revoked_at is not None:
            return before
        after = before.changed(roles, business_roles)
        names = {
            column: json.dumps(getattr(after, column))
            for column in ("roles", "business_roles", "taken_roles")
        }
        self.db.do("change_token", id=id, **names)
        return self._recorded(before, after, actor)

    @autocommit
    def audit(self, wanted: Filter, limit: int, most_bytes: int | None = None) -> Found[AuditRow]:
        where = [
            condition
            for condition, value in zip(
                (
                    b"actor = %(actor)s",
                    b"action = %(action)s",
                    b"object = %(object)s",
                    b"n < %(before)s",
                ),
                wanted.astuple(),
                strict=True,
            )
            if value is not None
        ]
        text = (
            SQL["audit"]
            + b" WHERE " * bool(where)
            + b" AND ".join(where)
            + b" ORDER BY n DESC LIMIT %(limit)s"
        )
        rows, cut = self.db.some(
            text, {**fields(wanted), "limit": limit}, ("detail", "object"), most_bytes
        )
        return Found.of(records(AuditRow, rows), cut)

    def audit_after(self, n: int, limit: int) -> list[AuditRow]:
        return records(AuditRow, self.db.ask("audit_after", n=n, limit=limit))

    @transaction
    def audit_chain(
        self,
        known: Head | None = None,
        after: Head | None = None,
        limit: int | None = None,
        size: int | None = None,
    ) -> Chain:
        self.db.freeze()
        return verified(partial(ask, self.db), known, after, limit, size)


def _name(actor: Actor | None) -> str:
    return actor.name if actor else ""
