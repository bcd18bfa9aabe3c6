"""The jobs that every row measures, in a database that may be full of other things.

J1: tasks enqueued in one call. J2: workflows of ten steps, started in one call. Their time is that
from the first start to the last end, by the rows that they leave. J3: one workflow with one task
after the other, from the client's call to its result.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.figures import Figure
from bench.jobs import STEPS
from bench.measure import timed
from bench.places import WORKERS, Place
from rhythm.store.lifecycle import COMPLETED

LIMIT_S = 300.0  # for any job to end
POLL_S = 0.1
SHARE = 50  # a look at what has ended may take so small a part of the time

TASKS = Figure("tasks_per_s", "J1 tasks", "/s", drawn=True)
STEPS_DONE = Figure("steps_per_s", "J2 steps", "/s", drawn=True)
P50 = Figure("p50_ms", "start to result, p50", "ms")
CONNECTIONS = Figure("connections", "connections per worker", "")
RSS = Figure("rss_mb", "RSS per process", "MB")
PSS = Figure("pss_mb", "PSS per process", "MB")

Figures = dict[str, float]


class Stuck(RuntimeError):
    """A job has not ended in time, or not well."""


def drained(
    place: Place, tasks: int, waiting: int = 0, name: str = "note", value: object = 1
) -> Figures:
    """J1. While so many more are `waiting` in the same queue, before these."""
    since = _now_us()
    if waiting:
        place.app.pause_queue("default")
        place.app.queue_many(name, [{"x": value}] * waiting)
    place.app.queue_many(name, [{"x": value}] * tasks)
    if waiting:
        place.app.resume_queue("default")
    return {TASKS.key: tasks / ended_s(place, since, tasks)}


def stepped(place: Place, workflows: int, name: str = "steps", inputs: object = None) -> Figures:
    """J2."""
    since = _now_us()
    place.app.start_many(name, [inputs] * workflows)
    return {STEPS_DONE.key: workflows * STEPS / ended_s(place, since, workflows)}


def lone(place: Place, times: int) -> Figures:
    """J3."""
    took = [timed(lambda: place.app.start_workflow("one", 1).result("60s")) for _ in range(times)]
    return {P50.key: statistics.median(took) * 1e3}


def best(figures: Sequence[Figure], rounds: int, measure: Callable[[], Figures]) -> Figures:
    """The best of some rounds in each figure."""
    all_of = [measure() for _ in range(rounds)]
    return {
        figure.key: figure.best([each[figure.key] for each in all_of])
        for figure in figures
        if figure.key in all_of[0]
    }


def ended_s(place: Place, since: int, count: int) -> float:
    """Seconds from the first start to the last end of the first so many roots that have ended since
    then. Raises `Stuck` if there are not so many for long, or some have failed."""
    text = f"""
        SELECT count(*), min(started_at), max(finished_at), max(status) FROM (
          SELECT started_at, finished_at, status FROM executions
          WHERE parent_id IS NULL AND finished_at >= {since} ORDER BY finished_at LIMIT {count}
        ) AS ended"""
    limit = time.monotonic() + LIMIT_S
    with closing(place.connect()) as db:
        while True:
            began = time.monotonic()
            [[found, first, last, worst]] = db.execute(text).fetchall()
            if worst is not None and worst > COMPLETED:
                raise Stuck("executions have failed")
            if found == count:
                return float(last - first) / 1e6
            if began > limit:
                raise Stuck(f"{found:,} of {count:,} have ended after {LIMIT_S:g} s")
            time.sleep(max(POLL_S, SHARE * (time.monotonic() - began)))


def _now_us() -> int:
    return time.time_ns() // 1000


def connections(db: Any, processes: int) -> Figures:
    """Of each worker to PostgreSQL."""
    text = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{WORKERS}'"
    [[count]] = db.execute(text).fetchall()
    return {CONNECTIONS.key: count / processes}


def memory(pids: Sequence[int]) -> Figures:
    """Of each process on average; nothing where nobody tells.

    PSS counts a page that several processes share in parts.
    """
    kinds = {"Rss:": RSS.key, "Pss:": PSS.key}
    files = [Path(f"/proc/{pid}/smaps_rollup") for pid in pids]
    if not all(file.exists() for file in files):
        return {}
    sums = dict.fromkeys(kinds.values(), 0.0)
    for line in (line for file in files for line in file.read_text().splitlines()):
        kind, *words = line.split()
        if kind in kinds:
            sums[kinds[kind]] += int(words[0]) / 1024 / len(files)
    return sums
