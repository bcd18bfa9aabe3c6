"""Who asks, and whether they may: the one gate before every route.

Only the paths on the list of public paths, compared letter by letter, need no token; paths that do
not exist need one, too. The permission that a route needs is in the table of routes; a route
without a line there cannot be built. A server may be open: before there are tokens, to this machine
only; or because its owner says so. Then every caller acts as the user that the server runs as, and
cannot decide approvals: a decision needs a name and a role.
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
from rhythm.app.tokens import SECRET, TokenView
from rhythm.http.gathering import Gathering
from rhythm.http.problems import ASK, Refused
from rhythm.http.refusals import address_of
from rhythm.http.sharing import KNOWN_CALLERS, Shares, whose
from rhythm.ids import PersonalKey
from rhythm.permissions import PERMISSIONS, READ, Scope, allows, scopes, within
from rhythm.record import Record

DOCUMENT = "/api/v1/openapi.json"  # public and large, so requests for it are counted by address
DOCUMENT_WORTH = 10  # a request for the document counts as this many requests
PUBLIC = frozenset({("GET", "/healthz"), ("GET", "/readyz"), ("GET", DOCUMENT)})
SAFE = ("GET", "HEAD", "OPTIONS")
LOCAL = ("localhost", "127.0.0.1", "::1")
# the form that RFC 9112 defines, and nothing around it
HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::[0-9]{1,5})?")
# headers that proxies add
FORWARDED = re.compile(
    "forwarded|x-forwarded-.*|x-(real|client|cluster-client)-ip|via|true-client-ip|cf-.*"
)
# values of Sec-Fetch-Site: a page of this server, or an address that somebody typed
OWN_PAGES = ("same-origin", "none")
# what every caller may do on an open server
OPEN: Mapping[str, Scope] = dict.fromkeys(PERMISSIONS.keys() - {"approval:decide"})
# threads that only authenticate callers: they answer even when all others are busy
THREADS = 4
MOST_CALLERS = 100  # that are looked up together
T = TypeVar("T")


class Asker(Record):
    """The caller of a request: who they are, and what they may do to what.

    `secret` is that of their token, kept while they are answered. `who` is what their requests are
    counted by: their token, or their address if they have none.
    """

    app: Rhythm
    actor: Actor
    permissions: Mapping[str, Scope]
    asked: set[str]  # permissions whose scope the route asked for
    who: str
    secret: str = ""
    # the name of what they ask about, if the path says it and their role is limited to names
    about: str | None = None

    def __repr__(self) -> str:
        return f"Asker({self.actor!r})"

    @property
    def page_bytes(self) -> int:
        """How many bytes of a list are read for one page."""
        return self.app.settings.server_page_bytes

    def own(self, key: str | None) -> PersonalKey | None:
        """Returns the caller's own form of an `Idempotency-Key`.

        No other person's key can be equal to it.
        """
        return None if key is None else own_key_of(self.actor, key)

    def must(self, permission: str) -> None:
        """Raises `Refused` (403) if the caller does not have the permission at all."""
        if permission not in self.permissions:
            what = "which the token does not have" if self.secret else "which takes a token"
            raise Refused(
                403, "permission_missing", f"this needs the permission {permission}, {what}"
            )

    def scope(self, permission: str) -> Scope:
        """Returns the names for which the caller has the permission; `()` if they do not have it.

        It also notes that it was asked: lists are not answered otherwise.
        """
        self.asked.add(permission)
        return self.permissions.get(permission, ())

    def may(self, permission: str, name: str) -> bool:
        """Tells whether the caller has the permission for the thing with this name."""
        return within(self.scope(permission), name)

    def seen(self, items: Iterable[T], name: Callable[[T], str]) -> list[T]:
        """Returns the items that the caller may read."""
        scope = self.scope(READ)
        return [item for item in items if within(scope, name(item))]

    def sees_with(self, roles: Sequence[str]) -> bool:
        """Tells whether the caller could still read what they ask about, with these roles."""
        return allows(roles, READ, self.about)

    def refuse(self, permission: str, what: str) -> NoReturn:
        """Raises `Refused` (403) for a caller who has the permission, but not for this."""
        has = " and ".join(f"`{pattern}`" for pattern in self.permissions.get(permission) or ())
        raise Refused(
            403,
            "permission_missing",
            f"this needs the permission {permission} {what}, and the token has it for {has} only",
        )


class Guard:
    """Lets requests in, or refuses them.

    With `tokens` None, requests without a token are let in from this machine only, until the first
    token is made. With False they are let in from wherever the owner of the server lets them come.
    They act as the user of this process.
    """

    def __init__(self, app: Rhythm, tokens: bool | None, shares: Shares) -> None:
        self.app, self.tokens, self.shares = app, tokens, shares
        self.user = user()
        # ids of tokens by the hash of their secret, once they were valid; each request still asks
        # the database whether they are
        self._tokens: OrderedDict[bytes, str] = OrderedDict()
        self._threads: CapacityLimiter | None = None
        self._callers: Gathering[str, TokenView | None] = Gathering(
            self._authenticated, most=MOST_CALLERS, at_once=THREADS
        )

    async def admit(self, scope: Asgi) -> Asker | None:
        """Returns the caller; None for a public path, unless it is the document asked with a token.

        Raises `Refused` for all others.
        """
        headers = Headers(scope=scope)
        if (scope["method"], path_of(scope)) in PUBLIC:
            if path_of(scope) == DOCUMENT:
                self.shares.request(f"document {whose(address_of(scope))}", DOCUMENT_WORTH)
            # With a token the document also has the workflows that its owner may see.
            if path_of(scope) != DOCUMENT or "authorization" not in headers:
                return None
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
        """Tells whether requests without a token are let in.

        Once there has been a token, even one that is no longer valid, everybody needs one.
        """
        if self.tokens is None and len(await self._ask(self.app.tokens)) > 0:
            self.tokens = True
        return not self.tokens

    def _secret_from(self, given: str | None, address: str) -> str:
        """Returns the secret in the header. Raises `Refused` if there is none.

        If the address has failed too often, that is the reason given.
        """
        try:
            return _secret(given)
        except Refused:
            self.shares.may_fail(address)
            raise

    async def _by_token(self, secret: str, address: str, scope: Asgi) -> Asker:
        """Returns the caller with this secret.

        Raises `Refused` if the secret is not valid, or the caller asks too often. Callers who ask
        too often are refused before the database is asked: with a secret that was valid before, by
        the count of its token; all others, by the count of their address.
        """
        form = SECRET.fullmatch(secret)
        digest = sha256(secret.encode("utf-8", "surrogatepass")).digest()
        scope["rhythm.claimed"] = form[1] if form else ""
        if known := self._tokens.get(digest):
            scope["rhythm.known"] = known
            self.shares.request(known)
        else:
            self.shares.may_fail(address)
        token = await self._callers.ask(secret)
        if token is None:
            self._tokens.pop(digest, None)
            raise Refused(
                401, "token_invalid", "the token is not known, has expired or was revoked", ASK
            )
        if not known:
            self._remember(digest, token.id)
            self.shares.request(token.id)
        held = scopes(token.roles)
        return Asker(self.app, token.actor(address), held, set(), token.id, secret)

    def _remember(self, digest: bytes, id: str) -> None:
        self._tokens[digest] = id
        if len(self._tokens) > KNOWN_CALLERS:
            self._tokens.popitem(last=False)

    async def _authenticated(self, secrets: list[str]) -> list[TokenView | None]:
        return await self._ask(self.app.tokens.authenticate_all, secrets)

    async def _ask(self, call: Callable[..., T], *args: Any) -> T:
        """Runs the call in the guard's own threads: new requests must not wait for earlier ones."""
        if self._threads is None:
            self._threads = CapacityLimiter(THREADS)
        return await to_thread.run_sync(call, *args, limiter=self._threads)

    async def still_authorized(self, asker: Asker) -> bool:
        """Tells whether a caller who was let in to read still would be. Long streams ask this."""
        if not asker.secret:
            return await self._open()
        token = await self._callers.ask(asker.secret)
        return token is not None and asker.sees_with(token.roles)


