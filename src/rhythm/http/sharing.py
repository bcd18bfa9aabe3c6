"""Limits how much of a server one caller may use: requests a second and at once, threads, streams,
and failures.

A caller that uses more is refused with 429, and told when to come back. Everything is counted in
this process, by token, or by address where there is none: several servers on one database count
separately. All functions are called from the event loop alone, so what is checked and counted
between two awaits is atomic.
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

# Tokens and addresses that are counted; of more, the one that was silent longest is forgotten.
KNOWN_CALLERS = 10_000
BURST_S = 2.0  # the requests of this many seconds may come in one moment
AGAIN_S = 10  # seconds after which a refused caller may try again to get a place
REGISTERING, LARGE_BODY = "registering", "large body"  # kinds of work that are done one at a time
PREFIX6 = 64  # bits of an IPv6 address that identify its owner's network


class Buckets:
    """Token buckets: each caller may take `rate` a second on average, and `burst` in one moment."""

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate, self.burst, self.clock = rate, max(1.0, burst), clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what was left, and when

    def left(self, who: str) -> float:
        """Returns how much the caller may take now."""
        left, at = self._left.get(who, (self.burst, 0.0))
        return (
            min(self.burst, left + (self.clock() - at) * self.rate)
            if who in self._left
            else self.burst
        )

    def take(self, who: str, much: float = 1) -> float:
        """Takes this much, and returns 0.

        If there is not enough, returns the seconds until there is.
        """
        left = self.left(who)
        if left < much:
            return (much - left) / self.rate
        self._left[who] = left - much, self.clock()
        self._left.move_to_end(who)
        if len(self._left) > KNOWN_CALLERS:
            self._left.popitem(last=False)
        return 0.0


class Shares:
    """How much of one server each caller uses."""

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
        """How many streams are open."""
        return self._streams.total()

    def request(self, who: str, much: float = 1) -> None:
        """Counts a request as `much` requests. Raises `Refused` if there were too many lately."""
        if seconds := self._requests.take(who, min(much, self._requests.burst)):
            what = f"at most {self.settings.server_requests_per_second} requests a second"
            raise _too_many(
                "too_many_requests", f"{what} are answered: wait, and ask less often", seconds
            )

    def failed(self, address: str) -> None:
        """Counts a request without a valid token."""
        self._failures.take(whose(address))

    def may_fail(self, address: str) -> None:
        """Raises `Refused` if too many requests without a valid token came from the address."""
        if (left := self._failures.left(whose(address))) < 1:
            seconds = (1 - left) / self._failures.rate
            raise _too_many(
                "too_many_failures",
                "too many requests without a valid token have come from this address",
                seconds,
            )

    @contextmanager
    def at_once(self, who: str) -> Iterator[None]:
        """Takes a place among the requests that are under way, for the block.

        Raises `Refused` if the caller has too many of them.
        """
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
        """Takes a place for a stream, for the block.

        Raises `Refused` if all places of the server are taken, or all of the caller.
        """
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
        """Waits for one of the threads that the caller may use at once; the rest are for others.

        `turn` names the kind of work, if it computes for long. Of each kind, one is done at a time:
        two would take as long, and keep everybody waiting meanwhile. A caller stands in that queue
        only once; and the caller that has the turn waits for nothing else of its own.
        """
        if not turn:
            async with self._threads.place(who):
                yield
            return
        own = f"{turn} of {who}"
        async with self._turns.place(own), self._threads.place(who), self._turns.place(turn):
            yield


class Places:
    """A number of places for each key.

    Those who find none wait, in the order in which they came.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._places: dict[str, asyncio.Semaphore] = {}
        self._wanting = Counter[str]()  # how many have a place or wait for one

    @asynccontextmanager
    async def place(self, who: str) -> AsyncIterator[None]:
        """Waits for a place, and keeps it for the block."""
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
    """Gives back a place, and returns how many are still taken."""
    taken[who] -= 1
    left = taken[who]
    if not left:
        del taken[who]
    return left


def _too_many(code: str, why: str, seconds: float) -> Refused:
    return Refused(429, code, why, {"Retry-After": str(max(1, math.ceil(seconds)))})


def whose(address: str) -> str:
    """Returns the owner of an address: itself, or for IPv6 its whole network."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, PREFIX6), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)
