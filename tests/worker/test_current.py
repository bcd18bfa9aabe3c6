"""What a running task may know about itself, and what it writes in one transaction with its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

import rhythm
from rhythm.errors import ExecutionFailed, StoreError
from rhythm.lang.flow.compile import compile_flow
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.turns import TaskEnd
from rhythm.store.postgres.store import PostgresStore
from rhythm.store.sqlite.session import clock_us
from rhythm.worker.current import Current
from rhythm.worker.handlers import Task
from rhythm.worker.metrics import Metrics
from rhythm.worker.runner import CheckpointingRunner
from rhythm.worker.settings import WorkerSettings
from tests.support.postgres import Schemas
from tests.support.stores import sqlite_in_memory


def run(store: Store, text: str, functions: list[Callable[..., Any]], **options: Any) -> Any:
    tasks = {
        function.__name__: Task(function, function.__name__, **options) for function in functions
    }
    runs = CheckpointingRunner(store, tasks, WorkerSettings(claim_ttl_s=5.0, margin_s=0.5))
    runs.register(
        {
            program.name: (program, text)
            for program in compile_flow(text, "main.flow").programs_or_raise()
        }
    )
    try:
        return runs.run("main", id="run")
    finally:
        runs.close()  # it takes the ends of attempts that the result did not wait for


def memory() -> Store:
    return sqlite_in_memory(clock_us)


def test_task_knows_its_execution_and_its_attempt() -> None:
    attempts: list[Current] = []

    def work() -> str:
        attempts.append(rhythm.current())
        if len(attempts) == 1:
            raise ConnectionError("not yet")
        return rhythm.current().idempotency_key

    key = run(
        memory(),
        'workflow main() {\n  return await task("work")\n}',
        [work],
        retries=1,
        backoff_s=0.01,
        timeout_s=60.0,
    )
    assert [(now.id, now.workflow_id, now.attempt) for now in attempts] == [
        ("run.1", "run", 1),
        ("run.1", "run", 2),
    ]
    assert key == "run.1"
    assert attempts[0].deadline
    assert attempts[0].deadline > datetime.now(UTC)


def test_async_tasks_that_run_together_each_know_their_own() -> None:
    async def work(n: int) -> str:
        await asyncio.sleep(0)
        return rhythm.current().id

    text = 'workflow main() {\n  return await all([task("work", { n }) for n in range(3)])\n}'
    assert run(memory(), text, [work]) == ["run.2", "run.3", "run.4"]


def test_outside_of_a_task_there_is_none() -> None:
    with pytest.raises(RuntimeError, match="only inside a task"):
        rhythm.current()


def test_a_heartbeat_says_anything_also_when_somebody_listens() -> None:
    def task() -> int:
        rhythm.current().heartbeat({"at": datetime.now(UTC), 1: object()})
        return 1

    heard: list[str] = []
    text = 'workflow main() {\n  return await task("task")\n}\n'
    runs = CheckpointingRunner(
        memory(), {"task": Task(task, "task")}, observe=lambda what, id, detail: heard.append(what)
    )
    runs.register(
        {
            program.name: (program, text)
            for program in compile_flow(text, "main.flow").programs_or_raise()
        }
    )
    assert (runs.run("main"), "progress" in heard) == (1, True)
    runs.close()


def test_heartbeat_ends_an_attempt_that_was_given_up() -> None:
    ended: list[str] = []

    def work() -> None:
        now = rhythm.current()
        try:
            while True:
                now.heartbeat({"at": 1})
        except rhythm.TaskCancelled as problem:
            ended.append(str(problem))
            assert now.cancelled
            assert now.progress == {"at": 1}
            raise

    with pytest.raises(ExecutionFailed, match="took longer than"):
        run(
            memory(),
            'workflow main() {\n  return await task("work", null, { timeout: "50ms" })\n}',
            [work],
        )
    while not ended:
        pass
    assert ended == ["attempt 1 at task `work` was given up"]


def test_exceptions_that_are_given_up_on_are_not_tried_again() -> None:
    tries: list[int] = []

    def work() -> None:
        tries.append(1)
        raise KeyError("no such order")

    with pytest.raises(ExecutionFailed, match="KeyError"):
        run(
            memory(),
            'workflow main() {\n  return await task("work")\n}',
            [work],
            retries=5,
            backoff_s=0.01,
            give_up_on=(LookupError,),
        )
    assert len(tries) == 1


def test_task_goes_to_the_queue_it_asks_for() -> None:
    store, ran = memory(), []
    text = (
        'workflow main() {\n  let first = await race({ work: task("work"), late: sleep(0.1) '
        "})\n  return first.key\n}"
    )

    def work() -> None:
        ran.append(1)

    assert run(store, text, [work], queue="elsewhere") == "late", "nobody serves that queue"
    assert not ran
    assert [child.queue for child in store.reading.children("run")] == ["elsewhere"]


FLOW = (
    'workflow main() {\n  return await task("pay", { amount: 5 }, { retries: 3, backoff: '
    '"10ms" })\n}'
)


class Ledger:
    """A table of the user's, beside ours in the same database."""

    def __init__(self, schemas: Schemas) -> None:
        self.store: PostgresStore = schemas.empty_store(None)
        self.url = schemas.url
        self.ran = 0
        with psycopg.connect(self.url, autocommit=True) as db:
            db.execute("DROP TABLE IF EXISTS public.payments")
            db.execute("CREATE TABLE public.payments (key text, amount int)")

    def rows(self) -> list[tuple[str, int]]:
        with psycopg.connect(self.url) as db:
            return db.execute("SELECT key, amount FROM public.payments").fetchall()

    def run(self, before: Callable[[int], None] = lambda attempt: None) -> Any:
        """Runs a workflow whose one task pays, and then does what the test wants it to."""

        def pay(amount: int) -> int:
            self.ran += 1
            now = rhythm.current()
            now.connection.execute(
                "INSERT INTO payments VALUES (%s, %s)", [now.idempotency_key, amount]
            )
            before(self.ran)
            return amount

        return run(self.store, FLOW, [pay], transactional=True)


