"""Who asks, and whether they may: the one gate before every route.

Whatever is not on the list of public paths, letter by letter, needs a token, also what does not
exist. What a route needs stands in the table of routes; a route without a line there cannot be
built. Where a server is open (before there are tokens, on this machine only; or because its owner
says so), whoever asks is the user it runs as, and decides nothing: decisions take a name and a
role.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NoReturn, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers
from starlette.types import Scope as Asgi

from rhythm.app import Rhythm
from rhythm.app.actors import Actor, own_key_of, user
from rhythm.app.tokens import SECRET
from rhythm.http.problems import ASK, Refused
from rhythm.http.refusals import address_of
from rhythm.http.sharing import KNOWN_CALLERS, Shares, whose
from rhythm.ids import PersonalKey
from rhythm.permissions import PERMISSIONS, READ, Scope, allows, within
from rhythm.permissions import scope as scope_of
from rhythm.record import Record

DOCUMENT = "/api/v1/openapi.json"  # public, and large: it is counted by address,
DOCUMENT_WORTH = 10  # for as many requests as this
PUBLIC = frozenset({("GET", "/healthz"), ("GET", "/readyz"), ("GET", DOCUMENT)})
SAFE = ("GET", "HEAD", "OPTIONS")
LOCAL = ("localhost", "127.0.0.1", "::1")
# as RFC 9112 has it, and nothing around
HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::[0-9]{1,5})?")
# what proxies add
FORWARDED = re.compile(
    "forwarded|x-forwarded-.*|x-(real|client|cluster-client)-ip|via|true-client-ip|cf-.*"
)
# Sec-Fetch-Site: a page of this server, or somebody who typed the address
OWN_PAGES = ("same-origin", "none")
# what everyone may do where a server is open
OPEN: Mapping[str, Scope] = dict.fromkeys(PERMISSIONS.keys() - {"approval:decide"})
# that find out who asks, and do nothing else: they answer also when all others are busy
THREADS = 4
T = TypeVar("T")


class Asker(Record):
    """Whoever asks: who they are, and what they may do to what. `secret`: of their token, for as
    long as they are answered.

    `who`: by whom they are counted: their token, or where there is none their address.
    """

    app: Rhythm
    actor: Actor
    permissions: Mapping[str, Scope]
    asked: set[str]  # of which permissions somebody wanted to know the scope
    who: str
    secret: str = ""
    about: str | None = None  # the name of what they ask about, if it matters and the path says it

    def __repr__(self) -> str:
        return f"Asker({self.actor!r})"

    @property
    def page_bytes(self) -> int:
        """How much of a list is read for one page."""
        return self.app.settings.server_page_bytes

    def own(self, key: str | None) -> PersonalKey | None:
        """Their `Idempotency-Key`: another person who uses the same text does not meet it."""
        return None if key is None else own_key_of(self.actor, key)

    def must(self, permission: str) -> None:
        """Refuses those who do not have the permission for anything at all."""
        if permission not in self.permissions:
            what = "which the token does not have" if self.secret else "which takes a token"
            raise Refused(
                403, "permission_missing", f"this needs the permission {permission}, {what}"
            )

    def scope(self, permission: str) -> Scope:
        """The names for which they have the permission; `()`: they do not have it."""
        self.asked.add(permission)
        return self.permissions.get(permission, ())

    def may(self, permission: str, name: str) -> bool:
        """Whether they have the permission for what has this name."""
        return within(self.scope(permission), name)

    def seen(self, items: Iterable[T], name: Callable[[T], str]) -> list[T]:
        """Those that they may look at."""
        scope = self.scope(READ)
        return [item for item in items if within(scope, name(item))]

    def sees_with(self, roles: Sequence[str]) -> bool:
        """Whether they still could look at what they ask about, with these roles."""
        return allows(roles, READ, self.about)

    def refuse(self, permission: str, what: str) -> NoReturn:
        """For those who have the permission, but not for this."""
        has = " and ".join(f"`{pattern}`" for pattern in self.permissions.get(permission) or ())
        raise Refused(
            403,
            "permission_missing",
            f"this needs the permission {permission} {what}, and the token has it for {has} only",
        )


class Guard:
    """Lets requests in. With `tokens` False also those that have none, as the user of this process,
    from wherever its owner lets them come; with None from this machine only, and until there is a
    token."""

    def __init__(self, app: Rhythm, tokens: bool | None, shares: Shares) -> None:
        self.app, self.tokens, self.shares = app, tokens, shares
        self.user = user()
        # the ids of secrets that were valid; whether they are is asked anew
        self._tokens: OrderedDict[bytes, str] = OrderedDict()
        self._threads: CapacityLimiter | None = None

    async def admit(self, scope: Asgi) -> Asker | None:
        """Whoever asks; None for what is public. `Refused` for all others."""
        if (scope["method"], path_of(scope)) in PUBLIC:
            if path_of(scope) == DOCUMENT:
                self.shares.request(f"document {whose(address_of(scope))}", DOCUMENT_WORTH)
            return None
        headers = Headers(scope=scope)
        _refuse_two_lengths(headers)
        _refuse_other_sites(scope["method"], headers)
        given, address = headers.get("authorization"), address_of(scope)
        if given is None and await self._open():
            if self.tokens is None:
                _refuse_other_names(headers)
            self.shares.request(who := f"address {whose(address)}")
            return Asker(self.app, Actor(self.user, source=address), OPEN, set(), who)
        try:
            return await self._by_token(self._secret_from(given, address), address, scope)
        except Refused as refusal:
            if refusal.status_code == 401:
                self.shares.failed(address)
            raise

    async def _open(self) -> bool:
        """Whether nobody needs a token. Once there was one, also if it is no longer valid,
        everybody does."""
        if self.tokens is None and len(await self._ask(self.app.tokens)) > 0:
            self.tokens = True
        return not self.tokens

    def _secret_from(self, given: str | None, address: str) -> str:
        try:
            return _secret(given)
        except Refused:
            self.shares.may_fail(address)
            raise

    async def _by_token(self, secret: str, address: str, scope: Asgi) -> Asker:
        """Whoever has this secret. Who asks too often is refused before the database is asked: one
        who had a valid token by its count, all others by that of their address."""
        form = SECRET.fullmatch(secret)
        digest = sha256(secret.encode("utf-8", "surrogatepass")).digest()
        scope["rhythm.claimed"] = form[1] if form else ""
        if known := self._tokens.get(digest):
            scope["rhythm.known"] = known
            self.shares.request(known)
        else:
            self.shares.may_fail(address)
        token = await self._ask(self.app.authenticate, secret)
        if token is None:
            self._tokens.pop(digest, None)
            raise Refused(
                401, "token_invalid", "the token is not known, has expired or was revoked", ASK
            )
        if not known:
            self._remember(digest, token.id)
            self.shares.request(token.id)
        scopes = {
            each: found for each in PERMISSIONS if (found := scope_of(token.roles, each)) != ()
        }
        return Asker(self.app, token.actor(address), scopes, set(), token.id, secret)

    def _remember(self, digest: bytes, id: str) -> None:
        self._tokens[digest] = id
        if len(self._tokens) > KNOWN_CALLERS:
            self._tokens.popitem(last=False)

    async def _ask(self, call: Callable[..., T], *args: Any) -> T:
        """In a thread of its own: whoever comes is not to wait for those who are in."""
        if self._threads is None:
            self._threads = CapacityLimiter(THREADS)
        return await to_thread.run_sync(call, *args, limiter=self._threads)

    async def still_authorized(self, asker: Asker) -> bool:
        """Whether whoever was let in to look still would be, for those who stay for long."""
        if not asker.secret:
            return await self._open()
        token = await self._ask(self.app.authenticate, asker.secret)
        return token is not None and asker.sees_with(token.roles)


def path_of(scope: Asgi) -> str:
    """The path below the place where the server is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def _secret(given: str | None) -> str:
    if given is None:
        raise Refused(
            401,
            "token_missing",
            "send a token: Authorization: Bearer …; `rhythm token create` makes one",
            ASK,
        )
    scheme, _, secret = given.partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Refused(401, "token_invalid", "the header must be: Authorization: Bearer …", ASK)
    return secret.strip()


