"""CheckpointingRunner with real threads, real time and a real file: a process is killed, and
another one goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rhythm.engine.doctor import examine
from rhythm.errors import ExecutionFailed, InvalidId, UnknownExecution, UnknownWorkflow
from rhythm.lang.flow.compile import compile_flow
from rhythm.store.interfaces.store import Store
from rhythm.store.sqlite.session import clock_us
from rhythm.store.sqlite.store import SqliteStore
from rhythm.worker.handlers import Task
from rhythm.worker.runner import CheckpointingRunner
from rhythm.worker.settings import WorkerSettings
from tests.support.stores import sqlite_in_memory

FLOW = """
workflow main(inputs) {
  let total = inputs.first
  for (i in range(3)) {
    let x = await task("note", { x: i })
    total += x
  }
  let both = await all([task("note", { x: 10 }), task("note", { x: 20 })])
  await sleep(0.05)
  return [total, both]
}
"""


def note(x: int) -> int:
    os.write(1, f"{x}\n".encode())  # in one piece: two may write at once
    if str(x) == os.environ.get("HANG_AT"):
        signal.pause()
    return x


def runner(store: Store) -> CheckpointingRunner:
    made = CheckpointingRunner(
        store,
        {"note": Task(note, "note", "default", 0, None, None)},
        WorkerSettings(claim_ttl_s=1.0, margin_s=0.2),
    )
    made.register(
        {
            program.name: (program, FLOW)
            for program in compile_flow(FLOW, "main.flow").programs_or_raise()
        }
    )
    return made


def test_workflow_runs_to_its_result_and_the_same_id_gives_it_again() -> None:
    runs = runner(sqlite_in_memory(clock_us))
    assert runs.run("main", {"first": 5}, id="once") == [8, [10, 20]]
    assert runs.run("main", {"first": 99}, id="once") == [8, [10, 20]]


@pytest.mark.parametrize("hang_at", [0, 2, 20])
def test_killed_process_is_taken_over_and_finished_tasks_do_not_run_again(
    tmp_path: Path, hang_at: int
) -> None:
    file, root = str(tmp_path / "rhythm.db"), Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.worker.test_runner", file]
    first = subprocess.Popen(
        command,
        cwd=root,
        env={**os.environ, "HANG_AT": str(hang_at)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdout
    seen = [
        int(line) for line in iter(lambda: first.stdout and first.stdout.readline(), f"{hang_at}\n")
    ]
    first.kill()
    first.wait()
    first.stdout.close()
    with closing(SqliteStore(file)) as store:
        assert examine(store, 60.0) == [], "as it was left"
    second = subprocess.run(
        command, cwd=root, stdout=subprocess.PIPE, text=True, timeout=100, check=True
    ).stdout.splitlines()
    assert json.loads(second[-1]) == [8, [10, 20]]
    again = [int(line) for line in second[:-1]]
    assert hang_at in again
    # of two that ran together, the one that had ended may not have been committed
    assert not set(seen) & set(again) - {10}
    with closing(SqliteStore(file)) as store:
        assert examine(store, 60.0) == []
    store.close()


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda runs: runs.run("nobody"), UnknownWorkflow, "there is no workflow `nobody`"),
        (lambda runs: runs.resume("nobody"), UnknownExecution, "there is no execution 'nobody'"),
        (lambda runs: runs.run("main", {}, id="a.b"), InvalidId, "contains no dot"),
        (
            lambda runs: runs.run("main", {}),
            ExecutionFailed,
            "failed: MissingProperty: there is no property `first`",
        ),
    ],
)
def test_what_cannot_be_run_says_why(act: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        act(runner(sqlite_in_memory(clock_us)))


if __name__ == "__main__":
    with closing(SqliteStore(sys.argv[1])) as store:
        store.schema.migrate()
        print(json.dumps(runner(store).run("main", {"first": 5}, id="once")))
