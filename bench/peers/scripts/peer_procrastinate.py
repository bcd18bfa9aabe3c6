"""Procrastinate: a queue of tasks, without results and without workflows."""

from __future__ import annotations

import logging
import sys
import time

import peer
from procrastinate import App, PsycopgConnector

CALL, CONCURRENCY, PROCESSES = 1000, 20, 2
LEFT = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"

logging.disable(logging.CRITICAL)
app = App(connector=PsycopgConnector(conninfo=sys.argv[2], min_size=4, max_size=20))


@app.task(queue="q")
async def note(n: int) -> int:
    return n


@app.task(queue="a")
async def answer(n: int) -> None:
    """Says on its output which task it is: the client reads that."""
    print(n, flush=True)


async def worker(where: str, queue: str, concurrency: str) -> None:
    async with app.open_async():
        await app.run_worker_async(queues=[queue], concurrency=int(concurrency))


async def j1(where: str) -> None:
    peer.settings(f"{CALL:,} in a call; {PROCESSES} processes, concurrency {CONCURRENCY}")
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        began = time.perf_counter()
        for first in range(0, peer.TASKS, CALL):
            some = range(first, min(first + CALL, peer.TASKS))
            await note.batch_defer_async(*[{"n": n} for n in some])
        enqueued = time.perf_counter() - began
    workers = peer.processes(PROCESSES, "worker", where, "q", CONCURRENCY)
    with peer.counted(where, LEFT) as left, workers:
        drained = peer.drained_per_s(lambda: peer.TASKS - left(), peer.TASKS)
    peer.tell(enqueued_per_s=peer.TASKS / enqueued, drained_per_s=drained)


async def j3(where: str) -> None:
    peer.settings("ends when the task runs, in another process: there is no result")
    times = []
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        with peer.processes(1, "worker", where, "a", 4) as [started]:
            for n in range(peer.WARM_UP + peer.SINGLES):
                began = time.perf_counter()
                await answer.defer_async(n=n)
                assert peer.output(started).readline() == f"{n}\n"
                times.append(time.perf_counter() - began)
                time.sleep(0.01)
    peer.tell(**peer.spread(times[peer.WARM_UP :]))


if __name__ == "__main__":
    peer.main({"j1": j1, "j3": j3, "worker": worker})
