"""Several `rhythm server` processes on loopback, each at an address of its own: one that was killed
comes back where it was."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from itertools import islice
from pathlib import Path

from tests.chaos.processes import Process, _die_with_us
from tests.support.compiled import IMPORTED_FROM


class Servers:
    """The servers of one scenario, those that have gone included."""

    def __init__(self, folder: Path, url: str, count: int) -> None:
        self.folder, self.url = folder, url
        self.ports = _free_ports(count)
        self.all: list[Process] = []
        self.at = dict[int, Process]()  # by port
        for port in self.ports:
            self.start(port)

    @property
    def bases(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    @property
    def ready(self) -> list[int]:
        """The ports where somebody answers."""
        return [
            port
            for port, process in self.at.items()
            if process.alive and "rhythm: serving" in process.log()
        ]

    def start(self, port: int) -> None:
        log = self.folder / "logs" / f"server-{len(self.all)}"
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("RHYTHM_", "WORKFLOW_"))
        }
        path = {"PYTHONPATH": str(IMPORTED_FROM), "PYTHONUNBUFFERED": "1"}
        command = [
            sys.executable,
            "-m",
            "rhythm",
            "server",
            "--port",
            str(port),
            "--database",
            self.url,
        ]
        with log.open("wb") as out:
            popen = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**inherited, **path},
                stdout=out,
                stderr=out,
                preexec_fn=_die_with_us,
            )
        self.at[port] = Process(popen, log)
        self.all.append(self.at[port])

    def kill(self, port: int) -> None:
        """With `kill -9`; another one takes its place."""
        self.at[port].kill()
        self.start(port)

    def stop(self, within_s: float = 20.0) -> list[Process]:
        """Tells all to stop; those that did not in time, or not well."""
        alive = [process for process in self.at.values() if process.alive]
        for process in alive:
            process.send(signal.SIGTERM)
        bad = [
            process
            for process in alive
            if process.exit_s(within_s) is None or process.popen.returncode != 0
        ]
        self.end()
        return bad

    def end(self) -> None:
        for process in self.at.values():
            process.kill()

    def bugs(self) -> list[str]:
        """What no killed worker or server explains: nothing is wrong with the database."""
        lines = [line for process in self.all for line in process.log().splitlines()]
        return [line for line in lines if "Traceback" in line or " failed: " in line]


def _free_ports(count: int) -> list[int]:
    """Of those that the system gives to nobody: else a client that knocks where nobody is may be
    given the very port it knocks at, and the server could not come back."""
    free = (
        port for port in random.SystemRandom().sample(range(20_000, 32_000), 1000) if _is_free(port)
    )
    return list(islice(free, count))


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
