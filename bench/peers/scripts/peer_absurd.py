"""Absurd: workflows in functions of PostgreSQL, with workers that poll."""

from __future__ import annotations

import ast
import importlib.util
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import peer
import psycopg
from absurd_sdk import Absurd, AsyncAbsurd

POLL_S = 0.005  # of its workers


async def asynchronous(where: str, queue: str, concurrency: str) -> None:
    """A worker with coroutines."""
    app = AsyncAbsurd(where, queue_name=queue)

    @app.register_task(name="steps")
    async def steps(given: Any, context: Any) -> Any:
        for i in range(given["n"]):
            await context.step(f"step{i}", nothing)
        return {"n": given["n"]}

    @app.register_task(name="parent")
    async def parent(given: Any, context: Any) -> Any:
        async def start() -> list[str]:
            numbers = range(given["n"])
            started = [await app.spawn("note", {"x": x}, queue="children") for x in numbers]
            return [str(each["task_id"]) for each in started]

        for id in (ids := await context.step("start", start)):
            await context.await_task_result(id, queue_name="children")
        return {"n": len(ids)}

    at_once = int(concurrency)
    await app.start_worker(
        concurrency=at_once, batch_size=at_once, poll_interval=POLL_S, claim_timeout=600
    )


async def nothing() -> dict[str, int]:
    return {"x": 1}


def synchronous(where: str, queue: str, batch: str) -> None:
    """A worker that runs one task after the other."""
    app = Absurd(where, queue_name=queue)

    @app.register_task(name="note")
    def note(given: Any, context: Any) -> Any:
        return given

    app.start_worker(concurrency=1, batch_size=int(batch), poll_interval=POLL_S, claim_timeout=600)


def j1(where: str) -> None:
    peer.settings("one call each; 4 processes with the synchronous worker, batch_size 100")
    with application(where, "q") as (app, ended):

        def enqueue() -> None:
            for x in range(peer.TASKS):
                app.spawn("note", {"x": x}, queue="q")

        enqueued = peer.timed(enqueue)
        with peer.processes(4, "synchronous", where, "q", 100):
            drained = peer.drained_per_s(ended, peer.TASKS)
    peer.tell(enqueued_per_s=peer.TASKS / enqueued, drained_per_s=drained)


def j2(where: str) -> None:
    peer.settings(
        f"{peer.WORKFLOWS:,} workflows, one call each; 2 processes with coroutines, 50 at once "
        "in each"
    )
    workers = peer.processes(2, "asynchronous", where, "q", 50)
    with application(where, "q") as (app, ended), workers:
        for _ in range(peer.WARM_UP):
            run(app, ended, 1)
        before, began = ended(), time.perf_counter()
        for _ in range(peer.WORKFLOWS):
            app.spawn("steps", {"n": peer.STEPS}, queue="q")
        peer.until(ended, before + peer.WORKFLOWS)
        took = time.perf_counter() - began
    peer.tell(steps_per_s=peer.WORKFLOWS * peer.STEPS / took)


def j3(where: str) -> None:
    peer.settings("polls every 5 ms; the client asks the table every 0.5 ms, not by its own await")
    worker = peer.processes(1, "asynchronous", where, "q", 4)
    with application(where, "q") as (app, ended), worker:
        times = peer.singles(lambda: run(app, ended, 1))
        long = [peer.timed(lambda: run(app, ended, peer.LONG)) for _ in range(peer.LONGS)]
    peer.tell(**peer.spread(times), ms_per_step=peer.a_step(long))


def j4(where: str) -> None:
    peer.settings("1 process for the parent, 1 with batch_size 100 for the children")
    with application(where, "q") as (app, ended):
        app.create_queue("children")
        with (
            peer.processes(1, "asynchronous", where, "q", 4),
            peer.processes(1, "synchronous", where, "children", 100),
        ):
            run(app, ended, 1)
            took = peer.timed(lambda: run(app, ended, peer.CHILDREN, "parent"))
    peer.tell(children_s=took)


def run(app: Absurd, ended: Callable[[], int], n: int, name: str = "steps") -> None:
    """A workflow, from its start to its end, with nothing else going on."""
    before = ended()
    app.spawn(name, {"n": n}, queue="q")
    while ended() == before:
        time.sleep(0.0005)


@contextmanager
def application(where: str, queue: str) -> Iterator[tuple[Absurd, Callable[[], int]]]:
    """A client, and how many tasks of its queue have ended."""
    with psycopg.connect(where) as db:
        db.execute(schema().encode())
    app = Absurd(where, queue_name=queue)
    app.create_queue(queue)
    for name in ("note", "steps", "parent"):
        app.register_task(name=name)(lambda given, context: None)
    text = f"SELECT count(*) FROM absurd.t_{queue} WHERE state = 'completed'"
    with peer.counted(where, text) as ended:
        yield app, ended


def schema() -> str:
    """The SQL that it installs, which `absurdctl` carries as its longest text."""
    found = importlib.util.find_spec("absurdctl")
    assert found is not None
    assert found.origin is not None
    texts = [
        node.value
        for file in Path(found.origin).parent.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return max(texts, key=len)


if __name__ == "__main__":
    workers = {"asynchronous": asynchronous, "synchronous": synchronous}
    peer.main({"j1": j1, "j2": j2, "j3": j3, "j4": j4, **workers})
