"""DBOS: workflows as a library, in the process that calls them or by its queue."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import peer
import sqlalchemy
from dbos import DBOS, DBOSClient

POOL, CONCURRENCY, PROCESSES, POLL_S = 20, 32, 2, 0.02
WORKFLOWS = peer.scaled(300)
ENDED = "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'"


@DBOS.step()
def note(x: int) -> int:
    return x


@DBOS.step()
async def note_later(x: int) -> int:
    return x


@DBOS.workflow()
def child(x: int) -> int:
    return x


@DBOS.workflow()
def steps(n: int) -> int:
    for i in range(n):
        note(i)
    return n


@DBOS.workflow()
def children(n: int) -> int:
    started = [DBOS.start_workflow(child, x) for x in range(n)]
    return len([handle.get_result() for handle in started])


@DBOS.workflow()
async def parallel_steps(n: int) -> int:
    return len(await asyncio.gather(*[note_later(x) for x in range(n)]))


def worker(where: str) -> None:
    with launched(where, 32):
        DBOS.register_queue("q", polling_interval_sec=POLL_S, worker_concurrency=CONCURRENCY)
        threading.Event().wait()


def half(where: str) -> None:
    """Its part of J2, in this process."""
    count = WORKFLOWS // PROCESSES

    def work() -> None:
        started = [DBOS.start_workflow(steps, peer.STEPS) for _ in range(count)]
        for handle in started:
            handle.get_result()

    with launched(where, 4):
        steps(1)
        peer.at_once(work)


def j1(where: str) -> None:
    peer.settings(
        f"one transaction; {PROCESSES} processes, worker_concurrency {CONCURRENCY}, "
        f"queue poll {POLL_S} s, pool {POOL}"
    )
    with client(where) as (enqueue_all, ended):
        enqueued = peer.timed(lambda: enqueue_all(peer.TASKS))
        with peer.processes(PROCESSES, "worker", where):
            drained = peer.drained_per_s(ended, peer.TASKS)
    peer.tell(enqueued_per_s=peer.TASKS / enqueued, drained_per_s=drained)


def j2(where: str) -> None:
    peer.settings(
        f"{WORKFLOWS} workflows; {PROCESSES} processes that start and run them, "
        f"4 threads each, pool {POOL}"
    )
    with launched(where, 4):
        pass  # makes the tables
    took = peer.together(PROCESSES, "half", where)
    peer.tell(steps_per_s=WORKFLOWS // PROCESSES * PROCESSES * peer.STEPS / took)


def j3(where: str) -> None:
    peer.settings(
        f"by its queue, poll {POLL_S} s, asked for the result every 5 ms; steps and "
        "“in process” run in the caller"
    )
    with launched(where, 32):
        inside = peer.singles(lambda: steps(1))
        long = [peer.timed(lambda: steps(peer.LONG)) for _ in range(peer.LONGS)]
    made = DBOSClient(system_database_url=where)
    with peer.processes(1, "worker", where):
        times = peer.singles(
            lambda: made.enqueue(options("steps"), 1).get_result(polling_interval_sec=0.005)
        )
    made.destroy()
    figures = {**peer.spread(times), **peer.spread(inside, "in_process_")}
    peer.tell(**figures, ms_per_step=peer.a_step(long))


def j4(where: str) -> None:
    peer.settings(f"child workflows, then steps, in the process of the parent; pool {POOL}")
    loop = asyncio.new_event_loop()
    with launched(where, 32):
        steps(1)
        as_workflows = peer.timed(lambda: children(peer.CHILDREN))
        as_steps = peer.timed(lambda: loop.run_until_complete(parallel_steps(peer.CHILDREN)))
        peer.tell(children_s=as_workflows, parallel_steps_s=as_steps)
        os._exit(0)  # the loop's threads are those of DBOS


@contextmanager
def launched(where: str, threads: int) -> Iterator[None]:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": where,
            "sys_db_pool_size": POOL,
            "max_executor_threads": threads,
            "log_level": "ERROR",
            "application_version": "1",
            "executor_id": str(os.getpid()),
            "notification_listener_polling_interval_sec": 0.01,
        }
    )
    DBOS.launch()
    yield
    DBOS.destroy()


@contextmanager
def client(where: str) -> Iterator[tuple[Callable[[int], None], Callable[[], int]]]:
    """What enqueues so many tasks, and what counts those that have ended."""
    with launched(where, 4):
        pass  # makes the tables
    made = DBOSClient(system_database_url=where)
    engine = sqlalchemy.create_engine(where.replace("postgresql:", "postgresql+psycopg:"))

    def enqueue_all(count: int) -> None:
        with engine.begin() as db:
            for x in range(count):
                made.enqueue_in_transaction(db, options("child"), x)

    with peer.counted(where, ENDED) as ended:
        yield enqueue_all, ended
    made.destroy()


def options(name: str) -> dict[str, str]:
    return {"queue_name": "q", "workflow_name": name, "app_version": "1"}


if __name__ == "__main__":
    parts = {"worker": worker, "half": half}
    peer.main({"j1": j1, "j2": j2, "j3": j3, "j4": j4, **parts})
