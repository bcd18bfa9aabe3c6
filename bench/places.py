"""Empty databases for the benchmarks, every commit synced to disk: a file of SQLite, and a PostgreSQL server of our own."""

from __future__ import annotations

import itertools
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from tests.support.postgres import private_server

from bench import raw
from rhythm import Rhythm

SYNCED = "-c fsync=on -c synchronous_commit=on -c shared_buffers=128MB"
APP = str(Path(__file__).with_name("tasks.py"))

cleanup = ExitStack()  # what is left to do when the benchmarks have ended
_numbers = itertools.count(1)


class Place:
    """One empty database. `where` names it without Rhythm."""

    def __init__(self, name: str, url: str, where: str, connect: Callable[[], Any], make_raw: Callable[[], raw.Raw]) -> None:
        self.name, self.url, self.where, self.connect, self.make_raw = name, url, where, connect, make_raw
        self.app = Rhythm(url, tasks={})

    def close(self) -> None:
        self.app.close()

    def raw(self, job: Callable[..., Any], *args: Any) -> Any:
        """What a job takes without an engine."""
        with closing(self.make_raw()) as alone:
            return job(alone, *args)

    def until_done(self, began: float) -> float:
        """Seconds from then, a time of this machine's clock, to the end of the last execution, when nothing is left to do."""
        with closing(self.connect()) as db:
            while db.execute("SELECT 1 FROM ready LIMIT 1").fetchall():
                time.sleep(0.02)
            return float(db.execute("SELECT max(finished_at) FROM executions").fetchall()[0][0]) / 1e6 - began

    @contextmanager
    def workers(self, processes: int, warm_up: str) -> Iterator[None]:
        """Worker processes that have run this workflow some times."""
        command = [sys.executable, "-m", "rhythm", "worker", "--app", APP, "--processes", str(processes), "--database", self.url]
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for handle in self.app.start_many(warm_up, range(100 * processes)):
                handle.result("60s")
            yield
        finally:
            started.terminate()
            started.wait()


def sqlite() -> Place:
    path = Path(cleanup.enter_context(tempfile.TemporaryDirectory())) / "bench.db"
    return Place("SQLite", f"sqlite:///{path}", str(path), lambda: sqlite3.connect(path), lambda: raw.OnSqlite(f"{path}.raw"))


def postgres() -> Place:
    database = f"bench_{next(_numbers)}"
    with psycopg.connect(_server(), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {database}".encode())
    url = _server().replace("/postgres?", f"/{database}?")

    def connect() -> psycopg.Connection[Any]:
        return psycopg.connect(url, autocommit=True, options="-c search_path=rhythm")

    return Place("PostgreSQL", url, url, connect, lambda: raw.OnPostgres(url))


@cache
def _server() -> str:
    return cleanup.enter_context(private_server(SYNCED))


def each() -> Iterator[Place]:
    """Each database anew, so that no benchmark pays for the one before."""
    for make in (sqlite, postgres):
        with closing(make()) as place:
            yield place
