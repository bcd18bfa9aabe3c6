"""pgqueuer: a queue of tasks, without results and without workflows."""

from __future__ import annotations

import time
from datetime import timedelta

import asyncpg
import peer
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

CALL, BATCH, PROCESSES = 1000, 500, 2
TASKS = CALL * peer.scaled(100)  # ten thousand last 0.3 s


async def worker(where: str) -> None:
    queue = await opened(where)

    @queue.entrypoint("note")
    async def note(job: Job) -> None:
        pass

    drain, patience = QueueExecutionMode.drain, timedelta(seconds=1)
    await queue.run(batch_size=BATCH, mode=drain, dequeue_timeout=patience)


async def answering(where: str) -> None:
    """A worker that says on its output which task it runs: the client reads that."""
    queue = await opened(where)

    @queue.entrypoint("note")
    async def note(job: Job) -> None:
        print((job.payload or b"").decode(), flush=True)

    await queue.run(batch_size=10)


async def j1(where: str) -> None:
    peer.settings(
        f"{TASKS:,} tasks, {CALL:,} in a call; {PROCESSES} processes, batch_size {BATCH}; uvloop"
    )
    queries = await installed(where)
    began = time.perf_counter()
    for _ in range(TASKS // CALL):
        await queries.enqueue(["note"] * CALL, [b"1"] * CALL, [0] * CALL)
    enqueued = time.perf_counter() - began
    left = peer.counted(where, "SELECT count(*) FROM pgqueuer")
    with left as count, peer.processes(PROCESSES, "worker", where):
        drained = peer.drained_per_s(lambda: TASKS - count(), TASKS)
    peer.tell(enqueued_per_s=TASKS / enqueued, drained_per_s=drained)


async def j3(where: str) -> None:
    peer.settings("ends when the task runs, in another process: there is no result; uvloop")
    queries = await installed(where)
    times = []
    with peer.processes(1, "answering", where) as [started]:
        for n in range(peer.WARM_UP + peer.SINGLES):
            began = time.perf_counter()
            await queries.enqueue("note", str(n).encode())
            assert peer.output(started).readline() == f"{n}\n"
            times.append(time.perf_counter() - began)
            time.sleep(0.01)
    peer.tell(**peer.spread(times[peer.WARM_UP :]))


async def opened(where: str) -> PgQueuer:
    return PgQueuer(AsyncpgDriver(await asyncpg.connect(where)))


async def installed(where: str) -> Queries:
    queries = Queries(AsyncpgDriver(await asyncpg.connect(where)))
    await queries.install()
    return queries


if __name__ == "__main__":
    uvloop.install()
    peer.main({"j1": j1, "j3": j3, "worker": worker, "answering": answering})
