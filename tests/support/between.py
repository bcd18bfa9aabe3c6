"""What lies between a client and a PostgreSQL server, and may swallow everything: both ends believe
that the connection stands."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict


class Between:
    """Passes on what it gets, unless it is `silent`."""

    def __init__(self, folder: Path, server: str) -> None:
        given = conninfo_to_dict(server)
        self.server = f"{given['host']}/.s.PGSQL.{given.get('port') or 5432}"
        self.url = f"postgresql://{given['user']}@/{given['dbname']}?host={folder}"
        self.silent = False
        self._open: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen(50)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.server)
                self._open += [client, server]
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not self.silent:
                    target.sendall(data)
            if not self.silent:
                target.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextlib.contextmanager
def between(server: str) -> Iterator[Between]:
    with tempfile.TemporaryDirectory(prefix="rhythm-between-", dir="/tmp") as folder:
        made = Between(Path(folder), server)
        try:
            yield made
        finally:
            made.close()
