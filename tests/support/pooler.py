"""A pooler in transaction mode, as unkind as it may be: the next transaction of a client never has
the session of the last one.

It knows as much of PostgreSQL's protocol as that needs: where messages end, and when a transaction
has ended.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

STARTUP, SSL = 196608, 80877103
AT_LEAST = 3  # sessions: as many transactions pass until one has the same again


class Lost(Exception):
    """The other side has gone away."""


class Wire:
    """Messages of one side."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            if not (more := self.connection.recv(count - len(data))):
                raise Lost
            data += more
        return data

    def message(self) -> tuple[bytes, bytes]:
        """Its kind, and all of it."""
        head = self.exactly(5)
        return head[:1], head + self.exactly(struct.unpack("!I", head[1:])[0] - 4)

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)


def _startup(user: str, database: str) -> bytes:
    body = (
        struct.pack("!I", STARTUP)
        + b"".join(part.encode() + b"\0" for part in ("user", user, "database", database))
        + b"\0"
    )
    return struct.pack("!I", len(body) + 4) + body


class Pooler:
    """Lends sessions of the server with this URL, which asks for no password. Its own socket is in
    the folder."""

    def __init__(self, folder: Path, server: str) -> None:
        given = conninfo_to_dict(server)
        self.host, self.port = str(given["host"]), int(given.get("port") or 5432)
        self.user, self.database = str(given["user"]), str(given["dbname"])
        self.url = f"postgresql://{self.user}@/{self.database}?host={folder}"
        self.greeting = b""
        self.idle: deque[Wire] = deque()
        self.lock = threading.Lock()
        self.clients: set[socket.socket] = set()
        self.closed = False
        self.answers = 0  # that clients have waited for
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / ".s.PGSQL.5432"))
        self.listener.listen(50)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            self.closed = True
            for each in (*self.clients, *(wire.connection for wire in self.idle)):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.clients.add(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _open(self) -> Wire:
        """A new session; what the server says of itself is what clients are told."""
        if self.host.startswith("/"):
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(f"{self.host}/.s.PGSQL.{self.port}")
        else:
            connection = socket.create_connection((self.host, self.port))
        wire, said = Wire(connection), b""
        wire.send(_startup(self.user, self.database))
        while True:
            kind, data = wire.message()
            if kind == b"S":
                said += data
            if kind == b"Z":
                self.greeting = said
                return wire

    def _take(self) -> Wire:
        with self.lock:
            if len(self.idle) >= AT_LEAST:
                return self.idle.popleft()
        return self._open()

    def _give_back(self, session: Wire) -> None:
        """To be lent again; what comes after the end is closed by whoever brings it."""
        with self.lock:
            if not self.closed:
                self.idle.append(session)
                return
        session.connection.close()

    def _serve(self, client: socket.socket) -> None:
        wire, lent = Wire(client), None
        try:
            self._greet(wire)
            while True:
                kind, data = wire.message()
                if kind == b"X":
                    return
                lent = lent or self._take()
                lent.send(data)
                if kind in b"QS" and self._answer(lent, wire) == b"I":
                    self._give_back(lent)
                    lent = None
        except (Lost, OSError):
            return
        finally:
            if lent is not None:  # in the middle of a transaction, or broken
                lent.connection.close()
            self.clients.discard(client)
            client.close()

    def _greet(self, client: Wire) -> None:
        while True:
            body = client.exactly(struct.unpack("!I", client.exactly(4))[0] - 4)
            if struct.unpack("!I", body[:4])[0] == STARTUP:
                break
            client.send(b"N")
        if not self.greeting:
            self._give_back(self._open())
        key = b"K" + struct.pack("!III", 12, 1, 1)
        client.send(
            b"R"
            + struct.pack("!II", 8, 0)
            + self.greeting
            + key
            + b"Z"
            + struct.pack("!I", 5)
            + b"I"
        )

    def _answer(self, server: Wire, client: Wire) -> bytes:
        """Passes on what the server answers. Whether a transaction is under way then, as it
        says."""
        while True:
            kind, data = server.message()
            self.answers += kind == b"Z"  # before the client has it, and looks
            client.send(data)
            if kind == b"Z":
                return data[-1:]


@contextlib.contextmanager
def pooler(folder: Path, server: str) -> Iterator[str]:
    """The URL of a pooler before that server."""
    made = Pooler(folder, server)
    try:
        yield made.url
    finally:
        made.close()
