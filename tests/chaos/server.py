"""A PostgreSQL server of one's own that can be stopped, started, and asked about its sessions."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from tests.support.postgres import SETTINGS, _binaries, _cleaned_up, _unprivileged

# What was acknowledged must outlive the server, not the machine: its writes reach the system before
# the answer does.
DURABLE = (
    "-c fsync=off -c synchronous_commit=on -c max_connections=200 -c logging_collector=off -c "
    "log_min_messages=warning"
)


class Server:
    """`url` leads to it while it runs."""

    def __init__(self, folder: Path, settings: str) -> None:
        self.folder, self.settings = folder, settings
        self.url = f"postgresql://rhythm@/postgres?host={folder}"
        self.log = folder / "log"
        self._control = str(_binaries() / "pg_ctl")
        self._drop = _unprivileged() if os.geteuid() == 0 else None

    def make(self) -> None:
        self._run("cp", "-R", str(_template()), str(self.folder / "data"))

    def start(self) -> None:
        """Returns when it accepts connections."""
        self._control_it(
            "-w", "-l", str(self.log), "-o", f"{SETTINGS} {self.settings} -k {self.folder}", "start"
        )

    def stop(self, mode: str = "immediate") -> None:
        self._control_it("-m", mode, "-w", "stop")

    def _control_it(self, *args: str) -> None:
        self._run(self._control, "-D", str(self.folder / "data"), *args)

    def _run(self, *command: str) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "preexec_fn": self._drop}
        done = subprocess.run(command, cwd=self.folder, text=True, check=False, **quiet)  # type: ignore[call-overload]
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stderr}")

    def rows(self, text: str) -> list[Any]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(text.encode()).fetchall()

    def sessions(self) -> list[int]:
        """The server's processes of all clients but this one."""
        found = self.rows(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND "
            "pid <> pg_backend_pid() ORDER BY pid"
        )
        return [pid for (pid,) in found]

    def end_session(self, chance: Random) -> bool:
        """Ends a session of somebody, in the middle of whatever it does."""
        sessions = self.sessions()
        return bool(sessions) and bool(
            self.rows(f"SELECT pg_terminate_backend({chance.choice(sessions)})")[0][0]
        )

    def set(self, name: str, value: str) -> None:
        """Changes a setting of the server, at once."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
            connection.execute("SELECT pg_reload_conf()")
            connection.execute("SELECT pg_sleep(0.3)")

    def logged(self, text: str) -> int:
        """How often the server has written this into its log."""
        return self.log.read_text(errors="replace").count(text) if self.log.exists() else 0


@cache
def _template() -> Path:
    """The files of a server that was never started, made once: copying them is much quicker."""
    folder = Path(tempfile.mkdtemp(prefix="rhythm-chaos-", dir="/tmp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    server = Server(folder, "")
    if server._drop:
        shutil.chown(folder, "nobody")
    options = ("-U", "rhythm", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
    server._run(str(_binaries() / "initdb"), "-D", str(folder / "data"), *options)
    return folder / "data"


@contextlib.contextmanager
def own_server(settings: str = "") -> Iterator[Server]:
    # a short path: the name of a socket is limited
    folder = Path(tempfile.mkdtemp(prefix="rhythm-chaos-", dir="/tmp"))
    server = Server(folder, f"{DURABLE} {settings}")
    if server._drop:
        shutil.chown(folder, "nobody")
    with _cleaned_up(
        f"'{server._control}' -D '{folder}/data' -m immediate -w stop; rm -rf '{folder}'",
        server._drop,
    ):
        server.make()
        server.start()
        yield server


def until(condition: Any, within_s: float, every_s: float = 0.05) -> bool:
    """Waits until the condition holds; whether it did in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True
