"""The durable engine on both databases, every commit synced to disk: a file of SQLite, and a PostgreSQL server of our own.

The yardstick is the database alone: as many rows, as plain as they can be, by `executemany`, in commits of the same size.
"""

from __future__ import annotations

import atexit
import itertools
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from tests.support.postgres import private_server

from bench.measure import row, show_s
from rhythm.ir.program import Program
from rhythm.lang.flow.compile import compile_flow
from rhythm.store.base import NewSignal, Store
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.sqlite.store import SqliteStore
from rhythm.worker.handlers import Task
from rhythm.worker.runner import CheckpointingRunner
from rhythm.worker.worker import WorkerSettings

WORKFLOWS, STEPS, WIDE, SINGLES, REACTIONS = 1000, 10, 10_000, 200, 20

FLOW = f"""
workflow one() {{
  return await task("note", {{ x: 1 }})
}}
workflow steps() {{
  let total = 0
  for (i in range({STEPS})) {{
    let x = await task("note", {{ x: i }})
    total += x
  }}
  return total
}}
workflow wide() {{
  let all_of_them = await all([task("note", {{ x }}) for x in range({WIDE})])
  return len(all_of_them)
}}
workflow waits() {{
  while (true) {{
    let x = await signal("go")
    await task("note", {{ x }})
  }}
}}
workflow works() {{
  while (true) {{
    await task("note", {{ x: 0 }})
  }}
}}
"""

_cleanup = ExitStack()
atexit.register(_cleanup.close)


class Bench:
    """One database, and a process that runs workflows in it."""

    def __init__(self, name: str, open_store: Callable[[], Store], raw: Callable[[int, int], float]) -> None:
        self.name, self.open_store, self.raw = name, open_store, raw
        self.seen: list[float] = []  # when a handler began
        self.store = open_store()
        task = Task(self._note, "note", "default", 0, None, None)
        settings = WorkerSettings(concurrency=500, batch=500)
        self.runner = CheckpointingRunner(self.store, {"note": task}, settings)
        self.runner.register({program.name: (program, FLOW) for program in programs(FLOW)})

    def _note(self, x: int) -> int:
        self.seen.append(time.perf_counter())
        return x

    @contextmanager
    def running(self) -> Iterator[None]:
        """The process runs on a thread of its own."""
        stop = threading.Event()

        def run() -> None:
            while not stop.is_set():
                self.runner._round()

        thread = threading.Thread(target=run)
        thread.start()
        yield
        stop.set()
        thread.join()


def programs(text: str) -> list[Program]:
    return compile_flow(text, "bench.flow").programs_or_raise()


def on_both() -> Iterator[Bench]:
    """Each database anew, so that no benchmark pays for the one before."""
    folder = Path(_cleanup.enter_context(tempfile.TemporaryDirectory()))
    for bench in (_sqlite(folder), _postgres()):
        yield bench
        bench.store.close()


def _sqlite(folder: Path) -> Bench:
    path = str(folder / "bench.db")

    def raw(rows: int, each: int) -> float:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE raw (id TEXT PRIMARY KEY, inputs TEXT, result TEXT)")
        began = time.perf_counter()
        for chunk in _chunks(rows, each):
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO raw VALUES (?, ?, ?)", chunk)
            connection.execute("COMMIT")
        took = time.perf_counter() - began
        connection.execute("DROP TABLE raw")
        connection.close()
        return took

    return Bench("SQLite", lambda: _migrated(SqliteStore(path)), raw)


_servers: list[str] = []
_schemas = itertools.count(1)


def _postgres() -> Bench:
    if not _servers:
        _servers.append(_cleanup.enter_context(private_server("")))
    url, schema = _servers[0], f"bench_{next(_schemas)}"

    def raw(rows: int, each: int) -> float:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE raw (id text PRIMARY KEY, inputs text, result text)")
            connection.commit()
            began = time.perf_counter()
            for chunk in _chunks(rows, each):
                connection.cursor().executemany("INSERT INTO raw VALUES (%s, %s, %s)", chunk)
                connection.commit()
            took = time.perf_counter() - began
            connection.execute("DROP TABLE raw")
        return took

    return Bench("PostgreSQL", lambda: _migrated(PostgresStore(url, schema)), raw)


def _migrated(store: Store) -> Store:
    store.migrate()
    return store


