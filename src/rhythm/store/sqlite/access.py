"""Tokens and the audit chain on SQLite."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from rhythm.store.access import (
    AccessStore,
    Act,
    Actor,
    AuditRow,
    Filter,
    Grant,
    Head,
    StoredToken,
    authorise,
    chained,
    token_acts,
)
from rhythm.store.reading import Found
from rhythm.store.rows import fields, records
from rhythm.store.sqlite.session import SQL, US, Session


class SqliteAccess(Session, AccessStore):
    # tokens

    def create_token(self, grant: Grant, actor: Actor | None = None) -> StoredToken | None:
        expires_us = None if grant.expires_s is None else int(grant.expires_s * US)
        roles = {"roles": json.dumps(grant.roles), "business_roles": json.dumps(grant.business_roles)}
        with self._transaction():
            now = self.clock()
            told = {"now": now, "expires_us": expires_us, "by": _name(actor)}
            if not self._count("insert_token", {**fields(grant), **roles, **told}):
                return None
            return self._recorded(None, grant.id, actor, now)

    def token(self, id: str) -> StoredToken | None:
        found = records(StoredToken, self._read(SQL["token"], {"id": id, "now": self.clock()}))
        return found[0] if found else None

    def tokens(self) -> list[StoredToken]:
        return records(StoredToken, self._read(SQL["tokens"], {"now": self.clock()}))

    def touch_token(self, id: str) -> None:
        with self._transaction():
            self._all("touch_token", self.clock(), id)

    def revoke_token(self, id: str, actor: Actor | None = None) -> bool | None:
        with self._transaction():
            now = self.clock()
            before = self._token(id, now)
            if before is None or before.revoked_at is not None:
                return None if before is None else False
            self._all("revoke_token", now, _name(actor), id)
            self._recorded(before, id, actor, now)
            return True

    def change_token(
        self, id: str, roles: tuple[str, ...] | None, business_roles: tuple[str, ...] | None, actor: Actor | None = None
    ) -> StoredToken | None:
        with self._transaction():
            now = self.clock()
            before = self._token(id, now)
            if before is None or before.revoked_at is not None:
                return before
            after = before.changed(roles, business_roles)
            self._all("change_token", *(json.dumps(names) for names in (after.roles, after.business_roles, after.taken_roles)), id)
            return self._recorded(before, id, actor, now)

    def _token(self, id: str, now: int) -> StoredToken | None:
        return self._first(StoredToken, "token", {"id": id, "now": now})

    def _recorded(self, before: StoredToken | None, id: str, actor: Actor | None, now: int) -> StoredToken:
        """The token as this transaction leaves it."""
        after = self._token(id, now)
        assert after is not None
        self._record(actor, token_acts(before, after), now)
        return after

    def _business_roles(self, actor: Actor, now: int, execution_id: str = "") -> tuple[Collection[str] | None, Collection[str]]:
        """The roles that an actor holds at this moment for this execution (None: all), and those that were taken away."""
        if actor.token is None:
            return actor.roles, ()
        token = self._token(actor.token, now)
        root = self._one("root_names", json.dumps([execution_id])) if token and token.limited else None
        return token.entitlement(root and root[1]) if token else ((), ())

    def _authorise(self, actor: Actor | None, now: int) -> None:
        """Refuses an act with a token that does not allow it any more."""
        if actor is not None and actor.token is not None:
            authorise(actor, self._token(actor.token, now))

    # the audit

    def _audit(self, actor: Actor | None, acts: Sequence[Act], now: int) -> None:
        """Adds to the audit; without an actor nobody asked for it. For acts: see `_record`."""
        if actor is None or not acts:
            return
        (head,) = records(Head, self._all("audit_head"))
        rows = chained(head, actor, acts, now)
        for row in rows:
            self._all("insert_audit", fields(row))

    def _record(self, actor: Actor | None, acts: Sequence[Act], now: int) -> None:
        """Records what this transaction does, or refuses it: if the token of the actor does not allow it any more."""
        if acts:
            self._authorise(actor, now)
            self._audit(actor, acts, now)

    def audit(self, wanted: Filter, limit: int, most_bytes: int | None = None) -> Found[AuditRow]:
        where, args = list[str](), list[Any]()
        for condition, value in zip(("actor = ?", "action = ?", "object = ?", "n < ?"), wanted.astuple(), strict=True):
            if value is not None:
                where.append(condition)
                args.append(value)
        text = f"{SQL['audit']} {'WHERE ' * bool(where)}{' AND '.join(where)} ORDER BY n DESC LIMIT ?"
        rows, cut = self._read_some(text, (*args, limit), most_bytes)
        return Found.of(records(AuditRow, rows), cut)

    def audit_after(self, n: int, limit: int) -> list[AuditRow]:
        return records(AuditRow, self._read(SQL["audit_after"], (n, limit)))


def _name(actor: Actor | None) -> str:
    return actor.name if actor else ""