def _refuse_two_lengths(headers: Headers) -> None:
    """A body with two lengths ends elsewhere for a proxy than for us, and what follows would be
    another's request."""
    if "transfer-encoding" in headers and "content-length" in headers:
        raise Refused(
            400,
            "body_ambiguous",
            "a body has Content-Length or Transfer-Encoding, not both",
            {"Connection": "close"},
        )


def _refuse_other_sites(method: str, headers: Headers) -> None:
    """A page of another site may not change anything with what a browser knows: no page of ours is
    anywhere else."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    elsewhere = (
        origin is not None and origin.partition("://")[2] != headers.get("host")
    ) or site not in OWN_PAGES
    if elsewhere and method not in SAFE:
        raise Refused(
            403,
            "cross_origin",
            "requests that change something are not taken from the pages of other sites",
        )


def _refuse_other_names(headers: Headers) -> None:
    """A page whose name was made to mean this machine comes with that name, and what comes from
    elsewhere with that of a proxy: they are not let into a server that is open. Nor are pages of
    other sites, also where they would only look."""
    if host_of(headers.getlist("host")) not in LOCAL or any(map(FORWARDED.fullmatch, headers)):
        raise Refused(
            403,
            "wrong_host",
            f"a server without tokens answers to {', '.join(LOCAL)} only, and to no proxy",
        )
    if headers.get("sec-fetch-site", "none") not in OWN_PAGES:
        raise Refused(
            403, "cross_origin", "a server without tokens answers to no page of another site"
        )


def host_of(given: list[str]) -> str | None:
    """The name or address in the header `Host`, without the port; None if it is not there once, or
    is anything else."""
    found = HOST.fullmatch(given[0].lower()) if len(given) == 1 else None
    return found and (found["address"] or found["name"])
