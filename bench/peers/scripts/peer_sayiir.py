"""Sayiir: workflows on an engine in Rust, in the process that calls them or by its worker."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import peer
from sayiir import Flow, PostgresBackend, Workflow, WorkflowClient, task
from sayiir._sayiir import PyDurableEngine
from sayiir.worker import Worker

ENDED = "SELECT count(*) FROM sayiir_workflow_snapshots WHERE status = 'Completed'"
TASKS = peer.scaled(2000)
PROCESSES, THREADS, ENQUEUING, POLL_S = 2, 8, 16, 0.001


def note(x: int) -> int:
    return 1


def steps(count: int) -> Workflow:
    flow = Flow(f"steps{count}")
    for i in range(count):
        flow = flow.then(note, name=f"step{i}")
    return flow.build()


def parallel_steps(count: int) -> Workflow:
    fork = Flow("parallel").fork()
    for i in range(count):
        fork = fork.branch(task(f"branch{i}")(lambda x: 1))
    return fork.join(task("join")(lambda results: len(results))).build()


ONE, TEN, MANY = steps(1), steps(peer.STEPS), steps(peer.LONG)


def worker(where: str) -> None:
    Worker(f"w{os.getpid()}", backend(where), poll_interval=POLL_S).start([ONE])
    threading.Event().wait()


def half(where: str) -> None:
    """Its part of J2, in this process."""
    run = runner(where, THREADS)
    run(ONE)
    count = peer.WORKFLOWS // PROCESSES
    with ThreadPoolExecutor(THREADS) as pool:
        peer.at_once(lambda: list(pool.map(lambda _: run(TEN), range(count))))


def j1(where: str) -> None:
    peer.settings(
        f"{TASKS:,} workflows with one step, {ENQUEUING} threads; {PROCESSES} workers, "
        f"poll {POLL_S} s"
    )
    client = WorkflowClient(backend(where))
    with peer.counted(where, ENDED) as ended, ThreadPoolExecutor(ENQUEUING) as pool:

        def enqueue() -> None:
            list(pool.map(lambda _: client.submit(ONE, new_id(), 1), range(TASKS)))

        enqueued = peer.timed(enqueue)
        with peer.processes(PROCESSES, "worker", where):
            drained = peer.drained_per_s(ended, TASKS)
    peer.tell(enqueued_per_s=TASKS / enqueued, drained_per_s=drained)


def j2(where: str) -> None:
    peer.settings(
        f"{peer.WORKFLOWS:,} workflows; {PROCESSES} processes that start and run them, "
        f"{THREADS} threads and one engine in each"
    )
    backend(where)  # makes the tables
    took = peer.together(PROCESSES, "half", where)
    peer.tell(steps_per_s=peer.WORKFLOWS // PROCESSES * PROCESSES * peer.STEPS / took)


def j3(where: str) -> None:
    peer.settings(
        f"by its worker, poll {POLL_S} s; steps and “in process” run in the caller, on one engine "
        "that is kept"
    )
    run, client = runner(where), WorkflowClient(backend(where))
    inside = peer.singles(lambda: run(ONE))
    long = [peer.timed(lambda: run(MANY)) for _ in range(peer.LONGS)]

    def by_worker() -> None:
        client.submit(ONE, id := new_id(), 1)
        while not client.status(id).is_completed():
            time.sleep(0.0005)

    with peer.processes(1, "worker", where):
        times = peer.singles(by_worker)
    figures = {**peer.spread(times), **peer.spread(inside, "in_process_")}
    peer.tell(**figures, ms_per_step=peer.a_step(long))


def j4(where: str) -> None:
    peer.settings("branches of one workflow, in the caller's process")
    run = runner(where)
    run(ONE)
    parent = parallel_steps(peer.CHILDREN)
    peer.tell(parallel_steps_s=peer.timed(lambda: run(parent)))


def backend(where: str, connections: int = 20) -> PostgresBackend:
    return PostgresBackend(where, max_connections=connections)


def runner(where: str, connections: int = 20) -> Callable[[Workflow], None]:
    """Runs workflows on one engine. The function that its documents show makes a new one each time,
    which takes 15 ms."""
    engine = PyDurableEngine(backend(where, connections), None)

    def run(workflow: Workflow) -> None:
        ended = engine.run(workflow._inner, new_id(), 1, workflow._task_registry)
        assert ended.is_completed(), ended

    return run


def new_id() -> str:
    return uuid.uuid4().hex


if __name__ == "__main__":
    peer.main({"j1": j1, "j2": j2, "j3": j3, "j4": j4, "worker": worker, "half": half})
    os._exit(0)  # threads of its engine may be left
