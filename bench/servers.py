"""Empty databases, all on the same disk: one PostgreSQL server for everybody, files of SQLite, and
folders."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal
from urllib.parse import parse_qs, urlsplit

import psycopg
from tests.support.postgres import private_server

from rhythm.record import Record

Store = Literal["PostgreSQL", "SQLite", "own log"]
SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "max_connections": "200",
    "deadlock_timeout": "1s",
    "lock_timeout": "0",
}
_numbers = itertools.count(1)


class Server(Record):
    """The PostgreSQL of a run."""

    url: str
    version: str
    settings: dict[str, str]

    @property
    def folder(self) -> str:
        """Where its socket is."""
        return parse_qs(urlsplit(self.url).query)["host"][0]


@contextmanager
def server(**changed: str) -> Iterator[Server]:
    """A private server with the settings of all benchmarks, but for some."""
    settings = {**SETTINGS, **changed}
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    with private_server(options) as url:
        with psycopg.connect(url) as db:
            [[version]] = db.execute("SHOW server_version").fetchall()
        yield Server(url, version.partition(" ")[0], settings)


@contextmanager
def empty(store: Store, postgres: Server) -> Iterator[str]:
    """An empty place for one job, gone afterwards: a URL, or the path of a folder."""
    if store == "PostgreSQL":
        with _database(postgres) as url:
            yield url
        return
    with tempfile.TemporaryDirectory(prefix="rhythm-bench-", dir="/tmp") as folder:
        yield f"sqlite:///{folder}/bench.db" if store == "SQLite" else folder


@contextmanager
def _database(postgres: Server) -> Iterator[str]:
    name = f"bench_{next(_numbers)}"
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        try:
            # without a user before the host, which not every driver takes
            yield f"postgresql:///{name}?host={postgres.folder}&user=rhythm"
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
            admin.execute(b"CHECKPOINT")  # nobody pays for the one before
