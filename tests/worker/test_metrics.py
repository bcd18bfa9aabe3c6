"""Metrics: the table is that of the docs and of what is exported, the text is what Prometheus
reads, and nobody waits for long."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import rhythm
from rhythm.store.interfaces.store import Store
from rhythm.store.interfaces.workers import Queue
from rhythm.store.lifecycle import CANCELLED, COMPLETED, FAILED
from rhythm.worker.executor import Handlers
from rhythm.worker.handlers import Task
from rhythm.worker.metrics import (
    ASKED_EVERY_S,
    ASKED_OLD_S,
    MAX_LABELS,
    METRICS,
    Asked,
    Metric,
    Metrics,
    depth,
    oldest_s,
    written,
)
from tests.app import conftest as applications
from tests.app.conftest import MakeApp
from tests.engine.driver import World
from tests.support.stores import MakeStore

url, make_app = applications.url, applications.make_app
PAGE = (Path(__file__).parents[2] / "docs" / "workers.md").read_text(encoding="utf-8")
WAIT_S = 120
LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*)\})? (-?[0-9.e+-]+|\+Inf)')


def samples(text: str) -> dict[str, float]:
    """What a scraper reads; a line that it could not is an error."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = LINE.fullmatch(line)
            assert match, line
            found[f"{match[1]}{{{match[2]}}}" if match[2] else match[1]] = float(match[3])
    return found


def test_table_of_the_docs_is_that_of_the_module() -> None:
    shown = re.findall(
        r"^\| `(rhythm_\w+)` \| (counter|gauge|histogram) \| (.*?) \| (.*) \|$", PAGE, re.MULTILINE
    )
    assert shown == [(m.name, m.kind, ", ".join(m.labels), m.means) for m in METRICS.values()]


def test_text_is_what_prometheus_reads() -> None:
    metrics = Metrics({"rhythm_worker_slots": lambda: {("running",): 2}})
    metrics.finished('a"b\\c\nd', FAILED)
    metrics.attempt("charge", failed=False, again=False, took_s=0.3)
    metrics.attempt("charge", failed=True, again=True, took_s=9999)
    text = metrics.text()
    assert "# TYPE rhythm_task_duration_seconds histogram\n" in text
    assert 'rhythm_executions_finished_total{workflow="a\\"b\\\\c\\nd",status="failed"} 1\n' in text
    found = samples(text)
    assert found['rhythm_task_duration_seconds_bucket{task="charge",le="0.25"}'] == 0
    assert found['rhythm_task_duration_seconds_bucket{task="charge",le="0.5"}'] == 1
    assert found['rhythm_task_duration_seconds_bucket{task="charge",le="+Inf"}'] == 2
    assert found['rhythm_task_duration_seconds_sum{task="charge"}'] == pytest.approx(9999.3)
    assert found['rhythm_task_duration_seconds_count{task="charge"}'] == 2
    assert (
        found['rhythm_tasks_finished_total{task="charge",status="completed"}'],
        found['rhythm_task_retries_total{task="charge"}'],
    ) == (
        1,
        1,
    )
    assert (found["rhythm_claim_lost_total"], found['rhythm_worker_slots{state="running"}']) == (
        0,
        2,
    )


def test_a_value_on_a_bound_is_below_it() -> None:
    metrics = Metrics()
    metrics.committed(10)
    found = samples(metrics.text())
    assert (
        found['rhythm_commit_batch_size_bucket{le="5"}'],
        found['rhythm_commit_batch_size_bucket{le="10"}'],
    ) == (0, 1)


