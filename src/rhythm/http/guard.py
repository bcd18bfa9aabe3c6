"""Who asks, and whether they may: the one gate before every route.

Whatever is not on the list of public paths, letter by letter, needs a token, also what does not exist. What a route needs stands in the
table of routes; a route without a line there cannot be built. Where a server is open (on this machine only, before there are tokens),
whoever asks is the user it runs as, and decides nothing: decisions take a name and a role.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NoReturn, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import Scope as Asgi

from rhythm.app import Rhythm
from rhythm.app.part import user
from rhythm.http.problems import ASK, Refused
from rhythm.record import Record
from rhythm.rights import PERMISSIONS, READ, Scope, allows, scope, within
from rhythm.store.access import Actor

T = TypeVar("T")
PUBLIC = frozenset({("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/api/v1/openapi.json")})
SAFE = ("GET", "HEAD", "OPTIONS")
LOCAL = ("localhost", "127.0.0.1", "::1")
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")  # what proxies add
OPEN: Mapping[str, Scope] = dict.fromkeys(PERMISSIONS.keys() - {"approval:decide"})  # what everyone may do where a server is open


class Asker(Record):
    """Whoever asks: who they are, and what they may do to what. `secret`: of their token, for as long as they are answered."""

    app: Rhythm
    actor: Actor
    permissions: Mapping[str, Scope]
    asked: set[str]  # of which permissions somebody wanted to know the scope
    secret: str = ""
    about: str | None = None  # the name of what they ask about, if it matters and the path says it

    def __repr__(self) -> str:
        return f"Asker({self.actor!r})"

    def must(self, permission: str) -> Asker:
        """The same one, who has this permission for something, and must still have it when it comes to an act."""
        if permission not in self.permissions:
            what = "which the token does not have" if self.secret else "which takes a token"
            raise Refused(403, "permission_missing", f"this needs the permission {permission}, {what}")
        return self.replace(actor=self.actor.replace(needs=(*self.actor.needs, permission)))

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
        raise Refused(403, "permission_missing", f"this needs the permission {permission} {what}, and the token has it for {has} only")


class Guard:
    """Lets requests in. Without `tokens` also those that have none, as the user of this process; None: until there is a token."""

    def __init__(self, app: Rhythm, tokens: bool | None) -> None:
        self.app, self.tokens = app, tokens
        self.user = user()

    async def admit(self, scope: Asgi) -> Asker | None:
        """Whoever asks; None for what is public. `Refused` for all others."""
        if (scope["method"], path_of(scope)) in PUBLIC:
            return None
        headers = Headers(scope=scope)
        _refuse_two_lengths(headers)
        _refuse_other_sites(scope["method"], headers)
        given = headers.get("authorization")
        if given is None and await self._open():
            _refuse_other_names(headers)
            return Asker(self.app, Actor(self.user, source=_address(scope)), OPEN, set())
        return await self._by_token(_secret(given), _address(scope))

    async def _open(self) -> bool:
        """Whether nobody needs a token. Once there was one, also if it is no longer valid, everybody does."""
        if self.tokens is None and len(await run_in_threadpool(self.app.tokens)) > 0:
            self.tokens = True
        return not self.tokens

    async def _by_token(self, secret: str, address: str) -> Asker:
        token = await run_in_threadpool(self.app.authenticate, secret)
        if token is None:
            raise Refused(401, "token_invalid", "the token is not known, has expired or was revoked", ASK)
        scopes = {each: found for each in PERMISSIONS if (found := scope(token.roles, each)) != ()}
        return Asker(self.app, token.actor(address), scopes, set(), secret)

    async def still(self, asker: Asker) -> bool:
        """Whether whoever was let in to look still would be, for those who stay for long."""
        if not asker.secret:
            return await self._open()
        token = await run_in_threadpool(self.app.authenticate, asker.secret)
        return token is not None and asker.sees_with(token.roles)


def path_of(scope: Asgi) -> str:
    """The path below the place where the server is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def _secret(given: str | None) -> str:
    if given is None:
        raise Refused(401, "token_missing", "send a token: Authorization: Bearer …; `rhythm token create` makes one", ASK)
    scheme, _, secret = given.partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Refused(401, "token_invalid", "the header must be: Authorization: Bearer …", ASK)
    return secret.strip()


def _refuse_two_lengths(headers: Headers) -> None:
    """A body with two lengths ends elsewhere for a proxy than for us, and what follows would be another's request."""
    if "transfer-encoding" in headers and "content-length" in headers:
        raise Refused(400, "body_ambiguous", "a body has Content-Length or Transfer-Encoding, not both", {"Connection": "close"})


def _refuse_other_sites(method: str, headers: Headers) -> None:
    """A page of another site may not change anything with what a browser knows: no page of ours is anywhere else."""
    origin = headers.get("origin")
    if origin is not None and method not in SAFE and origin.partition("://")[2] != headers.get("host"):
        raise Refused(403, "cross_origin", "requests that change something are not taken from the pages of other sites")


def _refuse_other_names(headers: Headers) -> None:
    """A page whose name was made to mean this machine comes with that name, and what comes from elsewhere with that of a proxy: they
    are not let into a server that is open."""
    host = headers.get("host", "").lower()
    name = host.partition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    if name not in LOCAL or any(proxied in headers for proxied in FORWARDED):
        raise Refused(403, "wrong_host", f"a server without tokens answers to {', '.join(LOCAL)} only, and to no proxy")


def _address(scope: Asgi) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""
