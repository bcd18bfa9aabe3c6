"""One connection to a server, which is kept between requests, with limits of time and size.

It says whether a request can have reached the server (`Lost`) or cannot (`NotSent`), and knows
nothing of what is asked. It follows no redirect and asks no proxy: a token goes to the server that
was named, and nowhere else. A certificate is always checked.
"""

from __future__ import annotations

import http.client
import select
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from rhythm.record import Record
from rhythm.remote.address import Address

CONNECT_S = 10.0  # how long a server may take to accept a connection
ANSWER_S = 30.0  # how long an answer may take, from the request to its last byte
LARGEST_ANSWER = 64 * 1024 * 1024  # bytes
PIECE = 64 * 1024


class NotSent(Exception):
    """Nothing was sent: the server was not reached. The text says why."""


class Lost(Exception):
    """The request was sent, at least in part, and no whole answer has come. The text says why."""


class TooLarge(Exception):
    """The answer is larger than any answer of a server of Rhythm."""


class Reply(Record):
    """An answer: its status, its body, and the headers that matter here, by lower-case names."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def kind(self) -> str:
        """The media type of the body, such as `application/json`."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Transport:
    """Sends requests to one server, one at a time. It may not be used by two threads at once."""

    def __init__(self, address: Address, headers: Mapping[str, str]) -> None:
        self._address, self._headers = address, dict(headers)
        self._connection: http.client.HTTPConnection | None = None

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, Any] | None = None,
        within_s: float = ANSWER_S,
    ) -> Reply:
        """Sends a request, and returns the answer. Raises `NotSent`, `Lost` or `TooLarge`."""
        connection = self._connected()
        given = {**self._headers, **(headers or {})}
        try:
            with _at_most(connection.sock, within_s):
                connection.request(method, f"{self._address.root}{path}", body, given)
                return _read(connection.getresponse())
        except (OSError, http.client.HTTPException) as problem:
            self.close()
            why = str(problem) or type(problem).__name__
            raise Lost(f"{' '.join(why.split())}") from problem
        except BaseException:  # what is left of the answer belongs to nothing that is asked next
            self.close()
            raise

    def close(self) -> None:
        """Closes the connection; the next request makes another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> http.client.HTTPConnection:
        """Returns a connection on which a request can be sent. Raises `NotSent`."""
        kept = self._connection
        if kept is not None and kept.sock is not None and not _is_over(kept.sock):
            return kept
        self.close()
        made = self._made()
        try:
            made.connect()
        except (OSError, http.client.HTTPException, UnicodeError) as problem:
            made.close()
            _not_reached(self._address, problem)
        self._connection = made
        return made

    def _made(self) -> http.client.HTTPConnection:
        host, port = self._address.host, self._address.port
        if not self._address.is_encrypted:
            return http.client.HTTPConnection(host, port, timeout=CONNECT_S)
        import ssl

        return http.client.HTTPSConnection(
            host, port, timeout=CONNECT_S, context=ssl.create_default_context()
        )


def _not_reached(address: Address, problem: Exception) -> NoReturn:
    """Raises `NotSent`, which says why there is no connection and what to do."""
    if isinstance(problem, socket.gaierror | UnicodeError):
        raise NotSent(f"there is no host {address.host!r:.80}: is the URL right?") from problem
    if isinstance(problem, ConnectionRefusedError):
        raise NotSent(
            f"nothing listens at {address}: is the URL right, and does `rhythm server` run there?"
        ) from problem
    if isinstance(problem, TimeoutError):
        raise NotSent(f"{address} does not answer within {CONNECT_S:.0f} s") from problem
    said = " ".join(str(getattr(problem, "verify_message", "") or problem).split()).rstrip(".")
    if type(problem).__name__ == "SSLCertVerificationError":
        raise NotSent(
            f"the certificate of {address} is not trusted: {said}; the variable SSL_CERT_FILE "
            f"names a file of authorities that are"
        ) from problem
    raise NotSent(f"there is no connection to {address}: {said}") from problem


def _read(response: http.client.HTTPResponse) -> Reply:
    """Returns the answer with its whole body. Raises `TooLarge` for one that never ends."""
    parts, size = list[bytes](), 0
    while part := response.read(PIECE):
        parts.append(part)
        size += len(part)
        if size > LARGEST_ANSWER:
            raise TooLarge(f"the answer has more than {LARGEST_ANSWER >> 20} MiB")
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Reply(response.status, b"".join(parts), headers)


def _is_over(sock: socket.socket) -> bool:
    """Returns whether the server has closed a connection on which nothing is asked."""
    try:
        return bool(select.select([sock], [], [], 0)[0])
    except (OSError, ValueError):
        return True


@contextmanager
def _at_most(sock: socket.socket, within_s: float) -> Iterator[None]:
    """Ends the connection if the block takes longer than this: a server that sends a byte now and
    then would never run into a limit for each byte."""
    over = threading.Event()

    def give_up() -> None:
        over.set()
        with suppress(OSError):  # it has just ended by itself
            # of the connection itself: a TLS socket would also change its state
            socket.socket.shutdown(sock, socket.SHUT_RDWR)

    sock.settimeout(within_s)
    timer = threading.Timer(within_s, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException) as problem:
        if over.is_set() or isinstance(problem, TimeoutError):
            raise TimeoutError(f"no whole answer within {within_s:.0f} s") from problem
        raise
    finally:
        timer.cancel()
