"""Attempts that were refused, in the log: who, from where, what, and why.

Whoever is refused again and again is told once a minute for each address and reason, with how
often; and all of them together not faster than a line a second. Nothing that is secret is told: of
a token that is not valid the id that it claims to have.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.routing import Match, Router
from starlette.types import Scope

from rhythm.http.sharing import Buckets, whose
from rhythm.worker.logs import log_event

if TYPE_CHECKING:
    from rhythm.http.guard import Asker

LOG = "rhythm.http"
STATUSES = (401, 403, 429)
WINDOW_S = 60.0  # in which one address is told once for each reason
KNOWN_REFUSALS = 1000  # addresses, each with a reason, that were told of and are counted
LINES_PER_S, LINES_AT_ONCE = 1.0, 60.0


class RefusalLog:
    """Tells of refused attempts. Called from the event loop alone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._lines = Buckets(LINES_PER_S, LINES_AT_ONCE, clock)
        self._seen: OrderedDict[tuple[str, str], _Seen] = OrderedDict()  # by when they were told
        self._unsaid = 0  # for want of lines

    def note(self, scope: Scope, routes: Router, status: int, code: str) -> None:
        """Somebody was refused, with this status and code."""
        address = address_of(scope)
        if self._is_new(whose(address), code):
            what = {"method": scope["method"], "route": route_of(scope, routes)}
            self._say(address=address, status=status, reason=code, **what, **_who(scope))

    def cut(self, address: str, reason: str) -> None:
        """A connection was ended, or not taken."""
        if self._is_new(address, reason):
            self._say(address=address, reason=reason)

    def _is_new(self, whom: str, code: str) -> bool:
        """Whether to tell of it; else it is counted."""
        self._forget_old()
        if seen := self._seen.get((whom, code)):
            seen.repeated += 1
            return False
        self._seen[whom, code] = _Seen(self.clock())
        return True

    def close(self) -> None:
        """Tells what has not been told yet."""
        self._forget_old(0.0)

    def _forget_old(self, older_s: float = WINDOW_S) -> None:
        while self._seen:
            (whom, code), seen = next(iter(self._seen.items()))
            if self.clock() - seen.at < older_s and len(self._seen) < KNOWN_REFUSALS:
                return
            self._seen.popitem(last=False)
            if seen.repeated:
                self._say(address=whom, reason=code, repeated=seen.repeated)

    def _say(self, **fields: Any) -> None:
        if self._lines.take(""):
            self._unsaid += 1
            return
        others, self._unsaid = self._unsaid or "", 0
        log_event("access_refused", log=LOG, **fields, untold=others)


class _Seen:
    """Since when an address is known for a reason, and how often it came again."""

    def __init__(self, at: float) -> None:
        self.at, self.repeated = at, 0


def _who(scope: Scope) -> dict[str, str]:
    asker: Asker | None = scope.get("rhythm.asker")
    if asker is not None:
        return {"actor": asker.actor.name, "token": asker.actor.token or ""}
    return {"claimed_token": scope.get("rhythm.claimed", "")}


def route_of(scope: Scope, routes: Router) -> str:
    """The path as the table of routes has it; empty if there is no such route."""
    found = scope.get("route") or next(
        (each for each in routes.routes if each.matches(scope)[0] is not Match.NONE), None
    )
    return str(getattr(found, "path", ""))


def address_of(scope: Scope) -> str:
    """Where a request comes from."""
    client = scope.get("client")
    return str(client[0]) if client else ""
