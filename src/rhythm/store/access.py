"""Actors and their permissions, tokens, and the audit chain.

An act that an operator or a decider asks for is recorded in the transaction that does it. `audit`
rows are only ever added, and each carries the hash of the one before, so that a row which is
changed, removed or inserted is found. Of a token only a hash is stored, and its id, which is no
secret.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rhythm.errors import Denied, TokenRevoked
from rhythm.permissions import allows, limited
from rhythm.record import Record

GENESIS = "0" * 64  # the hash before the first row
PAGE_ROWS = 1000  # how many rows are verified at a time, at most
PAGE_SIZE = 4_000_000  # and how many characters of their details
MOST_PROBLEMS = 100  # how many problems of a chain are reported; the others are only counted
# The numbers that a row could have, also a row that somebody inserted by hand.
LOWEST, HIGHEST = -(2**63), 2**63 - 1
# The business roles that an actor holds (None: all), and those that were taken away.
BusinessRoles = tuple[Collection[str] | None, Collection[str]]


class Actor(Record):
    """Who asks for something.

    With a `token`, its roles are those of the token, read in the transaction of the act
    (`authorise`). Without one, the caller, who has access to the database, says which `roles` the
    actor has.
    """

    name: str
    # Business roles, for approvals. None: all of them, because the caller has access to the
    # database.
    roles: tuple[str, ...] | None = None
    token: str | None = None  # the id of the token, never its secret
    source: str = ""  # an address, "cli" or "python"
    # The roles of the token when it was presented. None: no token, so everything is allowed.
    token_roles: tuple[str, ...] | None = None


class Act(Record):
    """What was done to what, for the audit."""

    action: str  # such as "execution.pause"
    object: str  # an id or name
    detail: str = "{}"  # JSON


def act(action: str, subject: str, /, **detail: Any) -> Act:
    """Returns an act with a detail, in names and JSON values.

    Do not put payloads into the detail: not everybody who reads the audit may see them.
    """
    return Act(action, subject, json.dumps(detail, ensure_ascii=False))


class Head(Record):
    """The end of the chain: the number of its last row, and that row's hash.

    A head that is kept elsewhere proves that nothing before it was changed.
    """

    n: int
    hash: str

    def __str__(self) -> str:
        return f"{self.n}:{self.hash}"


class Filter(Record):
    """Which rows of the audit are wanted. A field that is None selects all."""

    actor: str | None = None
    action: str | None = None
    object: str | None = None
    before: int | None = None  # only rows before this one


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
        """The hash that this row must have.

        It is the SHA-256 of the row as a JSON list without spaces: prev, n, at, actor, token,
        source, action, object, detail (as text).
        """
        from hashlib import sha256

        values = [
            self.prev,
            self.n,
            self.at,
            self.actor,
            self.token,
            self.source,
            self.action,
            self.object,
            self.detail,
        ]
        return sha256(
            json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=repr).encode()
        ).hexdigest()


class Grant(Record):
    """A token to create."""

    id: str
    name: str
    hash: str
    roles: tuple[str, ...]
    business_roles: tuple[str, ...]
    expires_s: float | None


class StoredToken(Record):
    """A token without its secret. `now` is the time of the database when it was read."""

    id: str
    name: str  # of the actor who uses it
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
        """Its state: "revoked", "expired" or "active"."""
        if self.revoked_at is not None:
            return "revoked"
        return (
            "expired" if self.expires_at is not None and self.expires_at <= self.now else "active"
        )

    @property
    def limited(self) -> bool:
        """Whether its permissions depend on the name of a workflow or task."""
        return limited(self.roles)

    def entitlement(self, root: str | None) -> tuple[Collection[str], Collection[str]]:
        """Returns the business roles with which it may decide, and those that it has lost.

        If it may not decide at all, it has lost all of them. `root`: the name of the root of the
        execution that asks. It is only needed if the token is `limited`.
        """
        if self.status == "active" and allows(self.roles, "approval:decide", root):
            return self.business_roles, self.taken_roles
        return (), (*self.business_roles, *self.taken_roles)

    def changed(
        self, roles: tuple[str, ...] | None, business_roles: tuple[str, ...] | None
    ) -> StoredToken:
        """Returns the token with other roles. None leaves them as they are.

        Business roles that it loses are kept in `taken_roles`.
        """
        business = self.business_roles if business_roles is None else business_roles
        taken = tuple(sorted({*self.taken_roles, *self.business_roles} - {*business}))
        return self.replace(
            roles=self.roles if roles is None else roles, business_roles=business, taken_roles=taken
        )

    def granted(self) -> dict[str, Any]:
        """Returns what the token allows, for the audit."""
        return {"roles": self.roles, "business_roles": self.business_roles}


def authorise(actor: Actor, token: StoredToken | None) -> None:
    """Raises `TokenRevoked` if the actor's token is no longer valid, and `Denied` if it has lost a
    role since it was presented.

    `token` is the actor's token, read in the transaction of the act, under a lock that a change of
    the token waits for. An act that was allowed by the presented roles stays allowed while the
    token has all of them, and what it starts goes on with them.
    """
    if token is None or token.status != "active":
        is_so = token.status if token else "unknown"
        raise TokenRevoked(
            f"the token {actor.token} is not valid any more ({is_so}), and nothing was "
            f"done: ask for a new one"
        )
    if lost := sorted({*(actor.token_roles or ())} - {*token.roles}):
        what = f"the token {actor.token} has lost the role {lost[0]} meanwhile"
        raise Denied(f"{what}, and nothing was done: ask again", "permission_missing")


def business_roles(
    asked: Sequence[tuple[Actor, str]],
    tokens: Mapping[str, StoredToken],
    roots: Mapping[str, str],
    now: int,
) -> list[BusinessRoles]:
    """Returns the business roles that actors hold now, each for an execution.

    `tokens`: theirs, by id. `roots`: the names at the roots of the executions, by execution, where
    a token is limited to names.
    """
    found = list[BusinessRoles]()
    for actor, execution_id in asked:
        if actor.token is None:
            found.append((actor.roles, ()))
        elif token := tokens.get(actor.token):
            found.append(token.replace(now=now).entitlement(roots.get(execution_id)))
        else:
            found.append(((), ()))
    return found


def limited_to_names(
    asked: Sequence[tuple[Actor, str]], tokens: Mapping[str, StoredToken]
) -> list[str]:
    """Returns those of the executions whose names matter, since an actor's token is limited."""
    return [id for by, id in asked if (token := tokens.get(by.token or "")) and token.limited]