def _chunks(rows: int, each: int) -> Iterator[list[tuple[str, str, str]]]:
    for first in range(0, rows, each):
        yield [(f"w{n}", '{"x": 1}', "1") for n in range(first, min(first + each, rows))]


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _spread(times: list[float]) -> str:
    ordered = sorted(times)
    return f"{show_s(ordered[len(ordered) // 2])}, p99 {show_s(ordered[int(len(ordered) * 0.99) - 1])}"


def registering() -> None:
    """A hundred workflows: new, and once more unchanged."""
    text = "".join(f'workflow w{n}() {{\n  return await task("note", {{ x: {n} }})\n}}\n' for n in range(100))
    many = {program.name: (program, text) for program in programs(text)}
    for bench in on_both():
        raw = bench.raw(100, 100)
        for what in ("new", "unchanged"):
            took = _timed(lambda bench=bench: bench.runner.register(many))
            row(
                f"{bench.name}: register 100 workflows, {what}",
                show_s(took),
                f"100 rows in one commit: {show_s(raw)}",
                f"{took / raw:.1f} ×",
            )


def single() -> None:
    """From start to result, of one workflow with one task and nothing else going on."""
    for bench in on_both():
        bench.runner.run("one")
        raw = bench.raw(SINGLES, 1) / SINGLES
        times = [_timed(lambda bench=bench: bench.runner.run("one")) for _ in range(SINGLES)]
        middle = sorted(times)[SINGLES // 2]
        row(f"{bench.name}: start to result, one task", _spread(times), f"one row, one commit: {show_s(raw)}", f"{middle / raw:.1f} ×")


def sequences() -> None:
    """Many workflows at once, each with ten tasks one after the other."""
    for bench in on_both():
        raw = bench.raw(WORKFLOWS * STEPS, 500)
        ids = [bench.runner.start("steps") for _ in range(WORKFLOWS)]
        took = _timed(lambda bench=bench, ids=ids: [bench.runner.resume(id) for id in ids])
        speed, limit = WORKFLOWS * STEPS / took, WORKFLOWS * STEPS / raw
        what = f"{bench.name}: {WORKFLOWS:,} workflows × {STEPS} tasks"
        row(what, f"{speed:,.0f} steps/s", f"rows alone, 500 a commit: {limit:,.0f}/s", f"{limit / speed:.1f} ×")


def fan_out() -> None:
    """One `all` over very many tasks, through the queue."""
    for bench in on_both():
        raw = bench.raw(WIDE, 500)
        id = bench.runner.start("wide")
        took = _timed(lambda bench=bench, id=id: bench.runner.resume(id))
        turns = len(bench.store.history(id))
        what = f"{bench.name}: all() over {WIDE:,} tasks, {turns} turns"
        row(what, show_s(took), f"as many rows, 500 a commit: {show_s(raw)}", f"{took / raw:.1f} ×")


def reacting() -> None:
    """What comes from outside: a signal to the task it starts, a pause to standstill, and back. Asked every millisecond."""
    for bench in on_both():
        client, waits, works = bench.open_store(), bench.runner.start("waits"), bench.runner.start("works")
        with bench.running():
            _until_status(client, works, "running")
            pauses, resumes = zip(*[_pause_and_back(bench, client, works) for _ in range(REACTIONS)], strict=True)
            client.pause(works, True)
            _until_status(client, works, "paused")
            signals = [_signal(bench, client, waits, n) for n in range(REACTIONS)]
        row(f"{bench.name}: signal to the task it starts", _spread(signals))
        row(f"{bench.name}: pause to standstill", _spread(list(pauses)), "wanted: under 100 ms")
        row(f"{bench.name}: resume to the next task", _spread(list(resumes)), "wanted: under 500 ms")
        client.close()


def _signal(bench: Bench, client: Store, id: str, n: int) -> float:
    bench.seen.clear()
    began = time.perf_counter()
    client.signal(NewSignal(f"{id}{n}", id, "go", "1"), 1000)
    _until(lambda: bool(bench.seen))
    return bench.seen[0] - began


def _pause_and_back(bench: Bench, client: Store, id: str) -> tuple[float, float]:
    began = time.perf_counter()
    client.pause(id, True)
    _until_status(client, id, "paused")
    paused = time.perf_counter() - began
    bench.seen.clear()
    began = time.perf_counter()
    client.pause(id, False)
    _until(lambda: bool(bench.seen))
    return paused, bench.seen[0] - began


def _until_status(client: Store, id: str, status: str) -> None:
    _until(lambda: client.get([id])[id].status == status)


def _until(done: Callable[[], bool]) -> None:
    while not done():
        time.sleep(0.001)
