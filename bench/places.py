"""Empty databases for the benchmarks, every commit synced to disk: a file of SQLite, and a
PostgreSQL server of our own."""

from __future__ import annotations

import itertools
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from tests.support.postgres import private_server

from bench import raw
from rhythm import Rhythm

SYNCED = "-c fsync=on -c synchronous_commit=on -c shared_buffers=128MB"
APP = str(Path(__file__).with_name("tasks.py"))
WORKERS = "rhythm worker"
MAX_WARM_UPS = 1000
BEGIN_S, EACH_BEGINS_S = 60.0, 3.0  # until workers work, at most
STOP_S, DONE_S = 60.0, 600.0

cleanup = ExitStack()  # what is left to do when the benchmarks have ended
_numbers = itertools.count(1)


class Place:
    """One empty database. `where` names it without Rhythm."""

    def __init__(
        self,
        name: str,
        url: str,
        where: str,
        connect: Callable[[], Any],
        make_raw: Callable[[], raw.Raw],
        asked_in: Callable[[Any, float], int],
    ) -> None:
        self.name, self.url, self.where, self.connect, self.make_raw, self.asked_in = (
            name,
            url,
            where,
            connect,
            make_raw,
            asked_in,
        )
        self.app = Rhythm(url, tasks={})

    def close(self) -> None:
        self.app.close()

    def raw(self, job: Callable[..., Any], *args: Any) -> Any:
        """What a job takes without an engine."""
        with closing(self.make_raw()) as alone:
            return job(alone, *args)

    def until_done(self, began: float) -> float:
        """Seconds from then, a time of this machine's clock, to the end of the last execution, when
        nothing is left to do. Raises `RuntimeError` if there is for long."""
        limit = time.monotonic() + DONE_S
        with closing(self.connect()) as db:
            while db.execute("SELECT 1 FROM ready LIMIT 1").fetchall():
                if time.monotonic() > limit:
                    raise RuntimeError(f"work is left after {DONE_S:g} s")
                time.sleep(0.02)
            return (
                float(db.execute("SELECT max(finished_at) FROM executions").fetchall()[0][0]) / 1e6
                - began
            )

    @contextmanager
    def workers(self, processes: int, warm_up: str) -> Iterator[int]:
        """Worker processes that have all begun, and together have run this workflow some times: the
        process that was started. To PostgreSQL they say that they are `WORKERS`."""
        command = [
            sys.executable,
            "-m",
            "rhythm",
            "worker",
            "--app",
            APP,
            "--processes",
            str(processes),
            "--database",
            self.url,
        ]
        environment = {**os.environ, "PGAPPNAME": WORKERS}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started = subprocess.Popen(command, env=environment, **quiet)
        try:
            self._until_all_beat(processes, started)
            for handle in self.app.start_many(warm_up, range(min(100 * processes, MAX_WARM_UPS))):
                handle.result("120s")
            yield started.pid
        finally:
            started.terminate()
            try:
                started.wait(STOP_S)
            except subprocess.TimeoutExpired:
                started.kill()  # workers of a supervisor end with it
                started.wait()

    def _until_all_beat(self, processes: int, started: subprocess.Popen[bytes]) -> None:
        """Waits until so many workers have sent a heartbeat. Raises `RuntimeError` if they do not
        for long."""
        limit = time.monotonic() + BEGIN_S + processes * EACH_BEGINS_S
        with closing(self.connect()) as db:
            while self.worker_pids(db, processes) is None:
                if started.poll() is not None or time.monotonic() > limit:
                    raise RuntimeError(f"no {processes} workers have begun")
                time.sleep(0.05)

    def worker_pids(self, db: Any, processes: int) -> list[int] | None:
        """The processes of the workers; None if there are not so many."""
        pids = [pid for (pid,) in db.execute("SELECT pid FROM worker_heartbeats").fetchall()]
        return pids if len(pids) >= processes else None


def sqlite() -> Place:
    path = Path(cleanup.enter_context(tempfile.TemporaryDirectory())) / "bench.db"
    return sqlite_at(path)


def sqlite_at(path: Path) -> Place:
    connect, make_raw = partial(sqlite3.connect, path), partial(raw.OnSqlite, f"{path}.raw")
    return Place("SQLite", f"sqlite:///{path}", str(path), connect, make_raw, _commits)


def _commits(db: sqlite3.Connection, watch_s: float) -> int:
    """Commits of others in a while; those who only look cannot be seen."""
    seen, limit = set[int](), time.monotonic() + watch_s
    while time.monotonic() < limit:
        seen.add(db.execute("PRAGMA data_version").fetchall()[0][0])
        time.sleep(0.01)
    return len(seen) - 1


def postgres(server: str = "") -> Place:
    """A new database of this server, else of our own."""
    server, database = server or _server(), f"bench_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {database}".encode())
    return postgres_at(urlsplit(server)._replace(path=f"/{database}").geturl())


def postgres_at(url: str) -> Place:
    def connect() -> psycopg.Connection[Any]:
        return psycopg.connect(url, autocommit=True, options="-c search_path=rhythm")

    return Place("PostgreSQL", url, url, connect, lambda: raw.OnPostgres(url), _transactions)


def _transactions(db: psycopg.Connection[Any], watch_s: float) -> int:
    """Transactions of a while, by the server's own account."""
    count = (
        "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = "
        "current_database()"
    )
    before = db.execute(count).fetchall()[0][0]
    time.sleep(watch_s)
    return int(db.execute(count).fetchall()[0][0] - before)


@cache
def _server() -> str:
    return cleanup.enter_context(private_server(SYNCED))


def each() -> Iterator[Place]:
    """Each database anew, so that no benchmark pays for the one before."""
    for make in (sqlite, postgres):
        with closing(make()) as place:
            yield place
