"""What one may take of a server that is everybody's: requests a second and at once, threads,
streams; and how often one may fail.

Whoever takes more is refused with 429 and told when to come back. Everything is counted in the
process, by token: several servers of one database count by themselves. It is called from the event
loop alone, so what is looked at and counted between two awaits is one.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from rhythm.http.problems import Refused

if TYPE_CHECKING:
    from rhythm.settings import Settings

KNOWN_CALLERS = 10_000  # tokens and addresses that are counted; the longest silent is forgotten
BURST_S = 2.0  # so many seconds' worth may come in one moment
AGAIN_S = 10  # until a place may be free
REGISTERING, LARGE_BODY = "registering", "large body"  # kinds of work that are done one at a time
PREFIX6 = 64  # bits of an IPv6 address that say whose it is


class Buckets:
    """How much each may take: `rate` a second on average, `burst` in one moment."""

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate, self.burst, self.clock = rate, max(1.0, burst), clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what was left when

    def left(self, who: str) -> float:
        """What they may take now."""
        left, at = self._left.get(who, (self.burst, 0.0))
        return (
            min(self.burst, left + (self.clock() - at) * self.rate)
            if who in self._left
            else self.burst
        )

    def take(self, who: str, much: float = 1) -> float:
        """Takes so much: 0, or the seconds until there is so much to take."""
        left = self.left(who)
        if left < much:
            return (much - left) / self.rate
        self._left[who] = left - much, self.clock()
        self._left.move_to_end(who)
        if len(self._left) > KNOWN_CALLERS:
            self._left.popitem(last=False)
        return 0.0


class Shares:
    """Who has taken how much of one server."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self.most_streams = settings.server_streams
        rate, failures = settings.server_requests_per_second, settings.server_failures_per_minute
        self._requests = Buckets(rate, rate * BURST_S, clock)
        self._failures = Buckets(failures / 60, failures, clock)
        self._at_once, self._streams = Counter[str](), Counter[str]()
        self._threads, self._turns = Places(settings.server_threads_per_token), Places(1)

    @property
    def streams(self) -> int:
        return self._streams.total()

    def request(self, who: str, much: float = 1) -> None:
        """Counts a request, for as many as it is worth. `Refused` if there were too many lately."""
        if seconds := self._requests.take(who, min(much, self._requests.burst)):
            what = f"at most {self.settings.server_requests_per_second} requests a second"
            raise _too_many(
                "too_many_requests", f"{what} are answered: wait, and ask less often", seconds
            )

    def failed(self, address: str) -> None:
        """Counts a request that nobody with a valid token has sent."""
        self._failures.take(whose(address))

    def may_fail(self, address: str) -> None:
        """`Refused` if too many such requests have come from the address lately."""
        if (left := self._failures.left(whose(address))) < 1:
            seconds = (1 - left) / self._failures.rate
            raise _too_many(
                "too_many_failures",
                "too many requests without a valid token have come from this address",
                seconds,
            )

    @contextmanager
    def at_once(self, who: str) -> Iterator[None]:
        """A place among the requests that are under way. `Refused` if all of one's own are
        taken."""
        most = self.settings.server_requests_at_once
        with _place(
            self._at_once,
            who,
            most,
            "too_many_requests",
            f"{most} of your requests are under way: wait for their answers",
        ):
            yield

    @contextmanager
    def stream(self, who: str) -> Iterator[None]:
        """A place for a stream. `Refused` if all are taken, or all of one's own."""
        if self.streams >= self.most_streams:
            raise _too_many(
                "too_many_streams",
                f"this server has {self.most_streams:,} streams already: ask another one",
                AGAIN_S,
            )
        most = self.settings.server_streams_per_token
        with _place(
            self._streams,
            who,
            most,
            "too_many_streams",
            f"you have {most:,} streams already: close one",
        ):
            yield

    @asynccontextmanager
    async def thread(self, who: str, turn: str = "") -> AsyncIterator[None]:
        """Waits for one of the threads that a token may use at once: the others are for the others.

        `turn`: the kind of work, if it computes for long. Of each kind one is done at a time: two
        would take as long, and keep everybody waiting meanwhile. In its queue a token stands once;
        and whoever has the turn waits for nothing of their own."""
        if not turn:
            async with self._threads.place(who):
                yield
            return
        own = f"{turn} of {who}"
        async with self._turns.place(own), self._threads.place(who), self._turns.place(turn):
            yield


class Places:
    """So many at once for each; the others wait, in the order in which they came."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._places: dict[str, asyncio.Semaphore] = {}
        self._wanting = Counter[str]()  # how many have a place, or wait for one

    @asynccontextmanager
    async def place(self, who: str) -> AsyncIterator[None]:
        """Waits for one of their places."""
        self._wanting[who] += 1
        try:
            async with self._places.setdefault(who, asyncio.Semaphore(self.most)):
                yield
        finally:
            if _give_back(self._wanting, who) == 0:
                del self._places[who]


@contextmanager
def _place(taken: Counter[str], who: str, most: int, code: str, refusal: str) -> Iterator[None]:
    if taken[who] >= most:
        raise _too_many(code, refusal, 1 if code == "too_many_requests" else AGAIN_S)
    taken[who] += 1
    try:
        yield
    finally:
        _give_back(taken, who)


def _give_back(taken: Counter[str], who: str) -> int:
    taken[who] -= 1
    left = taken[who]
    if not left:
        del taken[who]
    return left


def _too_many(code: str, why: str, seconds: float) -> Refused:
    return Refused(429, code, why, {"Retry-After": str(max(1, math.ceil(seconds)))})


def whose(address: str) -> str:
    """Whoever has this address: of IPv6 they have a whole network."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, PREFIX6), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)
