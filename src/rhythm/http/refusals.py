"""The log of refused attempts: who, from where, what, and why.

Repeated refusals are logged once a minute for each address and reason, with their number; and all
of them together at no more than one line a second on average. Nothing secret is logged: of a token
that is not valid, only the id that it claims to have.
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
WINDOW_S = 60.0  # within this time, one address is logged once for each reason
KNOWN_REFUSALS = 1000  # pairs of address and reason whose repetitions are counted
LINES_PER_S, LINES_AT_ONCE = 1.0, 60.0


class RefusalLog:
    """Logs refused attempts. Call it only from the event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._lines = Buckets(LINES_PER_S, LINES_AT_ONCE, clock)
        # by address and reason, in the order in which they were logged
        self._seen: OrderedDict[tuple[str, str], _Seen] = OrderedDict()
        self._unsaid = 0  # lines that were left out because there were too many

    def note(self, scope: Scope, routes: Router, status: int, code: str) -> None:
        """Logs that a request was refused with this status and code."""
        address = address_of(scope)
        if self._is_new(whose(address), code):
            what = {"method": scope["method"], "route": route_of(scope, routes)}
            self._say(address=address, status=status, reason=code, **what, **_who(scope))

    def cut(self, address: str, reason: str) -> None:
        """Logs that a connection was ended, or turned away."""
        if self._is_new(address, reason):
            self._say(address=address, reason=reason)

    def _is_new(self, whom: str, code: str) -> bool:
        """Tells whether to log a refusal. If it was logged lately, it is only counted."""
        self._forget_old()
        if seen := self._seen.get((whom, code)):
            seen.repeated += 1
            return False
        self._seen[whom, code] = _Seen(self.clock())
        return True

    def close(self) -> None:
        """Logs the counts that have not been logged yet."""
        self._forget_old(0.0)

    def _forget_old(self, older_s: float = WINDOW_S) -> None:
        """Forgets old refusals, and logs how often each was repeated."""
        while self._seen:
            (whom, code), seen = next(iter(self._seen.items()))
            if self.clock() - seen.at < older_s and len(self._seen) < KNOWN_REFUSALS:
                return
            self._seen.popitem(last=False)
            if seen.repeated:
                self._say(address=whom, reason=code, repeated=seen.repeated)

    def _say(self, **fields: Any) -> None:
        """Writes a line. If there were too many lately, it is only counted, for the next line."""
        if self._lines.take(""):
            self._unsaid += 1
            return
        others, self._unsaid = self._unsaid or "", 0
        log_event("access_refused", log=LOG, **fields, untold=others)


class _Seen:
    """When a refusal was logged, and how often it was repeated since."""

    def __init__(self, at: float) -> None:
        self.at, self.repeated = at, 0


def _who(scope: Scope) -> dict[str, str]:
    """Returns the caller's name and token, or the id that an invalid token claims to have."""
    asker: Asker | None = scope.get("rhythm.asker")
    if asker is not None:
        return {"actor": asker.actor.name, "token": asker.actor.token or ""}
    return {"claimed_token": scope.get("rhythm.claimed", "")}


def route_of(scope: Scope, routes: Router) -> str:
    """Returns the path as it is in the table of routes; empty if there is no such route."""
    found = scope.get("route") or next(
        (each for each in routes.routes if each.matches(scope)[0] is not Match.NONE), None
    )
    return str(getattr(found, "path", ""))


def address_of(scope: Scope) -> str:
    """Returns the address that a request comes from; empty if it is not known."""
    client = scope.get("client")
    return str(client[0]) if client else ""
