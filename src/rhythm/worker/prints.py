"""What tasks print, as lines of their logs: for the setting `log_prints`.

Standard output gets all of it, as without the setting.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from rhythm.limits import LOGS
from rhythm.worker.current import running_body

_lock = threading.Lock()
_users = 0


class Prints:
    """Standard output that also hands whole lines to the attempt that prints them."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, text: str) -> int:
        """Writes a text; what a task writes is kept line by line."""
        if (attempt := running_body()) is not None:
            *lines, rest = (attempt.unprinted + text).split("\n")
            for line in lines:
                attempt.printed(line)
            if len(rest) > LOGS.message:
                attempt.printed(rest)
                rest = ""
            attempt.unprinted = rest
        return int(self._inner.write(text))


def keep_prints() -> None:
    """Hands what tasks print to their logs, until `leave_prints` was called as often."""
    global _users
    with _lock:
        _users += 1
        if not isinstance(sys.stdout, Prints):
            sys.stdout = Prints(sys.stdout)


def leave_prints() -> None:
    """Ends what `keep_prints` began, if nobody else in this process has asked for it."""
    global _users
    with _lock:
        _users -= 1
        if _users == 0 and isinstance(sys.stdout, Prints):
            sys.stdout = sys.stdout._inner
