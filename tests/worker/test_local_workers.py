"""Whether a process of this machine still runs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rhythm.worker.local_workers import lives


def test_this_process_lives() -> None:
    assert lives(os.getpid())


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_that_has_ended_is_dead_also_before_its_parent_asks_how() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert lives(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is kept
        os.kill(process.pid, 0)
        assert not lives(process.pid)
    assert not lives(process.pid)
