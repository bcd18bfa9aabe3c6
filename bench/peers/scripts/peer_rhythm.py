"""Rhythm: a client here, and `rhythm worker` in processes of its own."""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import peer

import rhythm
from rhythm.build import is_compiled

# As many as others have last too short a time to be measured.
TASKS, WORKFLOWS = 5 * peer.TASKS, 3 * peer.WORKFLOWS
COMPILED = "; compiled modules" if is_compiled() else ""


@rhythm.task  # a plain `def`: a little cheaper to call than a coroutine
def note(x: int) -> int:
    return x


@rhythm.workflow
async def one(x: int) -> int:
    return await note.run(x)


@rhythm.workflow
async def steps(n: int) -> int:
    for i in range(n):
        await note.run(i)
    return n


@rhythm.workflow
async def child(x: int) -> int:
    return x


@rhythm.workflow
async def children(n: int) -> int:
    return len(await rhythm.all([child(x) for x in range(n)]))


@rhythm.workflow
async def parallel_steps(n: int) -> int:
    return len(await rhythm.all([note.run(x) for x in range(n)]))


def j1(where: str, count: str) -> None:
    peer.settings(
        f"{TASKS:,} tasks in one call; workers: {count}, 100 at once in each; results stored"
        f"{COMPILED}"
    )
    with application(where) as app, watched(where) as left:
        inputs = [{"x": n} for n in range(TASKS)]
        enqueued = peer.timed(lambda: app.queue_many("note", inputs))
        with peer.ended([worker(where, count)]):
            drained = peer.drained_per_s(lambda: TASKS - left(), TASKS)
    peer.tell(enqueued_per_s=TASKS / enqueued, drained_per_s=drained)


def j2(where: str, count: str) -> None:
    peer.settings(f"{WORKFLOWS:,} workflows started in one call; workers: {count}{COMPILED}")
    with running(where, count) as app, watched(where) as left:
        began = time.perf_counter()
        app.start_many("steps", [{"n": peer.STEPS}] * WORKFLOWS)
        peer.until(lambda: -left(), 0)
        took = time.perf_counter() - began
    peer.tell(steps_per_s=WORKFLOWS * peer.STEPS / took)


def j3(where: str, count: str) -> None:
    peer.settings(f"client and worker are two processes; workers: {count}{COMPILED}")
    with running(where, count) as app:
        times = peer.singles(lambda: app.start_workflow("one", {"x": 1}).result("60s"))
        inputs = {"n": peer.LONG}
        long = [
            peer.timed(lambda: app.start_workflow("steps", inputs).result("60s"))
            for _ in range(peer.LONGS)
        ]
    peer.tell(**peer.spread(times), ms_per_step=peer.a_step(long))


def j4(where: str, count: str) -> None:
    peer.settings(f"child workflows, then tasks; workers: {count}{COMPILED}")
    inputs = {"n": peer.CHILDREN}
    with running(where, count) as app:
        took = [
            peer.timed(lambda name=name: app.start_workflow(name, inputs).result("60s"))
            for name in ("children", "parallel_steps")
        ]
    peer.tell(children_s=took[0], parallel_steps_s=took[1])


def worker(where: str, count: str) -> list[str]:
    command = [sys.executable, "-m", "rhythm", "worker", "--app", __file__]
    return [*command, "--processes", count, "--database", where]


@contextmanager
def application(where: str) -> Iterator[rhythm.Rhythm]:
    with rhythm.Rhythm(where) as app:
        yield app


@contextmanager
def running(where: str, count: str) -> Iterator[rhythm.Rhythm]:
    """An application, and workers that have run some workflows."""
    with application(where) as app, peer.ended([worker(where, count)]):
        for handle in app.start_many("one", [{"x": 1}] * 100 * int(count)):
            handle.result("60s")
        yield app


@contextmanager
def watched(where: str) -> Iterator[Callable[[], int]]:
    """How many executions are left to do, by a connection that Rhythm knows nothing of."""
    if not where.startswith("sqlite:///"):
        with peer.counted(where, "SELECT count(*) FROM rhythm.ready") as left:
            yield left
        return
    with closing(sqlite3.connect(where.removeprefix("sqlite:///"))) as db:
        yield lambda: int(db.execute("SELECT count(*) FROM ready").fetchone()[0])


if __name__ == "__main__":
    peer.main({"j1": j1, "j2": j2, "j3": j3, "j4": j4})
