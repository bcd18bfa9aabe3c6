"""How a process with a worker ends: it counts signals, lets tasks end, runs exit functions."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from types import FrameType

    from rhythm.app.pooled import PooledWorker

# how long giving back the claims may take; then the process ends, even if the database hangs
GIVE_BACK_S = 0.5
EXIT_FUNCTIONS_S = 0.3  # how long the exit functions of the application may take
POLL_INTERVAL_S = 0.02  # between two checks for signals


class Stopping:
    """Counts the signals that ask the process to end: the first to stop, the second to hurry.

    As long as the worker holds nothing, the first one ends the process at once.
    """

    def __init__(self) -> None:
        self.signals, self.holds = 0, False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._take)

    def _take(self, number: int, frame: FrameType | None) -> None:
        """Counts a signal, and does nothing else, unless the worker holds nothing yet.

        A signal may interrupt anything, also this handler itself, so no lock may be taken here.
        """
        self.signals += 1
        if not self.holds:
            os._exit(0)

    def wait(self, seconds: float) -> bool:
        """Waits until a signal comes, or this time is over. Returns whether a signal has come."""
        until = time.monotonic() + seconds
        while not self.signals and (rest_s := until - time.monotonic()) > 0:
            time.sleep(min(rest_s, POLL_INTERVAL_S))
        return self.signals > 0


def stop_worker(worker: PooledWorker, stopping: Stopping, grace: float | None) -> list[Exception]:
    """Stops the worker within the grace period, which a second signal ends.

    Returns the exceptions that ended the worker: one, or none.
    """
    problems: list[Exception] = []
    ending = threading.Thread(target=_end, args=(worker, grace, problems), daemon=True)
    ending.start()
    while ending.is_alive():
        if stopping.signals > 1:
            worker.hurry()
        ending.join(POLL_INTERVAL_S)
    return problems


def _end(worker: PooledWorker, grace: float | None, problems: list[Exception]) -> None:
    """Stops the worker, and adds an exception to `problems`.

    It runs in a thread of its own: signals, however many come, interrupt only the main thread.
    """
    try:
        worker.stop(grace, GIVE_BACK_S)
    except Exception as problem:
        problems.append(problem)


def leave(code: int) -> NoReturn:
    """Runs the exit functions (`atexit`), and ends the process with this exit code.

    Python itself would also wait for threads that a task left behind, and take all modules apart,
    which costs a busy machine a second. No signal may change the exit code any more.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)

    def leave() -> NoReturn:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    late = threading.Timer(EXIT_FUNCTIONS_S, leave)
    late.daemon = True
    late.start()
    atexit._run_exitfuncs()
    leave()
