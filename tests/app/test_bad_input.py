"""Whatever goes wrong is told clearly where it went wrong, and the rest goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import rhythm
from rhythm.lang.flow.compile import compile_flow
from rhythm.store.postgres.store import PostgresStore
from rhythm.worker.handlers import Task
from rhythm.worker.runner import CheckpointingRunner
from rhythm.worker.settings import WorkerSettings
from tests.app.conftest import MakeApp
from tests.support.postgres import Schemas

CALL = 'workflow {0} {{\n  return await task("{0}")\n}}'


def fine() -> str:
    return "fine"


def leaves() -> None:
    sys.exit(3)


def interrupts() -> None:
    raise KeyboardInterrupt


def much() -> str:
    return "x" * 10_000_000


def nul() -> str:
    return "a\0b"


def half() -> str:
    return "\ud800"


def infinite() -> list[float]:
    return [1.0, float("inf")]


def bottomless() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def object_() -> Any:
    return object()


def unspeakable() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    raise Odd


BAD: dict[Callable[[], Any], str] = {
    leaves: "SystemExit: 3",
    interrupts: "KeyboardInterrupt",
    much: "10,000,002 bytes",
    nul: "result has the character NUL",
    half: "result has half of a surrogate pair",
    infinite: r"result\[1\] is Infinity",
    bottomless: "result.* deep",
    object_: "result is .*object",
    unspeakable: "cannot be shown",
}


def test_tasks_that_end_badly_fail_alone_and_say_why(make_app: MakeApp) -> None:
    app = make_app(fine, *BAD, flows=tuple(CALL.format(task.__name__) for task in (fine, *BAD)))
    with app.worker():
        handles = {task: app.start_workflow(task.__name__) for task in BAD}
        for task, message in BAD.items():
            with pytest.raises(
                rhythm.ExecutionFailed, match=f"task `{task.__name__}` failed: .*{message}"
            ):
                handles[task].result("60s")
        assert app.start_workflow("fine").result("60s") == "fine"
    assert not app.store.operating.check(60.0)


def test_unknown_task_waits_for_a_worker_that_has_it_and_then_fails(make_app: MakeApp) -> None:
    app = make_app(
        fine, flows=(CALL.format("fine"), CALL.format("missing")), missing_task_grace="1ms"
    )
    with app.worker():
        lost = app.start_workflow("missing")
        assert app.start_workflow("fine").result("60s") == "fine"
        with pytest.raises(
            rhythm.ExecutionFailed,
            match="task `missing` failed: no worker has a handler of this name",
        ):
            lost.result("60s")


def test_runner_goes_on_when_its_connections_are_cut(schemas: Schemas) -> None:
    """Every statement of the run may be the one that loses its connection."""
    store: PostgresStore = schemas.empty_store(None)
    ran: list[int] = []

    def step(n: int) -> int:
        ran.append(n)
        with psycopg.connect(schemas.url, autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(%s)", [store.db.backend])
        return n

    flow = (
        "workflow main {\n  let sum = 0\n  for (n in range(5)) {\n    let x = await "
        'task("step", { n })\n    sum += x\n  }\n  return sum\n}'
    )
    runs = CheckpointingRunner(
        store, {"step": Task(step, "step")}, WorkerSettings(claim_ttl_s=5.0, margin_s=0.5)
    )
    runs.register(
        {
            program.name: (program, flow)
            for program in compile_flow(flow, "main.flow").programs_or_raise()
        }
    )
    assert runs.run("main", id="run") == 10
    assert ran == [0, 1, 2, 3, 4], "no answer is not a failure: what has run is not run again"
    assert not store.operating.check(60.0)


def test_database_that_does_not_come_back_is_told(
    schemas: Schemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: PostgresStore = schemas.empty_store(None)
    flow = "workflow main {\n  await sleep(60)\n}"
    runs = CheckpointingRunner(store, {}, WorkerSettings(patience_s=0.1))
    runs.register(
        {
            program.name: (program, flow)
            for program in compile_flow(flow, "main.flow").programs_or_raise()
        }
    )
    id = runs.start("main")
    store.db.close()
    monkeypatch.setattr(store.db, "url", "postgresql:///nothing?host=/nowhere&connect_timeout=1")
    with pytest.raises(
        rhythm.StoreError, match=r"the PostgreSQL database did not answer: .*nowhere"
    ):
        runs.resume(id)


def test_text_that_no_index_takes_fails_its_own_workflow_only(make_app: MakeApp) -> None:
    """PostgreSQL's indexes refuse what SQLite's take; nobody waits for it on either."""
    app = make_app(
        fine, flows=("workflow long(inputs) {\n  publish(inputs.name, 1)\n}", CALL.format("fine"))
    )
    with app.worker():
        long = app.start_workflow("long", {"name": "x" * 20_000})
        with pytest.raises(rhythm.ExecutionFailed, match="at most 200 characters"):
            long.result("60s")
        assert app.start_workflow("fine").result("60s") == "fine"


def test_worker_that_is_stopped_while_the_database_is_away_stops(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(fine, flows=(CALL.format("fine"),))
    worker = app.worker()
    away: list[str] = []

    def nobody(*args: Any) -> Any:
        away.append("")
        raise rhythm.StoreError("it is away")

    for call in ("commit", "witness"):
        monkeypatch.setattr(worker._store.turns, call, nobody)
    worker.start()
    app.start_workflow("fine")
    while not away:
        pass
    worker.stop(grace=0.1)
    assert not worker._thread.is_alive()


IMPOSSIBLE = ["a\0b", "\ud800", "a\nb", ""]


@pytest.mark.parametrize("id", IMPOSSIBLE)
def test_id_that_cannot_be_is_unknown_on_every_database(make_app: MakeApp, id: Any) -> None:
    app = make_app()
    calls: list[Callable[[], object]] = [
        lambda: app.get(id),
        lambda: app.result(id, 0),
        lambda: app.trace(id),
        lambda: app.signal(id, "go"),
        lambda: app.cancel(id),
        lambda: app.pause(id),
        lambda: app.resume(id),
        lambda: app.retry(id),
    ]
    for call in calls:
        with pytest.raises(rhythm.UnknownExecution, match="there is no execution"):
            call()


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_workflow_that_cannot_be_is_unknown_on_every_database(make_app: MakeApp, name: Any) -> None:
    with pytest.raises(rhythm.UnknownWorkflow, match="there is no workflow"):
        make_app().start_workflow(name)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda app: app.pause("w", "a\0b"), rhythm.InvalidPayload, "reason"),
        (lambda app: app.pause("w", by="\ud800"), ValueError, "whoever acts"),
        (lambda app: app.pause("w", 7), ValueError, "reason is a text, not 7"),
        (
            lambda app: app.list("a\0b"),
            ValueError,
            "a workflow's name is a text of 1 to 200 printable characters",
        ),
        (lambda app: app.list(cursor="9" * 19 + "-w"), ValueError, "is not the cursor of a page"),
        (lambda app: app.list(cursor="9" * 5000 + "-w"), ValueError, "is not the cursor of a page"),
        (lambda app: app.list(cursor="1-a\0b"), ValueError, "is not the cursor of a page"),
        (lambda app: app.list(cursor=7), ValueError, "7 is not the cursor of a page"),
    ],
)
def test_text_that_no_database_takes_is_refused_alike(
    make_app: MakeApp, call: Any, error: type[Exception], message: str
) -> None:
    app = make_app(flows=('workflow hold {\n  return await signal("go")\n}',))
    app.start_workflow("hold", id="w")
    with pytest.raises(error, match=message):
        call(app)
    assert app.list(cursor="9" * 18 + "-w").items[0].id == "w"
