"""The connections of `rhythm server`: how many there are, and which of them are ended.

uvicorn waits forever for a request that does not come, and for a client that does not take its
answer. So each connection is checked once a second. A client that begins a request and does not
send the rest, or does not take what is sent, is cut off. Where all places are taken, the
connections that have kept the server waiting longest are ended to make room, before a new one is
turned away. A connection that is turned away is told so: there are places reserved for that.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from rhythm.http.answers import document
from rhythm.http.sharing import whose

if TYPE_CHECKING:
    from rhythm.settings import Settings

# For the headers of a request: from its first byte, or from the connection if it is the first one.
HEAD_S = 20.0
POLL_INTERVAL_S = 1.0  # between two checks
GRACE_S = 1.0  # for this long a connection is not ended to make room for others
SLOWEST = 16 * 1024  # bytes that a client must take within the write timeout
UNSENT = 64 * 1024 * 1024  # bytes that may wait for all clients together
FILES = 128  # files that the process itself needs: the database, its log, its own modules
MAX_TURNED_AWAY = 32  # connections that are being told that there is no place
LEAST = 16  # places, however few files the process may open
IDLE, HEAD, SENDING, HASTY, BUSY = "idle", "head", "sending", "hasty", "busy"
# Which connections are ended first to make room: those that do not take their answer or ask too
# often, then those that do not send their request, then idle ones. Busy ones are not ended.
RANK = {SENDING: 0, HASTY: 0, HEAD: 1, IDLE: 2}

_PROBLEM = document(
    {
        "type": "about:blank", "title": "Service Unavailable", "status": 503,
        "code": "too_many_connections",
        "detail": ("all connections of this server are in use: come back in a moment, and close "
                "those that you do not need"),
    }
)  # fmt: skip
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: "
    b"application/problem+json\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_PROBLEM), _PROBLEM)
)


class Counted:
    """A transport that counts the bytes written to it.

    What a client has taken is that count, less what is still in the write buffer.
    """

    def __init__(self, transport: Any) -> None:
        self._transport, self.written = transport, 0

    def write(self, data: Any) -> None:
        """Counts the bytes and writes them."""
        self.written += len(data)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Seen:
    """What a connection does, since when, and how much of its answers it had taken by then."""

    def __init__(self, address: str, now: float) -> None:
        self.address, self.doing, self.since = address, HEAD, now
        self.request: Any = None  # the last request that was begun
        self.unsent = self.taken = self.taken_before = 0

    def update(self, connection: Any, now: float) -> None:
        """Notes what the connection does now.

        The time starts anew if it does something else, or waits for another request.
        """
        self.unsent, request = connection.transport.get_write_buffer_size(), connection.cycle
        self.taken = connection.transport.written - self.unsent
        doing = _doing(connection, self.unsent)
        if doing != self.doing or (doing == HEAD and request is not self.request):
            self.doing = doing
            self.since = now
            self.request = request
            self.taken_before = self.taken

    def may_go(self, now: float) -> bool:
        """Tells whether the connection may be ended to make room."""
        return self.doing == HASTY or (self.doing in RANK and self.since <= now - GRACE_S)

    def too_slow(self, now: float, write_s: float) -> bool:
        """Tells whether the connection has kept the server waiting for too long.

        For a client that has taken enough of its answer, the time starts anew.
        """
        if self.doing == SENDING and self.since <= now - write_s:
            slow = self.taken - self.taken_before < SLOWEST
            self.since = now
            self.taken_before = self.taken
            return slow
        return self.doing == HEAD and self.since <= now - HEAD_S


def _doing(connection: Any, unsent: int) -> str:
    """Returns what a connection does: one of the words above."""
    if unsent:
        return SENDING
    if connection.timeout_keep_alive_task is not None:
        return IDLE
    if connection.cycle is None or connection.cycle.response_complete:
        return HEAD
    return HASTY if connection.scope.get("rhythm.hasty") else BUSY


class Connections:
    """All connections of one server.

    Those from `proxies` come from many clients, and are not limited by address.
    """

    def __init__(
        self,
        settings: Settings,
        files: int | None = None,
        proxies: Collection[str] = (),
        report: Callable[[str, str], None] = lambda address, reason: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`files` is how many files the process may open.

        `report` gets the address and the reason when a connection is cut off or turned away.
        """
        self.most = (
            settings.server_connections
            if files is None
            else min(settings.server_connections, max(LEAST, files - FILES - MAX_TURNED_AWAY))
        )
        self.most_of_one = min(self.most, settings.server_connections_per_address)
        self.write_s = settings.server_write_timeout_s
        self.proxies, self.report, self.clock = proxies, report, clock
        self._seen: dict[Any, Seen] = {}
        self._of: Counter[str] = Counter()
        self._away: set[Any] = set()
        # connections that may be ended to make room; the last of the list is ended first
        self._waiting: list[Any] = []
        self._checked_at = self._sorted_at = clock() - POLL_INTERVAL_S

    def protocol(self, base: type[Any]) -> type[Any]:
        """Returns uvicorn's protocol class, extended so that each connection takes a place here."""
        connections = self

        class Limited(base):  # type: ignore[misc]  # which of uvicorn's protocols it is turns out when it runs
            def connection_made(self, transport: Any) -> None:
                super().connection_made(Counted(transport))
                connections.came(self)

            def data_received(self, data: bytes) -> None:
                if not connections.answered(self):
                    super().data_received(data)

            def connection_lost(self, exc: Exception | None) -> None:
                connections.left(self)
                super().connection_lost(exc)

        return Limited

    def came(self, connection: Any) -> None:
        """Gives a new connection a place, or turns it away."""
        address = whose(str(connection.client[0])) if connection.client else ""
        if not self._has_room(address):
            self.report(address, "too_many_connections")
            if len(self._away) >= MAX_TURNED_AWAY:
                connection.transport.abort()
            else:
                self._away.add(connection)
                connection.loop.call_later(GRACE_S, connection.transport.abort)
            return
        self._seen[connection] = Seen(address, self.clock())
        self._of[address] += 1

    def answered(self, connection: Any) -> bool:
        """Returns whether the connection was turned away; if so, the client gets its answer 503."""
        if connection not in self._away:
            return False
        if not connection.transport.is_closing():
            connection.transport.write(FULL)
            connection.transport.close()
        return True

    def left(self, connection: Any) -> None:
        """Gives back the place of a connection that has ended."""
        self._away.discard(connection)
        if seen := self._seen.pop(connection, None):
            self._of[seen.address] -= 1
            if not self._of[seen.address]:
                del self._of[seen.address]

    def _has_room(self, address: str) -> bool:
        own = address not in self.proxies and self._of[address] >= self.most_of_one
        if own or len(self._seen) >= self.most:
            return self._make_room(address if own else None)
        return True

    def _make_room(self, address: str | None) -> bool:
        """Ends the connection that has kept the server waiting longest.

        Returns False if there is none. With an address, only connections of this address, which has
        too many, are considered.
        """
        now = self.clock()
        if not self._waiting and now - self._sorted_at >= POLL_INTERVAL_S / 10:
            self._sorted_at = now
            self._check_all(now)
            waiting = [each for each, seen in self._seen.items() if seen.may_go(now)]
            self._waiting = sorted(
                waiting,
                key=lambda each: (RANK[self._seen[each].doing], self._seen[each].since),
                reverse=True,
            )
        for n in range(len(self._waiting) - 1, -1, -1):
            each = self._waiting[n]
            if each not in self._seen:
                del self._waiting[n]
            elif address is None or self._seen[each].address == address:
                del self._waiting[n]
                before, seen = self._seen[each].doing, self._seen[each]
                seen.update(each, now)
                if seen.doing == before:
                    self._end(each)
                    return True
        return False

    def check(self) -> None:
        """Ends the connections that have kept the server waiting too long.

        Call it several times a second.
        """
        now = self.clock()
        if now - self._checked_at < POLL_INTERVAL_S:
            return
        self._checked_at = now
        self._check_all(now)
        for each in [each for each, seen in self._seen.items() if seen.too_slow(now, self.write_s)]:
            self.report(
                self._seen[each].address,
                "write_timeout" if self._seen[each].doing == SENDING else "head_timeout",
            )
            self._end(each)
        self._bound_unsent()

    def _check_all(self, now: float) -> None:
        for each, seen in self._seen.items():
            seen.update(each, now)

    def _bound_unsent(self) -> None:
        """Ends the slowest connections if too many bytes wait in memory for clients."""
        unsent = sum(seen.unsent for seen in self._seen.values())
        slowest: Iterable[Any] = sorted(
            (each for each, seen in self._seen.items() if seen.unsent),
            key=lambda each: self._seen[each].since,
        )
        for each in slowest:
            if unsent <= UNSENT:
                return
            unsent -= self._seen[each].unsent
            self.report(self._seen[each].address, "write_timeout")
            self._end(each)

    def _end(self, connection: Any) -> None:
        """Ends a connection at once.

        Closing it would wait until the client had taken everything.
        """
        self.left(connection)
        connection.transport.abort()


def open_files() -> int | None:
    """Returns how many files this process may open; None if that is not limited or not known."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if soft == resource.RLIM_INFINITY else soft
