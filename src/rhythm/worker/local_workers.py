"""The workers on this machine: of those it can be seen whether their processes are still there.

So what a killed worker owned goes on as soon as another one is started beside it. Elsewhere its
silence must be waited out.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from rhythm.store.interfaces.store import Store


def _machine() -> str:
    """Where a process id means the same process: one boot of a machine, and of a container on it.
    Empty: nobody can tell."""
    with suppress(OSError):
        return (
            f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} "
            f"{os.readlink('/proc/self/ns/pid')}"
        )
    return ""


AT_ONCE = 1000  # what is left the rescuer finds
HOST, MACHINE = socket.gethostname(), _machine()


def release_claims_of_dead_local_workers(store: Store, crash_limit: int) -> list[str]:
    """Lets go of what workers of this machine have claimed whose processes have ended: their
    names."""
    gone = [
        seen.worker
        for seen in store.workers.seen()
        if seen.machine == MACHINE != "" and not lives(seen.pid)
    ]
    if gone:
        store.workers.leave(*gone)
        store.maintenance.rescue(AT_ONCE, crash_limit)
    return gone


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True
