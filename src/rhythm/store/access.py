"""Who acts, with which rights, and the record of it: tokens and the audit chain.

An act that an operator or a decider asks for is recorded in the transaction that does it: `audit` rows are only ever added, and each
carries the hash of the one before, so that a row which is changed, left out or put in between is found. Of a token only a hash is
stored, and its id, which is no secret.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from rhythm.record import Record
from rhythm.rights import allows

GENESIS = "0" * 64  # what stands before the first row
PAGE = 1000  # rows that are verified at a time


class Actor(Record):
    """Who asks for something.

    With a `token` its roles are those of the token, looked up in the transaction of the act; without one, whoever has the database
    says which `roles` the actor has.
    """

    name: str
    roles: tuple[str, ...] = ()  # business roles, for approvals
    token: str | None = None  # the id of the token, never its secret
    source: str = ""  # an address, "cli" or "python"


class Act(Record):
    """What was done to what, for the audit."""

    action: str  # such as "execution.pause"
    object: str  # an id or name
    detail: str = "{}"  # JSON


class Head(Record):
    """Where the chain ends: the number of its last row, and that row's hash. Kept elsewhere, it proves that nothing before it changed."""

    n: int
    hash: str

    def __str__(self) -> str:
        return f"{self.n}:{self.hash}"


class AuditRow(Record):
    """One act, as it is stored."""

    n: int  # 1, 2, 3 …
    at: int
    actor: str
    token: str | None
    source: str
    action: str
    object: str
    detail: str
    prev: str  # the hash of the row before
    hash: str

    @property
    def computed(self) -> str:
        """SHA-256 of the row as a JSON list without spaces: prev, n, at, actor, token, source, action, object, detail (as text)."""
        from hashlib import sha256

        values = [self.prev, self.n, self.at, self.actor, self.token, self.source, self.action, self.object, self.detail]
        return sha256(json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


class StoredToken(Record):
    """A token without its secret. `now` is the time of the database that read it."""

    id: str
    name: str  # of whoever acts with it
    hash: str  # SHA-256 of the secret
    roles: tuple[str, ...]
    business_roles: tuple[str, ...]
    taken_roles: tuple[str, ...]  # business roles that it had before
    created_at: int
    created_by: str
    expires_at: int | None
    last_used_at: int | None
    revoked_at: int | None
    revoked_by: str | None
    now: int = 0

    @property
    def status(self) -> str:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= self.now else "active"

    def entitlement(self) -> tuple[frozenset[str], frozenset[str]] | None:
        """The business roles with which it may decide now, and those with which it may no more. None: it is no longer valid."""
        if self.status != "active":
            return None
        held, taken = frozenset(self.business_roles), frozenset(self.taken_roles)
        return (held, taken - held) if allows(self.roles, "approval:decide") else (frozenset(), held | taken)


def chained(head: Head, actor: Actor, acts: Sequence[Act], now: int) -> list[AuditRow]:
    """The rows that follow this head."""
    rows = list[AuditRow]()
    for act in acts:
        row = AuditRow(head.n + 1, now, actor.name, actor.token, actor.source, act.action, act.object, act.detail, prev=head.hash, hash="")
        rows.append(row.replace(hash=row.computed))
        head = Head(rows[-1].n, rows[-1].hash)
    return rows


def broken(rows: Iterable[AuditRow], head: Head | None, known: Head | None = None) -> Iterator[tuple[int, str]]:
    """Where a chain, from its first row on, is not what it was: row number and what is wrong. `known`: a head that was kept elsewhere."""
    last, missing = Head(0, GENESIS), known
    for row in rows:
        if row.n != last.n + 1:
            between = f"row {last.n + 1} is" if row.n == last.n + 2 else f"rows {last.n + 1} to {row.n - 1} are"
            yield row.n, f"{between} gone" if row.n > last.n else f"row {row.n} comes after row {last.n}"
        if row.prev != last.hash:
            yield row.n, f"row {row.n} does not follow the row before it: one of the two is not what it was"
        if row.hash != row.computed:
            yield row.n, f"row {row.n} was changed after it was written"
        if known is not None and row.n == known.n:
            missing = None
            if row.hash != known.hash:
                yield row.n, f"row {row.n} is not the one that was the head: the chain was written anew"
        last = Head(row.n, row.hash)
    if head is not None and head != last:
        yield head.n, f"the chain ends with row {last.n}, and once ended with row {head.n}, or with another one of this number"
    if missing is not None and missing != Head(0, GENESIS):
        yield missing.n, f"row {missing.n}, which was the head, is gone: the chain ends with row {last.n}"


class AccessStore(ABC):
    """Tokens and the audit chain of a database."""

    @abstractmethod
    def audit_after(self, n: int, limit: int) -> list[AuditRow]:
        """What follows row `n` of the audit, in the order of the chain."""
