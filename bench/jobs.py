"""Four jobs for worker processes, beside what the database alone reaches in the same run.

J1: 10,000 tasks enqueued in one call, then drained. J2: 1,000 workflows of 10 tasks, one after the other. J3: from start to result of a
workflow with one task, the client in another process than the worker. J4: a workflow that awaits 1,000 children.
Client, workers and server share the machine. What is timed begins with the client's call, or its end, and ends with the last execution.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench import raw
from bench.measure import row, show_s, spread, table, timed
from bench.places import Place, each, postgres, sqlite
from rhythm.record import Record

TASKS, WORKFLOWS, STEPS, SINGLES, CHILDREN = 10_000, 1000, 10, 200, 1000
LONGEST_S = 60.0  # for all singles
PEERS = {"Restate": 2591, "Absurd": 2058, "DBOS": 477}  # steps/s of J2, measured elsewhere on such a box: two cores, its server beside it

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
    """All figures in one table, and what others reach."""
    heads = list(dict.fromkeys(figure.where for figure in figures))
    lines = dict[str, list[str]]()
    for figure in figures:
        cells = lines.setdefault(figure.job, [""] * len(heads))
        cells[heads.index(figure.where)] = f"{figure.ours} (alone {figure.alone}, {figure.ratio:.1f} ×)"
    if figures:
        table(["", *heads], [[job, *cells] for job, cells in lines.items()])
        peers = ", ".join(f"{name} {speed:,}" for name, speed in PEERS.items())
        print(f"\nJ2 of others, measured elsewhere on such a box, in steps/s: {peers}")


def _tell(job: str, where: str, ours: str, alone: str, ratio: float) -> None:
    figures.append(Figure(job, where, ours, alone, ratio))
    row(f"{job}, {where}", ours, f"the database alone: {alone}", f"{ratio:.1f} ×")


def _speed(job: str, where: str, count: int, took: float, limit: float) -> None:
    _tell(job, where, f"{count / took:,.0f}/s", f"{count / limit:,.0f}/s", took / limit)


def _places() -> Iterator[Place]:
    for place in each():
        place.app.register(FLOW)
        yield place


def _places_and_processes() -> Iterator[tuple[Place, int, str]]:
    for processes, place in zip((1, 1, 2), each(sqlite, postgres, postgres), strict=True):
        place.app.register(FLOW)
        yield place, processes, place.name if processes == 1 else f"{place.name}, {processes} processes"


def queue() -> None:
    """J1: many tasks enqueued in one call, then drained."""
    inputs = [{"x": n} for n in range(TASKS)]
    for place, processes, where in _places_and_processes():
        enqueue_limit, drain_limit = place.raw(raw.queue, TASKS)
        with place.workers(processes, "one"):
            began = time.time()
            place.app.queue_many("note", inputs)
            enqueued = time.time()
            drained = place.until_done(enqueued)
        _speed("J1 tasks enqueued", where, TASKS, enqueued - began, enqueue_limit)
        _speed("J1 tasks drained", where, TASKS, drained, drain_limit)


def sequences() -> None:
    """J2: many workflows at once, each with ten tasks one after the other."""
    for place, processes, where in _places_and_processes():
        limit = place.raw(raw.sequences, WORKFLOWS, STEPS)
        with place.workers(processes, "one"):
            place.app.start_many("steps", [None] * WORKFLOWS)
            took = place.until_done(time.time())
        _speed("J2 steps", where, WORKFLOWS * STEPS, took, limit)


def single() -> None:
    """J3: from start to result, of one workflow with one task and nothing else going on."""
    for place in _places():
        limit = raw.answered(place.where, SINGLES)
        with place.workers(1, "one"):
            times, last = list[float](), time.monotonic() + LONGEST_S
            while len(times) < SINGLES and time.monotonic() < last:
                times.append(timed(lambda app=place.app: app.start_workflow("one", 1).result("60s")))
        ratio = sorted(times)[len(times) // 2] / sorted(limit)[len(limit) // 2]
        fewer = "" if len(times) == SINGLES else f", only {len(times)} in {LONGEST_S:.0f} s"
        _tell("J3 start to result", place.name, spread(times) + fewer, spread(limit), ratio)


def family() -> None:
    """J4: one workflow that awaits many children at once."""
    for kind in ("workflows", "tasks"):
        for place in _places():
            limit = place.raw(raw.family, CHILDREN, kind == "workflows")
            with place.workers(1, "one"):
                began = time.time()
                handle = place.app.start_workflow(f"parent_of_{kind}")
                took = place.until_done(began)
                assert handle.result("60s") == CHILDREN
            _tell(f"J4 {CHILDREN:,} {kind}", place.name, show_s(took), show_s(limit), took / limit)
