"""Worker processes: started, killed, frozen and told to stop; what they write is kept, for each of
them, in a file."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.compiled import IMPORTED_FROM

ROOT = Path(__file__).parents[2]
APP = Path(__file__).with_name("tasks.py")
LOST = "the claim has passed to another worker"  # said by a worker that was refused by the fence
LAPSED = "what ran here is given up"  # said by a worker that finds it was silent for too long

HEARTBEAT_S, DEAD_AFTER_S, CLAIM_TTL_S, POLL_S = 0.4, 2.0, 10.0, 0.25
SETTINGS = {
    "RHYTHM_HEARTBEAT_INTERVAL": str(HEARTBEAT_S),
    "RHYTHM_DEAD_AFTER": str(DEAD_AFTER_S),
    "RHYTHM_CLAIM_TTL": str(CLAIM_TTL_S),
    "RHYTHM_WORKER_POLL_INTERVAL": str(POLL_S),
    "RHYTHM_SHUTDOWN_GRACE": "1",
    "RHYTHM_CRASH_LIMIT": "1000000",  # what chance kills is no poison
}

# Where nobody is to be taken for dead because the machine is slow. One whose process has ended is
# missed at once all the same.
PATIENT = {"RHYTHM_HEARTBEAT_INTERVAL": "1", "RHYTHM_DEAD_AFTER": "20", "RHYTHM_CLAIM_TTL": "60"}


class Process:
    """One worker process. Its log stays when it has gone."""

    def __init__(self, popen: subprocess.Popen[bytes], log: Path) -> None:
        self.popen, self._log, self.pid = popen, log, popen.pid
        self.began = time.monotonic()
        self.killed_at: float | None = None
        self.machine = ""  # where it believes to be

    @property
    def alive(self) -> bool:
        return self.popen.poll() is None

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def worker_names(self) -> list[str]:
        """What it is called in the database, or its processes are; empty before it works."""
        return re.findall(r"^rhythm: worker (\S+): ", self.log(), re.MULTILINE)

    def pids(self) -> list[int]:
        """Its own and, of a supervisor, those of its processes."""
        try:
            return [
                self.pid,
                *map(int, Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()),
            ]
        except OSError:  # it has gone
            return [self.pid]

    def kill(self) -> None:
        self.killed_at = time.monotonic()
        self.popen.kill()
        self.popen.wait()

    def send(self, number: signal.Signals) -> None:
        if self.alive:
            self.popen.send_signal(number)

    def exit_s(self, within_s: float) -> float | None:
        """How long it takes to end; None if it has not ended by then."""
        began = time.monotonic()
        try:
            self.popen.wait(within_s)
        except subprocess.TimeoutExpired:
            return None
        return time.monotonic() - began


class Workers:
    """The workers of one scenario, those that have gone included."""

    def __init__(self, folder: Path, url: str, settings: Mapping[str, str]) -> None:
        self.folder, self.url, self.settings = folder, url, {**SETTINGS, **settings}
        self.all: list[Process] = []
        for name in ("ledger", "logs"):
            (folder / name).mkdir()

    @property
    def alive(self) -> list[Process]:
        return [process for process in self.all if process.alive]

    @property
    def ready(self) -> list[Process]:
        """Those that have begun to work."""
        return [process for process in self.alive if process.worker_names()]

    def start(
        self,
        count: int = 1,
        settings: Mapping[str, str] | None = None,
        before: Sequence[str] = (),
        options: Sequence[str] = (),
    ) -> list[Process]:
        """`before`: a command that starts the worker, such as strace; `options`: of the worker's
        own command."""
        started = [
            self._start({**self.settings, **(settings or {})}, before, options)
            for _ in range(count)
        ]
        self.all += started
        return started

    def start_on(self, machine: str) -> Process:
        """A worker that takes itself for one on this machine: it sees whose processes have ended
        there, and nowhere else."""
        [process] = self.start(settings={"RHYTHM_TEST_MACHINE": machine})
        process.machine = machine
        return process

    def _start(
        self, settings: Mapping[str, str], before: Sequence[str], options: Sequence[str]
    ) -> Process:
        log = self.folder / "logs" / f"{len(self.all)}-{time.monotonic_ns()}"
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("RHYTHM_")
        }
        path = os.pathsep.join([str(IMPORTED_FROM), str(ROOT)])
        ledger = {
            "RHYTHM_TEST_CHAOS_LEDGER": str(self.folder / "ledger"),
            "PYTHONPATH": path,
            "PYTHONUNBUFFERED": "1",
        }
        worker = [
            sys.executable,
            "-m",
            "rhythm",
            "worker",
            "--app",
            str(APP),
            "--database",
            self.url,
            "--concurrency",
            "16",
        ]
        with log.open("wb") as out:
            popen = subprocess.Popen(
                [*before, *worker, *options],
                cwd=self.folder,
                env={**inherited, **ledger, **settings},
                stdout=out,
                stderr=out,
                preexec_fn=_die_with_us,
            )
        return Process(popen, log)

    def stop(self, within_s: float = 20.0) -> list[Process]:
        """Tells all to stop; those that did not in time, and had to be killed."""
        alive = self.alive
        for process in alive:
            process.send(signal.SIGCONT)
            process.send(signal.SIGTERM)
        deadline = time.monotonic() + within_s
        late = [
            process
            for process in alive
            if process.exit_s(max(0.0, deadline - time.monotonic())) is None
        ]
        for process in late:
            process.kill()
        return late

    def said(self, text: str) -> int:
        """How often the workers have written this."""
        return sum(len(re.findall(text, process.log())) for process in self.all)

    def bugs(self) -> list[str]:
        """What no fault explains: tracebacks and lost wakes, with the lines that follow."""
        found = []
        for process in self.all:
            lines = process.log().splitlines()
            places = [
                i
                for i, line in enumerate(lines)
                if "Traceback" in line or "it slept although" in line
            ]
            found += [" | ".join(lines[max(0, i - 1) : i + 25]) for i in places]
        return found


def _die_with_us() -> None:
    """A worker does not outlive the one who torments it."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
