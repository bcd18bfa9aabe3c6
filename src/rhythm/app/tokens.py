"""Tokens of an application: who may act over HTTP.

The secret of a token is shown once, to the caller who creates it. It is drawn here and goes nowhere
else: the database stores its hash, and no view, message or log line has more of it than the token's
id.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, NoReturn

from rhythm.app.actors import By, acting
from rhythm.app.checks import LONGEST_KEY, several, valid_name
from rhythm.app.views import as_json, moment, moment_of
from rhythm.durations import duration_s
from rhythm.errors import StoreError, TokenRevoked, UnknownToken
from rhythm.permissions import allows, permissions, problem_with_roles
from rhythm.record import Record
from rhythm.store.access import Actor, Grant, StoredToken

if TYPE_CHECKING:
    from rhythm.app.context import AppContext

DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"  # without i, l, o and u, so that it can be read aloud
# an id, and 260 random bits
SECRET = re.compile(r"rhy_([0-9a-hjkmnp-tv-z]{12})_[0-9a-hjkmnp-tv-z]{52}")
# The hash of no secret. It is compared where an id does not exist, which then takes as long as for
# an id that does.
NOBODY = "0" * 64
USE_NOTED_EVERY_S = 60  # how often the last use of a token is stored, at most


class TokenView(Record):
    """A token, without its secret."""

    id: str
    name: str  # of the actor that uses it
    roles: tuple[str, ...]
    business_roles: tuple[str, ...]
    status: str  # active, expired or revoked
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None  # to the minute
    revoked_at: datetime | None
    revoked_by: str

    @property
    def permissions(self) -> tuple[str, ...]:
        """The permissions that the token gives for all names, not only for those of a pattern."""
        return permissions(self.roles)

    def allows(self, permission: str, name: str | None = None) -> bool:
        """Tells whether the token allows this for the workflow or queue with this name.

        Without a name: whether it allows it for everything.
        """
        return allows(self.roles, permission, name)

    def actor(self, source: str = "") -> Actor:
        """Returns the actor that uses this token.

        Its business roles are looked up when it decides.
        """
        return Actor(self.name, token=self.id, source=source, token_roles=self.roles)

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values; times as ISO 8601."""
        return as_json(self)


class NewToken(Record):
    """A token that was just created. `secret` is what its owner sends; it cannot be shown again."""

    secret: str
    view: TokenView

    def __repr__(self) -> str:
        return f"NewToken(secret=…, view={self.view!r})"


class Tokens:
    """Tokens: who may act over HTTP. Calling it lists them."""

    def __init__(self, context: AppContext) -> None:
        self._store = context.store

    def __call__(self) -> list[TokenView]:
        """Returns all tokens, newest first, including those that are no longer valid."""
        return [token_view(token) for token in self._store.access.tokens()]

    def create(
        self,
        name: str,
        *,
        roles: Iterable[str] | None = None,
        business_roles: Iterable[str] = (),
        expires: float | str | None = None,
        by: By = None,
    ) -> NewToken:
        """Creates a token for an actor with this name. Only the returned value has its secret.

        - `roles`: those of Rhythm: viewer, operator, approver, author, auditor, admin. Without any,
          the token is an approver if it has business roles, else a viewer. `viewer:order*` is a
          viewer only of workflows and queues whose names match.
        - `business_roles`: your own; they say which approvals it may decide.
        - `expires`: how long it is valid; else it is valid until it is revoked.

        Give everyone their own token: the rule of four eyes takes two people with one name for one
        person.
        """
        name, own = valid_name(name, "the name of a token"), _business_roles(business_roles)
        known = _roles(roles if roles is not None else ("approver",) if own else ("viewer",))
        expires_s = None if expires is None else _lasting(expires)
        while True:
            id, secret = _drawn()
            made = self._store.access.create_token(
                Grant(id, name, _hash(secret), known, own, expires_s), acting(by)
            )
            if made is not None:
                return NewToken(secret, token_view(made))

    def revoke(self, id: str, by: By = None) -> bool:
        """Makes a token invalid from now on. Returns False if it was revoked before.

        Raises `UnknownToken` if there is none with this id.
        """
        revoked = self._store.access.revoke_token(_id(id), acting(by))
        return _unknown(id) if revoked is None else revoked

    def change(
        self,
        id: str,
        *,
        roles: Iterable[str] | None = None,
        business_roles: Iterable[str] | None = None,
        by: By = None,
    ) -> TokenView:
        """Replaces the roles of a token, and returns it. Roles that are not given stay.

        The change applies from the next act on. Raises `UnknownToken` if there is none with this
        id, `TokenRevoked` if it is revoked.
        """
        known = None if roles is None else _roles(roles)
        own = None if business_roles is None else _business_roles(business_roles)
        changed = self._store.access.change_token(_id(id), known, own, acting(by))
        if changed is None:
            _unknown(id)
        if changed.revoked_at is not None:
            raise TokenRevoked(
                f"the token {id} is revoked: make a new one with `rhythm token create`"
            )
        return token_view(changed)

    def authenticate(self, secret: str) -> TokenView | None:
        """Returns the token with this secret; None if there is no valid token with it.

        None means that there is no such token, or that it has expired or is revoked; the time that
        it takes does not reveal which.
        """
        return self.authenticate_all([secret])[0]

    def authenticate_all(self, secrets: Sequence[str]) -> list[TokenView | None]:
        """Returns the tokens with these secrets, in order, as `authenticate` does for one."""
        forms = [
            SECRET.fullmatch(secret) if isinstance(secret, str) else None for secret in secrets
        ]
        ids = sorted({form[1] for form in forms if form})
        known = self._store.access.tokens_of(ids) if ids else {}
        found = [_valid(form[0], known.get(form[1])) if form else None for form in forms]
        used = sorted({token.id for token in found if token and _is_noted_late(token)})
        if used:
            with suppress(StoreError):  # a valid token is accepted even if its use cannot be stored
                self._store.access.touch_tokens(used)
        return [token_view(token) if token else None for token in found]


