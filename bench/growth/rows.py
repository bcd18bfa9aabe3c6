"""The rows: what grows in each, and which figures may follow it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg

from bench.figures import Figure
from bench.growth.filling import Filler
from bench.growth.ground import Ground
from bench.growth.measuring import (
    CONNECTIONS,
    P50,
    PSS,
    RSS,
    STEPS_DONE,
    TASKS,
    Figures,
    best,
    connections,
    drained,
    lone,
    memory,
    stepped,
)
from bench.growth.results import Case
from bench.jobs import STEPS
from bench.places import Place
from bench.servers import Store
from rhythm import Start
from rhythm.record import Record

JOB_TASKS, JOB_WORKFLOWS, SINGLES = 10_000, 1000, 100
FINISHED = (400_000, 1_000_000)
PENDING = 100_000
PROCESSES, MANY_TASKS, MANY_WORKFLOWS = (1, 2, 8, 32, 128), 50_000, 3000
WINDOW_S, WINDOWS_OPEN, WINDOWS_AFTER = 15.0, 8, 4
PAYLOAD_CHARS = 10_000
ASLEEP = 10_000
ALL_TASKS, EACH_RSS, PORTION = 1_000_000, 100_000, 50_000

READY = Figure("ready_mb", "the table of what is ready, with its indexes", "MB")
ROWS = Figure("rows", "rows", "")
BYTES = Figure("bytes", "in the database", "B")
WAL = Figure("wal_bytes", "WAL", "B")
COMMITS = Figure("commits", "transactions that write", "")
BOTH: tuple[Store, ...] = ("SQLite", "PostgreSQL")
SERVER: tuple[Store, ...] = ("PostgreSQL",)


class Row(Record):
    """One thing that grows."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    work: Callable[[Ground, Store], Iterator[Case]]
    stores: tuple[Store, ...] = BOTH
    note: str = ""  # for the page


def finished(ground: Ground, store: Store) -> Iterator[Case]:
    with ground.place(store) as place:
        yield Case("empty", _all_jobs(ground, place), baseline=True)
        with place.workers(1, "one"):
            filler = Filler(place)
        count = 0
        for wanted in map(ground.size, FINISHED):
            count += filler.fill(wanted - count)
            yield Case(f"{count:,} finished", _all_jobs(ground, place))


def _all_jobs(ground: Ground, place: Place) -> Figures:
    """J1, J2 and J3, by a worker that begins now."""

    def measure() -> Figures:
        return {
            **drained(place, ground.size(JOB_TASKS)),
            **stepped(place, ground.size(JOB_WORKFLOWS)),
            **lone(place, ground.size(SINGLES)),
        }

    with place.workers(1, "one"):
        return best((TASKS, STEPS_DONE, P50), ground.rounds, measure)


def pending(ground: Ground, store: Store) -> Iterator[Case]:
    tasks, many = ground.size(JOB_TASKS), ground.size(PENDING)

    def drains(place: Place) -> Figures:
        with place.workers(1, "one"):
            return best((TASKS,), ground.rounds, lambda: drained(place, tasks))

    def drains_first() -> Figures:
        with ground.place(store) as place, place.workers(1, "one"):
            return drained(place, tasks, waiting=many)

    with ground.place(store) as place:
        yield Case("nothing", drains(place), baseline=True)
    with ground.place(store) as place:
        place.app.queue_many("note", [Start({"x": 1}, queue="unserved")] * many)
        yield Case(f"{many:,} in a queue that nobody serves", drains(place))
    yield Case(
        f"{many:,} in the same queue: the first {tasks:,}",
        best((TASKS,), ground.rounds, drains_first),
    )


def workers(ground: Ground, store: Store) -> Iterator[Case]:
    tasks, workflows = ground.size(MANY_TASKS), ground.size(MANY_WORKFLOWS)
    for count in PROCESSES:
        if count > max(2, PROCESSES[-1] * ground.scale):
            break
        with (
            ground.place(store) as place,
            closing(place.connect()) as db,
            place.workers(count, "one"),
        ):
            figures = best(
                (TASKS, STEPS_DONE),
                ground.rounds,
                lambda place=place: {**drained(place, tasks), **stepped(place, workflows)},
            )
            figures |= connections(db, count) | memory(place.worker_pids(db, count) or [])
        yield Case("1 process" if count == 1 else f"{count} processes", figures, count == 1)


def transaction(ground: Ground, store: Store) -> Iterator[Case]:
    window_s = ground.seconds(WINDOW_S)

    def cases(place: Place, db: Any, windows: int, when: str) -> Iterator[Case]:
        for number in range(windows):
            span = f"{number * window_s:g} to {(number + 1) * window_s:g} s"
            yield Case(f"{when} {span}", _window(ground, place, db, window_s))

    with (
        ground.place(store) as place,
        closing(place.connect()) as db,
        place.workers(1, "one"),
    ):
        yield Case("none open", _window(ground, place, db, window_s), baseline=True)
        with _held(place):
            yield from cases(place, db, WINDOWS_OPEN, "open for")
        yield from cases(place, db, WINDOWS_AFTER, "ended")


@contextmanager
def _held(place: Place) -> Iterator[None]:
    """A transaction that has a snapshot and does nothing."""
    with closing(psycopg.connect(place.url, autocommit=True)) as db:
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT txid_current()")
        yield
        db.execute("ROLLBACK")


def _window(ground: Ground, place: Place, db: Any, window_s: float) -> Figures:
    """J1 again and again for so long."""
    tasks, ended, took_s = ground.size(JOB_TASKS), 0, 0.0
    limit = time.monotonic() + window_s
    while not ended or time.monotonic() < limit:
        took_s += tasks / drained(place, tasks)[TASKS.key]
        ended += tasks
    [[size]] = db.execute("SELECT pg_total_relation_size('ready')").fetchall()
    return {TASKS.key: ended / took_s, READY.key: size / 1e6}


