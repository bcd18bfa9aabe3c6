"""Two PostgreSQL servers on one machine, one of which follows the other and can take its place."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.postgres import FAST, SETTINGS, _binaries, _cleaned_up, _unprivileged


class Pair:
    """A primary and its standby. `url` leads to whichever can be written to; the standby comes
    first in it."""

    def __init__(self, folder: Path, synchronous: bool) -> None:
        self.folder, self.binaries = folder, _binaries()
        self.drop = _unprivileged() if os.geteuid() == 0 else None
        self.primary, self.standby = folder / "a", folder / "b"
        for place in (self.primary, self.standby):
            place.mkdir()
            if self.drop:
                shutil.chown(place, "nobody")
        self.url = f"postgresql://rhythm@/postgres?host={self.standby},{self.primary}"
        self._begin(synchronous)

    def at(self, place: Path) -> str:
        return f"postgresql://rhythm@/postgres?host={place}"

    def lose_the_primary(self) -> None:
        """It is gone from one moment to the next, without a word to its clients."""
        self._control(self.primary, "-m", "immediate", "stop")

    def cut_off(self) -> None:
        """The standby has everything up to now, and gets nothing more."""
        with psycopg.connect(self.at(self.primary), autocommit=True) as primary:
            while (
                primary.execute(
                    "SELECT 1 FROM pg_stat_replication WHERE replay_lsn >= "
                    "pg_current_wal_flush_lsn()"
                ).fetchone()
                is None
            ):
                pass
            with psycopg.connect(self.at(self.standby), autocommit=True) as standby:
                standby.execute("ALTER SYSTEM SET primary_conninfo = ''")
                standby.execute("SELECT pg_reload_conf()")
            while primary.execute("SELECT 1 FROM pg_stat_replication").fetchone() is not None:
                pass

    def rows(self, place: Path, text: str) -> list[Any]:
        with psycopg.connect(self.at(place), autocommit=True) as connection:
            return connection.execute(text.encode()).fetchall()

    def promote(self) -> None:
        self._control(self.standby, "promote")

    def _begin(self, synchronous: bool) -> None:
        trust = ("-U", "rhythm", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        self._run("initdb", "-D", str(self.primary / "data"), *trust)
        self._start(self.primary)
        self._run(
            "pg_basebackup",
            "-D",
            str(self.standby / "data"),
            "-h",
            str(self.primary),
            "-U",
            "rhythm",
            "-R",
            "-c",
            "fast",
            "--no-sync",
        )
        self._start(self.standby)
        if synchronous:
            with psycopg.connect(self.at(self.primary), autocommit=True) as admin:
                admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                admin.execute("ALTER SYSTEM SET synchronous_commit = on")
                admin.execute("SELECT pg_reload_conf()")
                while (
                    admin.execute(
                        "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
                    ).fetchone()
                    is None
                ):
                    pass

    def _start(self, place: Path) -> None:
        fast = FAST.replace("-c synchronous_commit=off", "")
        self._control(
            place, "-l", str(place / "log"), "-o", f"{SETTINGS} {fast} -k {place}", "start"
        )

    def _control(self, place: Path, *how: str) -> None:
        self._run("pg_ctl", "-D", str(place / "data"), "-w", *how)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.binaries / program), *arguments]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        done = subprocess.run(
            command, cwd=self.folder, preexec_fn=self.drop, text=True, check=False, **quiet
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr}")


@contextlib.contextmanager
def pair(synchronous: bool = True) -> Iterator[Pair]:
    """With `synchronous`, nothing is acknowledged that the standby does not have."""
    if not (_binaries() / "pg_basebackup").exists():
        pytest.skip("this PostgreSQL has no pg_basebackup, which makes a standby")
    folder = Path(tempfile.mkdtemp(prefix="rhythm-pair-", dir="/tmp"))
    drop = _unprivileged() if os.geteuid() == 0 else None
    folder.chmod(0o755)
    stop = "; ".join(
        f"'{_binaries()}/pg_ctl' -D '{folder}/{name}/data' -m immediate -w stop" for name in "ab"
    )
    try:
        with _cleaned_up(f"{stop}; rm -rf '{folder}/a' '{folder}/b'", drop):
            yield Pair(folder, synchronous)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
