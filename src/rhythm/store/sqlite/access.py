"""Tokens and the audit chain on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rhythm.store.access import Actor, AuditRow, Chain, Filter, Grant, Head, StoredToken, token_acts
from rhythm.store.doctor import verified
from rhythm.store.interfaces.access import AccessStore
from rhythm.store.reading import Found
from rhythm.store.rows import fields, records
from rhythm.store.sqlite.doctor import snapshot
from rhythm.store.sqlite.role import SqliteRole
from rhythm.store.sqlite.session import SQL, US


class SqliteAccess(SqliteRole, AccessStore):
    def create_token(self, grant: Grant, actor: Actor | None = None) -> StoredToken | None:
        expires_us = None if grant.expires_s is None else int(grant.expires_s * US)
        roles = {
            "roles": json.dumps(grant.roles),
            "business_roles": json.dumps(grant.business_roles),
        }
        with self.db.transaction():
            now = self.db.clock()
            made = {"now": now, "expires_us": expires_us, "by": _name(actor)}
            if not self.db.count("insert_token", {**fields(grant), **roles, **made}):
                return None
            return self._recorded(None, grant.id, actor, now)

    def tokens_of(self, ids: Sequence[str]) -> dict[str, StoredToken]:
        values = {"ids": json.dumps(list(ids)), "now": self.db.clock()}
        rows = self.db.read(SQL["tokens_of"], values)
        return {token.id: token for token in records(StoredToken, rows)}

    def tokens(self) -> list[StoredToken]:
        return records(StoredToken, self.db.read(SQL["tokens"], {"now": self.db.clock()}))

    def touch_tokens(self, ids: Sequence[str]) -> None:
        with self.db.transaction():
            for id in ids:
                self.db.all("touch_token", self.db.clock(), id)

    def revoke_token(self, id: str, actor: Actor | None = None) -> bool | None:
        with self.db.transaction():
            now = self.db.clock()
            before = self.auditor.token(id, now)
            if before is None or before.revoked_at is not None:
                return None if before is None else False
            self.db.all("revoke_token", now, _name(actor), id)
            self._recorded(before, id, actor, now)
            return True

    def change_token(
        self,
        id: str,
        roles: tuple[str, ...] | None,
        business_roles: tuple[str, ...] | None,
        actor: Actor | None = None,
    ) -> StoredToken | None:
        with self.db.transaction():
            now = self.db.clock()
            before = self.auditor.token(id, now)
            if before is None or before.revoked_at is not None:
                return before
            after = before.changed(roles, business_roles)
            self.db.all(
                "change_token",
                *(
                    json.dumps(names)
                    for names in (after.roles, after.business_roles, after.taken_roles)
                ),
                id,
            )
            return self._recorded(before, id, actor, now)

    def _recorded(
        self, before: StoredToken | None, id: str, actor: Actor | None, now: int
    ) -> StoredToken:
        """Records in the audit what this transaction did to a token. Returns the token as it is
        now."""
        after = self.auditor.token(id, now)
        assert after is not None
        self.auditor.record(actor, token_acts(before, after), now)
        return after

    def audit(self, wanted: Filter, limit: int, most_bytes: int | None = None) -> Found[AuditRow]:
        where, args = list[str](), list[Any]()
        for condition, value in zip(
            ("actor = ?", "action = ?", "object = ?", "n < ?"), wanted.astuple(), strict=True
        ):
            if value is not None:
                where.append(condition)
                args.append(value)
        text = (
            f"{SQL['audit']} {'WHERE ' * bool(where)}{' AND '.join(where)} ORDER BY n DESC LIMIT ?"
        )
        rows, cut = self.db.read_some(text, (*args, limit), most_bytes)
        return Found.of(records(AuditRow, rows), cut)

    def audit_after(self, n: int, limit: int) -> list[AuditRow]:
        return records(AuditRow, self.db.read(SQL["audit_after"], (n, limit)))

    def audit_chain(
        self,
        known: Head | None = None,
        after: Head | None = None,
        limit: int | None = None,
        size: int | None = None,
    ) -> Chain:
        with snapshot(self.db) as ask:
            return verified(ask, known, after, limit, size)


def _name(actor: Actor | None) -> str:
    return actor.name if actor else ""