def payloads(ground: Ground, store: Store) -> Iterator[Case]:
    tasks, workflows = ground.size(JOB_TASKS), ground.size(JOB_WORKFLOWS)
    for title, value in (("small", 1), (f"{PAYLOAD_CHARS:,} characters", "x" * PAYLOAD_CHARS)):
        with ground.place(store) as place, place.workers(1, "one"):

            def measure(place: Place = place, value: object = value) -> Figures:
                steps = stepped(place, workflows, "passes_on", value)
                return {**drained(place, tasks, name="same", value=value), **steps}

            yield Case(title, best((TASKS, STEPS_DONE), ground.rounds, measure), value == 1)


def asleep(ground: Ground, store: Store) -> Iterator[Case]:
    workflows, sleepers = ground.size(JOB_WORKFLOWS), ground.size(ASLEEP)
    with ground.place(store) as place, place.workers(1, "one"):

        def steps() -> Figures:
            return best((STEPS_DONE,), ground.rounds, lambda: stepped(place, workflows))

        yield Case("none", steps(), baseline=True)
        place.app.start_many("asleep", [None] * sleepers)
        place.until_done(time.time())  # nothing is ready: all of them sleep
        yield Case(f"{sleepers:,} asleep", steps())


def leaves(ground: Ground, store: Store) -> Iterator[Case]:
    tasks, workflows = ground.size(JOB_TASKS), ground.size(JOB_WORKFLOWS)
    with ground.place(store) as place, place.workers(1, "one"):
        jobs: tuple[tuple[str, int, Callable[[], object]], ...] = (
            ("a task of J1", tasks, lambda: drained(place, tasks)),
            ("a step of J2", workflows * STEPS, lambda: stepped(place, workflows)),
        )
        for title, count, job in jobs:
            before = _left(place)
            job()
            after = _left(place)
            yield Case(title, {key: (after[key] - before[key]) / count for key in before})


def _left(place: Place) -> Figures:
    """How much there is in the database, and how much was done to it."""
    if place.name == "SQLite":
        tables, sizes = "SELECT name FROM sqlite_master WHERE type = 'table'", {
            BYTES.key: "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        }  # fmt: skip
    else:
        tables, sizes = "SELECT tablename FROM pg_tables WHERE schemaname = 'rhythm'", {
            BYTES.key: "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c "
            "WHERE relkind = 'r' AND relnamespace = 'rhythm'::regnamespace",
            WAL.key: "SELECT pg_current_wal_insert_lsn() - '0/0'",
            # numbers of transactions: those that only read have none
            COMMITS.key: "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint",
        }  # fmt: skip

    with closing(place.connect()) as db:

        def one(text: str) -> float:
            return float(db.execute(text).fetchall()[0][0])

        names = [name for (name,) in db.execute(tables).fetchall()]
        rows = sum(one(f"SELECT count(*) FROM {name}") for name in names)
        return {ROWS.key: rows, **{key: one(text) for key, text in sizes.items()}}


def worker_memory(ground: Ground, store: Store) -> Iterator[Case]:
    portion, each = ground.size(PORTION), ground.size(EACH_RSS)
    with (
        ground.place(store) as place,
        closing(place.connect()) as db,
        place.workers(1, "one"),
    ):
        done = 0
        for number, until in enumerate(range(each, ground.size(ALL_TASKS) + 1, each), 1):
            rates = list[float]()
            while done < until:
                rates.append(drained(place, portion)[TASKS.key])
                done += portion
            figures = {TASKS.key: max(rates), **memory(place.worker_pids(db, 1) or [])}
            yield Case(f"after {done:,} tasks", figures, baseline=number == 2)


ALL = (
    Row(
        "finished", "finished executions in the database", (TASKS, STEPS_DONE, P50), finished,
        note="Their rows are copies of rows that real runs have left; half of the executions are "
        "children. A worker begins in each case.",
    ),
    Row(
        "pending", "tasks that wait in the queues", (TASKS,), pending,
        note="“The first” are those that end first of all that wait.",
    ),
    Row(
        "workers", "worker processes on one database",
        (TASKS, STEPS_DONE, CONNECTIONS, RSS, PSS), workers, SERVER,
        note=f"{MANY_TASKS:,} tasks, {MANY_WORKFLOWS:,} workflows; of all processes together. "
        "Every process has sent a heartbeat before the jobs begin.",
    ),
    Row(
        "transaction", "a transaction that somebody holds open", (TASKS, READY), transaction,
        SERVER,
        note="J1 again and again. What is claimed and deleted meanwhile leaves dead rows, which "
        "cannot be removed before it ends; autovacuum comes once a minute.",
    ),
    Row(
        "payloads", "inputs and results", (TASKS, STEPS_DONE), payloads,
        note="A task returns what it was given; the workflows pass it on from step to step.",
    ),
    Row("asleep", "workflows that sleep", (STEPS_DONE,), asleep),
    Row(
        "leaves", "what a task and a step leave, and what they cost the database",
        (ROWS, BYTES, WAL, COMMITS), leaves,
        note="With the client's call, and with what a worker does by the clock.",
    ),
    Row(
        "memory", "tasks that one worker process has run", (TASKS, RSS), worker_memory, SERVER,
        note=f"In portions of {PORTION:,}. The first 200,000 are the baseline.",
    ),
)  # fmt: skip
BY_NAME = {row.name: row for row in ALL}
