"""`rhythm start --wait --app` that is told to stop gives its work back at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from rhythm.store.sqlite.store import SqliteStore
from tests.support.stores import ready_rows

TASKS = """
import time, rhythm

@rhythm.task
def forever() -> None:
    print("begun", flush=True)
    time.sleep(600)
"""


def test_process_that_is_terminated_gives_its_claims_back(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "w.flow").write_text('workflow w {\n  return await task("forever")\n}')
    command = [
        sys.executable,
        "-m",
        "rhythm",
        "start",
        "w.flow",
        "--id",
        "w1",
        "--wait",
        "--app",
        "tasks.py",
    ]
    running = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "RHYTHM_SHUTDOWN_GRACE": "1s"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert running.stderr
        while "begun" not in running.stderr.readline():  # what a task prints goes there
            assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=60)
    finally:
        running.kill()
    store = SqliteStore(str(tmp_path / "rhythm.db"))
    assert [state for _, state, _ in ready_rows(store)] == [0], "free for the next worker"
    store.close()
