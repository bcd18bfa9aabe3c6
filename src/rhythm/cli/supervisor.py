"""Several worker processes: one that dies is replaced, and signals reach all of them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

LOOK_S = 0.1
YOUNG_S = 5.0  # a process that died younger is replaced only after a while: ever longer, if it happens again
LONGEST_S = 10.0
REFUSED = 2  # the exit code of a process that could not begin: another one could not either


class Process:
    """One place for a worker process. `begun` is 0 while nobody is there."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pid, self.begun, self.failures, self.again_at = 0, 0.0, 0, 0.0

    def begin(self, work: Callable[[int], int]) -> None:
        self.begun = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            _be(lambda: work(self.number))

    def ended(self, code: int) -> str:
        """What to say of its end; when another one may begin."""
        lived_s, self.pid = time.monotonic() - self.begun, 0
        self.failures = self.failures + 1 if lived_s < YOUNG_S else 0
        rest_s = min(0.1 * 2**self.failures, LONGEST_S) if self.failures else 0.0
        self.again_at = time.monotonic() + rest_s
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"a worker process {how}; another one begins" + (f" in {rest_s:.1f} s" if rest_s >= 1 else "")


def _be(work: Callable[[], int]) -> None:
    """The life of the new process. A session of its own: Ctrl-C in the terminal reaches the supervisor, and the others through it."""
    code = 1
    try:
        os.setsid()
        code = work()
    except SystemExit as exit:
        code = exit.code if isinstance(exit.code, int) else 1
    except BaseException as problem:
        from rhythm.cli.main import told

        code = told(problem)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def supervise(count: int, work: Callable[[int], int], say: Callable[[int, str], None]) -> int:
    """Keeps so many processes at work, each of which knows its number, until a signal comes; the exit code of the whole.

    `say` is told of those that die, by process id.
    """
    processes = [Process(number) for number in range(count)]
    asked: list[int] = []

    def forward(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        for process in processes:
            if process.pid:
                _send(process.pid)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, forward)
    while True:
        refused = _reap(processes, bool(asked), say)
        if refused is not None and not asked:
            forward(signal.SIGTERM, None)
        if asked and not any(process.pid for process in processes):
            return refused or 0
        for process in processes:
            if not asked and not process.pid and time.monotonic() >= process.again_at:
                process.begin(work)
        time.sleep(LOOK_S)


def _reap(processes: list[Process], stopping: bool, say: Callable[[int, str], None]) -> int | None:
    """Takes note of those that have ended; the exit code of one that could not begin."""
    refused = None
    for process in processes:
        if process.pid and (ended := os.waitpid(process.pid, os.WNOHANG))[0]:
            code, pid = os.waitstatus_to_exitcode(ended[1]), process.pid
            said = process.ended(code)
            if code == REFUSED:
                refused = code
            elif not stopping:
                say(pid, said)
    return refused


def _send(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
