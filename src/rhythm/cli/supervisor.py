"""Runs several worker processes: replaces one that dies, and passes signals on to all of them."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress

POLL_INTERVAL_S = 0.05
# A process that dies younger than this is replaced after a backoff, which doubles each time up to
# LONGEST_S.
YOUNG_S = 5.0
LONGEST_S = 10.0
REFUSED = 2  # the exit code of a process that cannot begin: another one could not either
SIGNALS = (signal.SIGTERM, signal.SIGINT)
PASSED_ON = 2  # signals that are passed on: the first to stop, the second to hurry
AGAIN_S = 1.0  # how long until the second signal is sent again

Work = Callable[[int, Callable[[], None]], int]


class ReadyPipe:
    """Tells the supervisor whether any worker process has ever begun to work.

    A worker process says so with a byte in a pipe. The byte stays there if the process dies.
    """

    def __init__(self) -> None:
        self._reads, self._writes = os.pipe()
        os.set_blocking(self._reads, False)
        os.set_blocking(self._writes, False)
        self._said = False

    def say(self) -> None:
        """Records that this process has begun to work. Called in the worker process."""
        with suppress(OSError):  # the pipe is full, or the supervisor is gone
            os.write(self._writes, b".")

    def said(self) -> bool:
        """Returns whether any worker process has begun to work. Called in the supervisor."""
        with suppress(BlockingIOError):
            self._said = bool(os.read(self._reads, 1)) or self._said
        return self._said

    def close(self) -> None:
        os.close(self._reads)
        os.close(self._writes)


class Process:
    """The place of one worker process. `pid` is 0 while there is no process in it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pid, self.begun, self.failures, self.again_at = 0, 0.0, 0, 0.0

    def begin(self, work: Work, ready: Callable[[], None]) -> None:
        """Forks a worker process, which calls `work` and then exits.

        Signals are blocked until the new process has removed the supervisor's handlers: a signal
        that these handled there would be lost.
        """
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
        """Records that the process has ended, and returns the message about it.

        It also sets when another process may begin: `again_at`.
        """
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
    """Runs `work` in the new process, and exits with its exit code.

    The process gets a session of its own: so Ctrl-C in the terminal reaches only the supervisor,
    which passes it on.
    """
    code = 1
    try:
        os.setsid()
        code = work()
    except SystemExit as exit:
        code = exit.code if isinstance(exit.code, int) else 1
    except BaseException as problem:
        code = _report(problem)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _report(problem: BaseException) -> int:
    """Prints what ended the process, with a traceback if nobody expected it; the exit code."""
    from rhythm.cli.main import report_error

    try:
        return report_error(problem)
    except BaseException:
        traceback.print_exc()
        return 1


def supervise(count: int, work: Work, say: Callable[[int, str], None]) -> int:
    """Keeps `count` worker processes running until a signal comes. Returns the exit code.

    `work` is called in each process with its number, and with a function to call once it works.
    `say` gets the process id and a message when a process dies.
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
        # one signal in each round: two at once would arrive as one
        if sent < min(len(asked), PASSED_ON):
            sent, passed_at = sent + 1, time.monotonic()
            _pass_on(processes)
        # two signals may also arrive as one if the process is busy: so the second is repeated
        elif sent == PASSED_ON and time.monotonic() - passed_at >= AGAIN_S:
            passed_at = time.monotonic()
            _pass_on(processes)
        if asked and not any(process.pid for process in processes):
            ready.close()
            for number in SIGNALS:  # a later signal must not change the exit code
                signal.signal(number, signal.SIG_IGN)
            return refused
        for process in processes:
            if not asked and not process.pid and time.monotonic() >= process.again_at:
                process.begin(work, ready.say)
        time.sleep(POLL_INTERVAL_S)


def _reap(
    processes: list[Process], stopping: bool, ready: ReadyPipe, say: Callable[[int, str], None]
) -> int:
    """Records the processes that have ended. Returns the exit code if none can begin, else 0.

    Only a process that was refused before any has begun to work stops the others: once one has
    begun, all can.
    """
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
