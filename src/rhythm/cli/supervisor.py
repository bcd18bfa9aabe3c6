"""Several worker processes: one that dies is replaced, and signals reach all of them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

POLL_INTERVAL_S = 0.05
# a process that died younger is replaced only after a while: ever longer, if it happens again
YOUNG_S = 5.0
LONGEST_S = 10.0
REFUSED = 2  # the exit code of a process that could not begin: another one could not either
SIGNALS = (signal.SIGTERM, signal.SIGINT)
PASSED_ON = 2  # signals: the first one to stop, the second one to hurry
AGAIN_S = 1.0  # before the last of them is passed on again

Work = Callable[[int, Callable[[], None]], int]


class ReadyPipe:
    """Whether a worker process has ever begun to work. It is said by a byte in a pipe, which stays
    there when the process has died."""

    def __init__(self) -> None:
        self._reads, self._writes = os.pipe()
        os.set_blocking(self._reads, False)
        os.set_blocking(self._writes, False)
        self._said = False

    def say(self) -> None:
        with suppress(OSError):  # nobody reads any more
            os.write(self._writes, b".")

    def said(self) -> bool:
        with suppress(BlockingIOError):
            self._said = bool(os.read(self._reads, 1)) or self._said
        return self._said

    def close(self) -> None:
        os.close(self._reads)
        os.close(self._writes)


class Process:
    """One place for a worker process. `pid` is 0 while nobody is there."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pid, self.begun, self.failures, self.again_at = 0, 0.0, 0, 0.0

    def begin(self, work: Work, ready: Callable[[], None]) -> None:
        """A signal waits until the new process has put away what the supervisor does with it: there
        it would be lost."""
        self.begun = time.monotonic()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            self.pid = os.fork()
            if self.pid == 0:
                for number in SIGNALS:
                    signal.signal(number, signal.SIG_DFL)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if self.pid == 0:
            _be(lambda: work(self.number, ready))

    def ended(self, code: int) -> str:
        """What to say of its end; when another one may begin."""
        lived_s, self.pid = time.monotonic() - self.begun, 0
        self.failures = self.failures + 1 if lived_s < YOUNG_S else 0
        rest_s = min(0.1 * 2**self.failures, LONGEST_S) if self.failures else 0.0
        self.again_at = time.monotonic() + rest_s
        how = (
            f"was killed by {signal.Signals(-code).name}"
            if code < 0
            else f"ended with exit code {code}"
        )
        return f"a worker process {how}; another one begins" + (
            f" in {rest_s:.1f} s" if rest_s >= 1 else ""
        )


def _be(work: Callable[[], int]) -> None:
    """The life of the new process. A session of its own: Ctrl-C in the terminal reaches the
    supervisor, and the others through it."""
    code = 1
    try:
        os.setsid()
        code = work()
    except SystemExit as exit:
        code = exit.code if isinstance(exit.code, int) else 1
    except BaseException as problem:
        from rhythm.cli.main import report_error

        code = report_error(problem)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def supervise(count: int, work: Work, say: Callable[[int, str], None]) -> int:
    """Keeps so many processes at work until a signal comes; the exit code of the whole.

    `work` gets the number of its process, and what to call when it works. `say` is told of those
    that die, by process id.
    """
    processes, ready = [Process(number) for number in range(count)], ReadyPipe()
    asked: list[int] = []
    for number in SIGNALS:
        signal.signal(number, lambda number, frame: asked.append(number))
    sent, refused, passed_at = 0, 0, 0.0
    while True:
        code = _reap(processes, bool(asked), ready, say)
        refused = refused or code
        if refused and not asked:
            asked.append(signal.SIGTERM)
        if sent < min(len(asked), PASSED_ON):  # one at a time: two at once would arrive as one
            sent, passed_at = sent + 1, time.monotonic()
            _pass_on(processes)
        # two that reach a process which has no time for them may arrive as one, too
        elif sent == PASSED_ON and time.monotonic() - passed_at >= AGAIN_S:
            passed_at = time.monotonic()
            _pass_on(processes)
        if asked and not any(process.pid for process in processes):
            ready.close()
            for number in SIGNALS:  # no other one is to change how it ends
                signal.signal(number, signal.SIG_IGN)
            return refused
        for process in processes:
            if not asked and not process.pid and time.monotonic() >= process.again_at:
                process.begin(work, ready.say)
        time.sleep(POLL_INTERVAL_S)


def _reap(
    processes: list[Process], stopping: bool, ready: ReadyPipe, say: Callable[[int, str], None]
) -> int:
    """Takes note of those that have ended; the exit code if one could not begin, else 0. Once one
    has begun, all can."""
    refused = 0
    for process in processes:
        if process.pid and (ended := os.waitpid(process.pid, os.WNOHANG))[0]:
            code, pid = os.waitstatus_to_exitcode(ended[1]), process.pid
            said = process.ended(code)
            if code == REFUSED and not ready.said():
                refused = code
            elif not stopping:
                say(pid, said)
    return refused


def _pass_on(processes: list[Process]) -> None:
    for process in processes:
        if process.pid:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