@pytest.fixture
def ledger(schemas: Schemas) -> Ledger:
    return Ledger(schemas)


def test_what_a_transactional_task_writes_is_committed_with_its_end(ledger: Ledger) -> None:
    assert ledger.run() == 5
    assert ledger.rows() == [("run.1", 5)]
    assert ledger.store.reading.get(["run.1"])["run.1"].status == "completed"


def test_nothing_stays_of_an_attempt_that_failed(ledger: Ledger) -> None:
    def before(attempt: int) -> None:
        if attempt < 3:
            raise ConnectionError("after it has written")

    assert ledger.run(before) == 5
    assert (ledger.ran, ledger.rows()) == (3, [("run.1", 5)])


def test_error_of_the_database_that_the_handler_swallows_undoes_the_attempt(ledger: Ledger) -> None:
    def before(attempt: int) -> None:
        with pytest.raises(psycopg.Error):
            rhythm.current().connection.execute("SELECT 1/0")

    with pytest.raises(ExecutionFailed, match="a statement on its connection had failed"):
        ledger.run(before)
    assert (ledger.ran, ledger.rows()) == (4, [])


def test_handler_cannot_commit_on_its_own(ledger: Ledger) -> None:
    with pytest.raises(ExecutionFailed, match=r"Explicit commit\(\) forbidden"):
        ledger.run(lambda attempt: rhythm.current().connection.commit())
    assert ledger.rows() == []


def test_nothing_stays_of_an_attempt_whose_claim_was_lost(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[tuple[str, bool]] = []
    monkeypatch.setattr(
        Metrics, "attempt", lambda self, task, failed, *more: counted.append((task, failed))
    )

    def before(attempt: int) -> None:
        if attempt == 1:  # as if this worker had been away for longer than its claim
            with psycopg.connect(ledger.url, autocommit=True) as db:
                db.execute(
                    f"UPDATE {ledger.store.db.schema}.ready SET claim_expires_at = 0 "
                    f"WHERE id = 'run.1'"
                )
            other = PostgresStore(ledger.url, ledger.store.db.schema)
            assert other.maintenance.rescue(10, 100) == ["run.1"]
            other.close()

    assert ledger.run(before) == 5
    assert (ledger.ran, ledger.rows()) == (2, [("run.1", 5)])
    assert counted == [("pay", False)], "only the attempt that was kept"


@pytest.mark.parametrize("applied", [True, False])
def test_transaction_without_an_answer_is_applied_once(
    ledger: Ledger, applied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = ledger.store.turns.complete_within, []

    def faulty(work: Callable[[Any], TaskEnd | None]) -> str:
        calls.append(1)
        if len(calls) > 1:
            return real(work)
        if applied:
            real(work)
        raise StoreError("no answer")

    monkeypatch.setattr(ledger.store.turns, "complete_within", faulty)
    monkeypatch.setattr("rhythm.worker.transactional.RETRY_DELAY_S", 0.01)
    assert ledger.run() == 5
    assert (ledger.ran, ledger.rows()) == (1, [("run.1", 5)])


def test_task_has_no_connection_unless_it_is_transactional() -> None:
    def work() -> None:
        rhythm.current().connection.execute("SELECT 1")

    with pytest.raises(ExecutionFailed, match="declare it with @rhythm"):
        run(memory(), 'workflow main() {\n  return await task("work")\n}', [work])


def test_transactional_task_on_sqlite_says_what_it_needs() -> None:
    with pytest.raises(ExecutionFailed, match="it is transactional, which needs PostgreSQL"):
        run(
            memory(),
            'workflow main() {\n  return await task("_work")\n}',
            [_work],
            transactional=True,
        )


def _work() -> None: ...


def test_transactional_task_must_not_be_async() -> None:
    with pytest.raises(ValueError, match="must be a plain `def`"):

        @rhythm.task(transactional=True)
        async def pay() -> None: ...