def test_labels_are_bounded() -> None:
    metrics = Metrics()
    for number in range(MAX_LABELS + 50):
        metrics.finished(f"w{number}", COMPLETED)
        metrics.attempt(f"t{number}", failed=False, again=False, took_s=0.0)
    metrics.finished("w0", COMPLETED)
    found = samples(metrics.text())
    assert found['rhythm_executions_finished_total{workflow="other",status="other"}'] == 50
    assert found['rhythm_executions_finished_total{workflow="w0",status="completed"}'] == 2
    assert found['rhythm_task_duration_seconds_count{task="other"}'] == 50
    assert (
        len([name for name in found if name.startswith("rhythm_executions_finished")])
        == MAX_LABELS + 1
    )
    many = [Queue(f"q{number}", number, None, 0, 0) for number in range(MAX_LABELS + 50)]
    assert (len(depth(many)), ("q0",) in depth(many)) == (MAX_LABELS, False)


def test_counts_of_many_threads_are_all_there() -> None:
    metrics = Metrics()
    threads = [
        threading.Thread(target=lambda: [metrics.committed(1) for _ in range(2_000)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert samples(metrics.text())["rhythm_commits_total"] == 16_000


def test_age_of_a_queue_is_on_the_clock_of_the_database() -> None:
    queues = [
        Queue("a", 2, 1_000_000, 0, 0, now=3_500_000),
        Queue("b", 0, None, 0, 0, now=3_500_000),
    ]
    assert (depth(queues), oldest_s(queues)) == ({("a",): 2, ("b",): 0}, {("a",): 2.5, ("b",): 0})
    assert list(written(Metric("x", "gauge", ("queue",), "means"), {("a",): 2.5})) == [
        "# HELP x means",
        "# TYPE x gauge",
        'x{queue="a"} 2.5',
    ]


def test_database_is_asked_now_and_then_and_old_answers_do_not_count() -> None:
    clock, answers = [0.0], [[Queue("a", 1, None, 0, 0)], [Queue("a", 2, None, 0, 0)]]
    asked = Asked(lambda: answers.pop(0), lambda: clock[0])
    assert [queue.ready for queue in asked.read()] == [1]
    assert [queue.ready for queue in asked.read()] == [1]
    clock[0] += ASKED_EVERY_S
    assert [queue.ready for queue in asked.read()] == [2]
    clock[0] += ASKED_OLD_S  # nobody answers
    assert [queue.ready for queue in asked.read()] == [2]
    clock[0] += 1
    assert asked.read() == ()


def test_nobody_waits_for_a_database_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rhythm.worker.metrics.ASKED_WAIT_S", 0.01)
    answer, calls = threading.Event(), []

    def ask() -> list[Queue]:
        calls.append(1)
        answer.wait(WAIT_S)
        return [Queue("a", 1, None, 0, 0)]

    asked = Asked(ask, time.monotonic)
    assert (asked.read(), asked.read(), len(calls)) == ((), (), 1)
    answer.set()
    asked._idle.wait(WAIT_S)
    assert len(asked.read()) == 1


def test_timers_tell_how_late_they_were(make_store: MakeStore) -> None:
    world = World('workflow main() {\n  await sleep("10s")\n}\n', make_store=make_store)
    for id in ("a", "b"):
        world.start(id=id)
    while not world.worker.idle or _ready(world.inner):
        world.worker.run_round()
    late: list[float] = []
    world.clock.seconds += 9
    assert (world.inner.maintenance.fire_timers(10, late.append)[0], late) == (0, [])
    world.clock.seconds += 3.5
    assert world.inner.maintenance.fire_timers(10, late.append)[0] == 2
    assert late == pytest.approx([2.5, 2.5], abs=0.1)


def _ready(store: Store) -> int:
    return sum(queue.ready for queue in store.workers.queues())


def reached(what: Callable[[], object]) -> None:
    last = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < last


def test_worker_counts_what_it_does(make_app: MakeApp) -> None:
    tries = []

    async def flaky() -> int:
        await asyncio.sleep(0)
        tries.append(1)
        if len(tries) < 2:
            raise ValueError("not yet")
        return 1

    def fail() -> None:
        raise rhythm.TaskFailed("no")

    app = make_app(
        flaky,
        fail,
        flows=(
            (
                'workflow good() {\n  await sleep("1ms")\n  return await task("flaky", {}, { '
                'retries: 3, backoff: "1ms" })\n}'
            ),
            'workflow bad() {\n  await task("fail")\n}',
            'workflow hold() {\n  await signal("go")\n}',
        ),
    )
    with app.worker(concurrency=7) as worker:
        assert app.start_workflow("good").result(WAIT_S) == 1
        with pytest.raises(rhythm.ExecutionFailed):
            app.start_workflow("bad").result(WAIT_S)
        hold = app.start_workflow("hold")
        hold.cancel()
        with pytest.raises(rhythm.ExecutionFailed):
            hold.result(WAIT_S)
        app.queue_task("elsewhere", queue="mail")
        reached(
            lambda: (
                'rhythm_executions_finished_total{workflow="hold",status="cancelled"}'
                in samples(worker.metrics())
            )
        )
        text = worker.metrics()
    found = samples(text)
    for workflow, status in (("good", "completed"), ("bad", "failed"), ("hold", "cancelled")):
        assert (
            found[f'rhythm_executions_finished_total{{workflow="{workflow}",status="{status}"}}']
            == 1
        )
    assert found['rhythm_tasks_finished_total{task="flaky",status="completed"}'] == 1
    assert found['rhythm_tasks_finished_total{task="fail",status="failed"}'] == 1
    assert found['rhythm_task_retries_total{task="flaky"}'] == 1
    assert found['rhythm_task_duration_seconds_count{task="flaky"}'] == 2
    assert (
        found['rhythm_worker_slots{state="free"}'],
        found["rhythm_timer_lateness_seconds_count"] >= 1,
    ) == (7, True)
    assert found["rhythm_commits_total"] == found["rhythm_commit_batch_size_count"] > 3
    assert found["rhythm_loop_lag_seconds"] < WAIT_S
    assert (
        found[
            f'rhythm_build_info{{version="{rhythm.__version__}",python="{".".join(map(str, sys.version_info[:3]))}"}}'
        ]
        == 1
    )
    exported = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))
    assert exported == METRICS.keys()


def test_what_was_lost_or_unanswered_is_counted_also_where_nobody_reads_the_log(
    make_app: MakeApp,
) -> None:
    worker = make_app().worker()
    for name in ("claim_lost", "claim_lost", "commit_unknown", "bug"):
        worker._worker.narrator.complain(name, "x", "why")
    found = samples(worker.metrics())
    assert (found["rhythm_claim_lost_total"], found["rhythm_commit_unknown_total"]) == (2, 1)
    worker._store.close()


def test_queues_are_those_of_the_database(make_app: MakeApp) -> None:
    app = make_app()
    app.queue_task("elsewhere", queue="mail")
    with app.worker() as worker:
        found = samples(worker.metrics())
    assert (
        found['rhythm_queue_depth{queue="mail"}'],
        found['rhythm_queue_oldest_age_seconds{queue="mail"}'] >= 0,
    ) == (1, True)


def test_event_loop_that_is_blocked_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rhythm.worker.executor.LAG_S", 0.001)
    blocked, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    async def block() -> None:
        blocked.set()
        go_on.wait(WAIT_S)

    handlers = Handlers()
    assert handlers.lag_s() is None
    from rhythm.worker.current import Current

    handlers.start(
        Task(block, "block", "default", 0, None, None),
        None,
        Current("x", "block", 1, None),
        lambda end: ended.set(),
    )
    assert blocked.wait(WAIT_S)
    first = handlers.lag_s()
    second = handlers.lag_s()
    assert 0 < (first or 0) < (second or 0)
    go_on.set()
    assert ended.wait(WAIT_S)
    handlers.close()


def test_status_of_an_execution_is_one_of_three() -> None:
    metrics = Metrics()
    for status in (COMPLETED, FAILED, CANCELLED):
        metrics.finished("w", status)
    assert re.findall(r'workflow="w",status="(\w+)"', metrics.text()) == [
        "completed",
        "failed",
        "cancelled",
    ]