def path_of(scope: Asgi) -> str:
    """Returns the path below the place where the server is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def _secret(given: str | None) -> str:
    """Returns the secret in an `Authorization` header. Raises `Refused` (401) if there is none."""
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
    """Refuses a body with two lengths.

    A proxy may see the end of the body elsewhere than we do; what follows would be taken for the
    request of somebody else.
    """
    if "transfer-encoding" in headers and "content-length" in headers:
        raise Refused(
            400,
            "body_ambiguous",
            "a body has Content-Length or Transfer-Encoding, not both",
            {"Connection": "close"},
        )


def _refuse_other_sites(method: str, headers: Headers) -> None:
    """Refuses requests that change something and come from a page of another site.

    A browser would send them with whatever it knows of its user. No page of ours is on another
    site.
    """
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
    """Refuses requests to an open server that may come from another machine or another site.

    They name another host, carry the headers of a proxy, or come from a page of another site. An
    attacker can make a host name resolve to this machine: a page under that name sends the name
    along. Pages of other sites are refused even if they would only read.
    """
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
    """Returns the name or address in the `Host` header, without the port.

    Returns None if there is not exactly one such header, or it has another form.
    """
    found = HOST.fullmatch(given[0].lower()) if len(given) == 1 else None
    return found and (found["address"] or found["name"])
