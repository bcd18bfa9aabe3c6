"""Four jobs for worker processes, on both databases, every commit synced to disk, beside what the database alone reaches.

J1: 10,000 tasks enqueued in one call, then drained. J2: 1,000 workflows of 10 tasks, one after the other. J3: from start to result of a
workflow with one task, the client in another process than the worker. J4: a workflow that awaits 1,000 children.
The client and the server share the machine with the workers; times are from the client's call to the last end in the database.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import rhythm
from tests.support.postgres import private_server

from bench import raw
from bench.measure import row, show_s, spread, timed

TASKS, WORKFLOWS, STEPS, SINGLES, CHILDREN = 10_000, 1000, 10, 200, 1000
LONGEST_S = 60.0  # for all singles
SYNCED = "-c synchronous_commit=on -c fsync=on -c shared_buffers=128MB"
PROMPT = {"RHYTHM_WORKER_POLL_INTERVAL": "0.02"}  # what drains a queue is to begin at once; J3 has the defaults

FLOW = f"""
workflow one(inputs) {{
  return await task("note", {{ x: inputs }})
}}
workflow steps() {{
  let total = 0
  for (i in range({STEPS})) {{
    let x = await task("note", {{ x: i }})
    total += x
  }}
  return total
}}
workflow child(inputs) {{
  return inputs
}}
workflow parent_of_workflows() {{
  let results = await all([workflow("child", x) for x in range({CHILDREN})])
  return len(results)
}}
workflow parent_of_tasks() {{
  let results = await all([task("note", {{ x }}) for x in range({CHILDREN})])
  return len(results)
}}
"""

cleanup = ExitStack()


class Place:
    """An empty database."""

    def __init__(self, name: str, url: str, connect: Callable[[], Any], make_raw: Callable[[], raw.Raw], where: str) -> None:
        self.name, self.url, self.connect, self.make_raw, self.where = name, url, connect, make_raw, where
        self.app = rhythm.Rhythm(url, tasks={})
        self.app.register(FLOW)

    def close(self) -> None:
        self.app.close()

    def raw(self, job: Callable[..., Any], *args: Any) -> Any:
        """What a job takes without an engine."""
        with closing(self.make_raw()) as alone:
            return job(alone, *args)

    def until_done(self, began: float) -> float:
        """Seconds from then, on the clock of this machine, until nothing was left to do."""
        with closing(self.connect()) as db:
            while db.execute("SELECT 1 FROM ready LIMIT 1").fetchall():
                time.sleep(0.02)
            return float(db.execute("SELECT max(finished_at) FROM executions").fetchall()[0][0]) / 1e6 - began

    @contextmanager
    def workers(self, processes: int = 1, settings: dict[str, str] = PROMPT) -> Iterator[None]:
        """Worker processes that have done something already."""
        command = [sys.executable, "-m", "bench.worker"]
        environment = os.environ | {"RHYTHM_DATABASE_URL": self.url} | settings
        started = [subprocess.Popen(command, env=environment) for _ in range(processes)]
        try:
            for handle in self.app.start_many("one", range(50 * processes)):
                handle.result("60s")
            yield
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait()


_numbers = itertools.count(1)


@cache
def _server() -> str:
    return cleanup.enter_context(private_server(SYNCED))


def _sqlite() -> Place:
    path = Path(cleanup.enter_context(tempfile.TemporaryDirectory())) / "bench.db"
    return Place("SQLite", f"sqlite:///{path}", lambda: sqlite3.connect(path), lambda: raw.OnSqlite(f"{path}{next(_numbers)}"), str(path))


def _postgres() -> Place:
    database = f"bench_{next(_numbers)}"
    with psycopg.connect(_server(), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {database}".encode())
    url = _server().replace("/postgres?", f"/{database}?")

    def connect() -> psycopg.Connection[Any]:
        return psycopg.connect(url, autocommit=True, options="-c search_path=rhythm")

    return Place("PostgreSQL", url, connect, lambda: raw.OnPostgres(url), url)


def places() -> Iterator[Place]:
    """Each database anew, so that no job pays for the one before."""
    for make in (_sqlite, _postgres):
        place = make()
        yield place
        place.close()


def places_and_processes() -> Iterator[tuple[Place, int]]:
    for make, processes in ((_sqlite, 1), (_postgres, 1), (_postgres, 2)):
        place = make()
        yield place, processes
        place.close()


def _compare(what: str, count: int, unit: str, took: float, limit: float) -> None:
    row(what, f"{count / took:,.0f} {unit}", f"the database alone: {count / limit:,.0f} {unit}", f"{took / limit:.1f} ×")


def _with(processes: int) -> str:
    return "1 process" if processes == 1 else f"{processes} processes"


def queue() -> None:
    """J1: many tasks enqueued in one call, then drained."""
    for place, processes in places_and_processes():
        enqueue_limit, drain_limit = place.raw(raw.queue, TASKS)
        with place.workers(processes):
            inputs = [{"x": n} for n in range(TASKS)]
            enqueued = timed(lambda: place.app.queue_many("note", inputs))
            drained = place.until_done(time.time())
        _compare(f"{place.name}: enqueue {TASKS:,} tasks in one call", TASKS, "tasks/s", enqueued, enqueue_limit)
        _compare(f"{place.name}: drain them, {_with(processes)}", TASKS, "tasks/s", drained, drain_limit)


def sequences() -> None:
    """J2: many workflows at once, each with ten tasks one after the other."""
    for place, processes in places_and_processes():
        limit = place.raw(raw.sequences, WORKFLOWS, STEPS)
        with place.workers(processes):
            place.app.start_many("steps", [None] * WORKFLOWS)
            took = place.until_done(time.time())
        what = f"{place.name}: {WORKFLOWS:,} workflows × {STEPS} tasks, {_with(processes)}"
        _compare(what, WORKFLOWS * STEPS, "steps/s", took, limit)


def single() -> None:
    """J3: from start to result, of one workflow with one task and nothing else going on."""
    for place in places():
        limit = raw.answered(place.where, SINGLES)
        with place.workers(settings={}):
            times, last = list[float](), time.monotonic() + LONGEST_S
            while len(times) < SINGLES and time.monotonic() < last:
                times.append(timed(lambda: place.app.start_workflow("one", 1).result("60s")))
        ratio = sorted(times)[len(times) // 2] / sorted(limit)[len(limit) // 2]
        row(f"{place.name}: start to result, {len(times)} times", spread(times), f"there and back alone: {spread(limit)}", f"{ratio:.1f} ×")


def family() -> None:
    """J4: one workflow that awaits many children at once."""
    for kind in ("workflows", "tasks"):
        for place in places():
            limit = place.raw(raw.family, CHILDREN, kind == "workflows")
            with place.workers():
                began = time.time()
                handle = place.app.start_workflow(f"parent_of_{kind}")
                took = place.until_done(began)
                assert handle.result("60s") == CHILDREN
            row(f"{place.name}: all() over {CHILDREN:,} {kind}", show_s(took), f"the database alone: {show_s(limit)}", f"{took / limit:.1f} ×")
