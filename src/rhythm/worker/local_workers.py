"""The workers on this machine: whether their processes still exist can be checked here.

So the work of a killed worker goes on as soon as another one starts on the same machine. On other
machines, its silence must be waited out.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from rhythm.store.interfaces.store import Store


def _machine() -> str:
    """Returns a name for the scope in which process ids are unique; empty if it is not known.

    That is one boot of one machine and, on it, one container.
    """
    with suppress(OSError):
        return (
            f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} "
            f"{os.readlink('/proc/self/ns/pid')}"
        )
    return ""


AT_ONCE = 1000  # claims that are taken back at once; the rescuer finds the rest
HOST, MACHINE = socket.gethostname(), _machine()


def release_claims_of_dead_local_workers(store: Store, crash_limit: int) -> list[str]:
    """Frees the claims of workers on this machine whose processes have ended.

    Returns the names of those workers.
    """
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
    """Returns whether a process of this id runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to another user
        return True
    return not _has_ended(pid)


def _has_ended(pid: int) -> bool:
    """Returns whether a process has ended, and its parent has not asked how.

    In a container the first process may never ask, or late.
    """
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return stat.rpartition(")")[2].split()[:1] in (["Z"], ["X"])
    return False