def fingerprint(hash: str) -> str:
    """Returns the fingerprint by which the audit recognises the secret of a token: a hash of its
    hash.

    It cannot be used to log in.
    """
    from hashlib import sha256

    return sha256(hash.encode()).hexdigest()[:32]


def token_acts(before: StoredToken | None, after: StoredToken) -> list[Act]:
    """Returns what was done to a token, for the audit; empty if nothing changed."""
    if before == after:
        return []
    if before is None:
        detail = {
            "name": after.name,
            **after.granted(),
            "expires_at": after.expires_at,
            "fingerprint": fingerprint(after.hash),
        }
        return [act("token.create", after.id, **detail)]
    if after.revoked_at is not None:
        return [act("token.revoke", after.id, name=after.name)]
    return [
        act(
            "token.change",
            after.id,
            name=after.name,
            before=before.granted(),
            after=after.granted(),
        )
    ]


def chained(head: Head, done: Sequence[tuple[Actor, Act]], now: int) -> list[AuditRow]:
    """Returns the audit rows for what these actors did, which follow this head."""
    rows = list[AuditRow]()
    for actor, act in done:
        row = AuditRow(
            head.n + 1,
            now,
            actor.name,
            actor.token,
            actor.source,
            act.action,
            act.object,
            act.detail,
            prev=head.hash,
            hash="",
        )
        rows.append(row.replace(hash=row.computed))
        head = Head(rows[-1].n, rows[-1].hash)
    return rows


class Chain(Record):
    """The result of reading the audit chain, or a part of it."""

    head: Head  # where the chain ends
    last: Head  # the last row that was read
    rows: int  # how many were read, without row `after` itself
    ended: bool  # whether the end was reached
    problems: tuple[tuple[int, str], ...]  # the first problems: row number and what is wrong
    broken: int  # how many problems there are


class Links:
    """Follows a chain row by row, and yields what is wrong: row number and message.

    `kept` are heads that were kept elsewhere. `after` is one of them: the chain is followed from
    that row on, not from the first.
    """

    def __init__(self, *kept: Head, after: Head | None = None) -> None:
        self.last, self.rows = Head(0, GENESIS), 0
        self._kept = [head for head in (*kept, after) if head is not None and head.n > 0]
        self._before: str | None = GENESIS  # the hash of the row before; None: not known
        if after is not None and after.n > 0:
            self.last, self._before = Head(after.n - 1, ""), None

    def follow(self, row: AuditRow) -> Iterator[tuple[int, str]]:
        """Yields what is wrong with the next row."""
        self.rows += 1
        if row.n < 1:
            yield (
                row.n,
                (
                    f"row {row.n} is none of the chain, which begins with row 1: somebody has "
                    f"put it there"
                ),
            )
            return
        if row.n != self.last.n + 1:
            between = (
                f"row {self.last.n + 1} is"
                if row.n == self.last.n + 2
                else f"rows {self.last.n + 1} to {row.n - 1} are"
            )
            yield (
                row.n,
                f"{between} gone"
                if row.n > self.last.n
                else f"row {row.n} comes after row {self.last.n}",
            )
        if self._before is not None and row.prev != self._before:
            yield (
                row.n,
                f"row {row.n} does not follow the row before it: one of the two is not what it was",
            )
        if row.hash != row.computed:
            yield row.n, f"row {row.n} was changed after it was written"
        if any(head.n == row.n and head.hash != row.hash for head in self._kept):
            yield row.n, f"row {row.n} is not the one that was the head: the chain was written anew"
        self._kept = [head for head in self._kept if head.n != row.n]
        self.last, self._before = Head(row.n, row.hash), row.hash

    def end(self, head: Head | None) -> Iterator[tuple[int, str]]:
        """Yields what is wrong if no row follows.

        `head`: where the chain should end, or None if that is not known.
        """
        if head is not None and head != self.last:
            yield _ended_elsewhere(self.last, head)
        for kept in self._kept:
            yield (
                kept.n,
                f"row {kept.n}, which was the head, is gone: the chain ends with row {self.last.n}",
            )


def broken(rows: Iterable[AuditRow], head: Head | None, *kept: Head) -> Iterator[tuple[int, str]]:
    """Yields what is wrong with a chain, from its first row on: row number and message."""
    links = Links(*kept)
    for row in rows:
        yield from links.follow(row)
    yield from links.end(head)


def _ended_elsewhere(last: Head, head: Head) -> tuple[int, str]:
    if last.n < head.n:
        return (
            last.n + 1,
            f"the chain ends with row {last.n}, but {head.n} were written: the last ones are gone",
        )
    if last.n > head.n:
        return (
            head.n + 1,
            (
                f"only {head.n} were written, but the chain goes on to row {last.n}: somebody "
                f"has added to it"
            ),
        )
    return head.n, f"row {head.n} is not the one that was written last"