def _valid(secret: str, token: StoredToken | None) -> StoredToken | None:
    """Returns the token if it is valid, and has this secret."""
    same = compare_digest(token.hash if token else NOBODY, _hash(secret))
    return token if token is not None and same and token.status == "active" else None


def _is_noted_late(token: StoredToken) -> bool:
    """Returns whether it is time to store that the token was used."""
    last = token.last_used_at
    return last is None or token.now - last >= USE_NOTED_EVERY_S * 1_000_000


def token_view(token: StoredToken) -> TokenView:
    """Returns a stored token as callers see it, without its hash."""
    return TokenView(
        token.id,
        token.name,
        token.roles,
        token.business_roles,
        token.status,
        moment(token.created_at),
        token.created_by,
        moment_of(token.expires_at),
        moment_of(token.last_used_at),
        moment_of(token.revoked_at),
        token.revoked_by or "",
    )


def _drawn() -> tuple[str, str]:
    """Returns the id of a new token, and its secret."""
    id, rest = ("".join(secrets.choice(DIGITS) for _ in range(length)) for length in (12, 52))
    return id, f"rhy_{id}_{rest}"


def _hash(secret: str) -> str:
    """Returns the hash of a secret. A fast hash is enough: nobody can guess 260 random bits."""
    return sha256(secret.encode()).hexdigest()


def _roles(values: Any) -> tuple[str, ...]:
    roles = several(values, "a role")
    if problem := problem_with_roles(roles):
        raise ValueError(problem)
    return roles


def _business_roles(values: Any) -> tuple[str, ...]:
    return several(values, "a business role")


def _lasting(expires: float | str) -> float:
    seconds = duration_s(expires)
    if seconds <= 0:
        raise ValueError(
            "a token that expires at once is of no use: say how long it is valid, such as 90d"
        )
    return seconds


def _id(id: Any) -> str:
    """Returns the id if a token may have it; else raises `UnknownToken`.

    Databases are never asked for an id that they could not hold.
    """
    return (
        id if isinstance(id, str) and id.isprintable() and len(id) <= LONGEST_KEY else _unknown(id)
    )


def _unknown(id: Any) -> NoReturn:
    """Raises `UnknownToken`.

    A secret that was given in place of an id is not repeated in the message.
    """
    if isinstance(id, str) and id.startswith("rhy_"):
        raise UnknownToken(
            "a token is named by its id, the 12 characters between rhy_ and _, and never "
            "by its secret"
        )
    raise UnknownToken(
        f"there is no token {id!r:.80}: `rhythm token list` shows those that there are"
    )
