"""Four jobs for worker processes, beside what the database alone reaches in the same run.

J1: 10,000 tasks enqueued in one call, then drained. J2: 1,000 workflows of 10 tasks, one after the
other. J3: from start to result of a workflow with one task, the client in another process than the
worker. J4: a workflow that awaits 1,000 children. Client, workers and server share the machine.
What is timed begins with the client's call, or its return, and ends with the last execution.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from functools import partial

from bench import raw
from bench.measure import row, show_s, spread, table, timed
from bench.places import Place, postgres, sqlite
from rhythm.record import Record

TASKS, WORKFLOWS, STEPS, SINGLES, CHILDREN = 10_000, 1000, 10, 200, 1000
ROUNDS = 3
EVERYWHERE = (
    ("SQLite", sqlite, 1),
    ("PostgreSQL", postgres, 1),
    ("PostgreSQL, 2 processes", postgres, 2),
)

FLOW = f"""
workflow one(inputs) {{
  return await task("note", {{ x: inputs }})
}}
workflow steps() {{
  let total = 0
  for (i in range({STEPS})) {{
    let x = await task("note", {{ x: i }})
    total += x
  }}
  return total
}}
workflow child(inputs) {{
  return inputs
}}
workflow parent_of_workflows() {{
  let results = await all([workflow("child", x) for x in range({CHILDREN})])
  return len(results)
}}
workflow parent_of_tasks() {{
  let results = await all([task("note", {{ x }}) for x in range({CHILDREN})])
  return len(results)
}}
"""


class Figure(Record):
    """One measurement, and the same without an engine."""

    job: str
    where: str
    ours: str
    alone: str
    ratio: float


figures: list[Figure] = []


def summary() -> None:
    """All figures in one table. What other engines reach is measured by `bench.peers`."""
    heads = list(dict.fromkeys(figure.where for figure in figures))
    lines = dict[str, list[str]]()
    for figure in figures:
        cells = lines.setdefault(figure.job, [""] * len(heads))
        cells[heads.index(figure.where)] = (
            f"{figure.ours} (alone {figure.alone}, {figure.ratio:.1f} ×)"
        )
    if figures:
        table(["", *heads], [[job, *cells] for job, cells in lines.items()])


def tell(job: str, where: str, ours: str, alone: str, ratio: float) -> None:
    figures.append(Figure(job, where, ours, alone, ratio))
    row(f"{job}, {where}", ours, f"the database alone: {alone}", f"{ratio:.1f} ×")


def _speed(job: str, where: str, count: int, took: float, limit: float) -> None:
    tell(job, where, f"{count / took:,.0f}/s", f"{count / limit:,.0f}/s", took / limit)


def _best(
    make: Callable[[], Place], processes: int, measure: Callable[[Place], tuple[float, ...]]
) -> list[float]:
    """The shortest time of each kind in a few rounds, each on a new database: what else goes on is
    not ours to measure."""
    rounds = []
    for _ in range(ROUNDS):
        with closing(make()) as place:
            place.app.register(FLOW)
            with place.workers(processes, "one"):
                rounds.append(measure(place))
    return [min(times) for times in zip(*rounds, strict=True)]


def queue() -> None:
    """J1: many tasks enqueued in one call, then drained."""
    inputs = [{"x": n} for n in range(TASKS)]

    def measure(place: Place) -> tuple[float, ...]:
        limits = place.raw(raw.queue, TASKS)
        began = time.time()
        place.app.queue_many("note", inputs)
        enqueued = time.time()
        return enqueued - began, place.until_done(enqueued), *limits

    for where, make, processes in EVERYWHERE:
        enqueued, drained, enqueue_limit, drain_limit = _best(make, processes, measure)
        _speed("J1 tasks enqueued", where, TASKS, enqueued, enqueue_limit)
        _speed("J1 tasks drained", where, TASKS, drained, drain_limit)


def sequences() -> None:
    """J2: many workflows at once, each with ten tasks one after the other."""

    def measure(place: Place) -> tuple[float, ...]:
        limit = place.raw(raw.sequences, WORKFLOWS, STEPS)
        place.app.start_many("steps", [None] * WORKFLOWS)
        return place.until_done(time.time()), limit

    for where, make, processes in EVERYWHERE:
        _speed("J2 steps", where, WORKFLOWS * STEPS, *_best(make, processes, measure))


def single() -> None:
    """J3: from start to result, of one workflow with one task and nothing else going on."""
    for where, make, processes in EVERYWHERE[:2]:
        with closing(make()) as place:
            place.app.register(FLOW)
            limit = raw.answered(place.where, SINGLES)
            with place.workers(processes, "one"):
                times = [
                    timed(lambda app=place.app: app.start_workflow("one", 1).result("60s"))
                    for _ in range(SINGLES)
                ]
        tell(
            "J3 start to result",
            where,
            spread(times),
            spread(limit),
            sorted(times)[SINGLES // 2] / sorted(limit)[SINGLES // 2],
        )


def family() -> None:
    """J4: one workflow that awaits many children at once."""
    for kind in ("workflows", "tasks"):
        for where, make, processes in EVERYWHERE[:2]:
            took, limit = _best(make, processes, partial(_family, kind))
            tell(f"J4 {CHILDREN:,} {kind}", where, show_s(took), show_s(limit), took / limit)


def _family(kind: str, place: Place) -> tuple[float, ...]:
    limit = place.raw(raw.family, CHILDREN, kind == "workflows")
    began = time.time()
    handle = place.app.start_workflow(f"parent_of_{kind}")
    took = place.until_done(began)
    assert handle.result("60s") == CHILDREN
    return took, limit
