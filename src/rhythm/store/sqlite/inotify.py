"""Waits for writes to a file: inotify of Linux, which Python's library does not have."""

from __future__ import annotations

import ctypes
import os
import select
import sys
import time

IN_MODIFY = 0x2  # from <sys/inotify.h>: the file was written to
MAX_BYTES = 64 * 1024  # that are read at once; an event has 16
SHORTEST_POLL_S = 0.001  # `poll` counts milliseconds


def watch(path: str) -> FileWatch | None:
    """Returns a watch on a file; None: this system has none, or allows no more of them."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return FileWatch(path)
    except (OSError, AttributeError):  # AttributeError: a C library without inotify
        return None


class FileWatch:
    """Reports writes to one file, by any process of this machine.

    It belongs to the file that was there when it was made, not to its name.
    """

    def __init__(self, path: str) -> None:
        """Raises `OSError` if the file cannot be watched."""
        libc = ctypes.CDLL(None, use_errno=True)
        self._events = _checked(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._bell = -1
        try:
            _checked(libc.inotify_add_watch(self._events, os.fsencode(path), IN_MODIFY))
            self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        except OSError:
            self.close()
            raise
        self._both = select.poll()
        self._both.register(self._events, select.POLLIN)
        self._both.register(self._bell, select.POLLIN)

    def wait(self, limit_s: float) -> bool:
        """Waits for a write, for so long, or until it is rung. Returns whether there was a write.

        A very short wait lasts to its end, whatever happens.
        """
        if limit_s < SHORTEST_POLL_S:
            time.sleep(limit_s)
        elif any(file == self._bell for file, _ in self._both.poll(limit_s * 1000)):
            os.eventfd_read(self._bell)
        try:
            return bool(os.read(self._events, MAX_BYTES))
        except BlockingIOError:
            return False

    def ring(self) -> None:
        """Ends a wait, or the next one. May be called from any thread, until it is closed."""
        os.eventfd_write(self._bell, 1)

    def close(self) -> None:
        """Ends the watch."""
        for file in (self._events, self._bell):
            if file >= 0:
                os.close(file)


def _checked(answer: int) -> int:
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer
