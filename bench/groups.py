"""Whether work grows in step with the number of items: groups with a limit of concurrency, loops
over what has ended, long mailboxes, many events.

One worker, in this process. Each figure is the time of an item, in the wall's and in this
process's own (the server of PostgreSQL is another process); the ratio is to the smallest number
of items beside it, so 1 is linear.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing

from bench.measure import row, show_s
from bench.places import Place, postgres, sqlite
from rhythm import Rhythm
from rhythm.app.handle import Handle
from rhythm.record import Record
from rhythm.worker.handlers import Task

GROUPS, LOOPS, MESSAGES, LIMIT = (500, 4000, 10_000), (500, 4000), (500, 5000), 50

FLOW = f"""
workflow unlimited(n: integer) {{
  let results = await all([task("note", {{ x }}) for x in range(n)])
  return len(results)
}}
workflow limited(n: integer) {{
  let results = await all([task("note", {{ x }}) for x in range(n)], {{ concurrency: {LIMIT} }})
  return len(results)
}}
workflow completed_items(n: integer) {{
  let seen = 0
  for (r in completed([task("note", {{ x }}) for x in range(n)], {{ concurrency: {LIMIT} }})) {{
    seen += 1
  }}
  return seen
}}
workflow completed_unlimited(n: integer) {{
  let seen = 0
  for (r in completed([task("note", {{ x }}) for x in range(n)])) {{ seen += 1 }}
  return seen
}}
workflow completed_and_task(n: integer) {{
  let seen = 0
  for (r in completed([task("note", {{ x }}) for x in range(n)])) {{
    let one = await task("note", {{ x: 1 }})
    seen += one
  }}
  return seen
}}
workflow mailbox(n: integer) {{
  await signal("begin")
  for (i in range(n)) {{ await signal("go") }}
  return n
}}
workflow mailbox_and_task(n: integer) {{
  await signal("begin")
  for (i in range(n)) {{
    let x = await signal("go")
    await task("note", {{ x }})
  }}
  return n
}}
workflow events_before(n: integer) {{
  await signal("begin")
  for (i in range(n)) {{ await event("thing") }}
  return n
}}
workflow events_after(n: integer) {{
  for (i in range(n)) {{ await event("thing") }}
  return n
}}
workflow sends(n: integer, to: text) {{
  for (x in range(n)) {{ send(to, "go", x) }}
}}
workflow publishes(n: integer) {{
  for (x in range(n)) {{ publish("thing", {{ x }}) }}
}}
"""


class Took(Record):
    """What a run took: by the wall, and of this process."""

    wall_s: float
    cpu_s: float


def note(x: int) -> int:
    return x


def groups() -> None:
    """`all` with and without a limit; loops over `completed`, a mailbox and events."""
    for make in (sqlite, postgres):
        for count in GROUPS:
            free, limited = (_group(make, name, count) for name in ("unlimited", "limited"))
            what = f"all of {count:,}, {LIMIT} at a time"
            _tell(make, what, count, limited, f"all at once: {_shown(free, count)}", free, count)
        for name, what, sizes in (
            ("completed_items", "completed, 50 at a time", LOOPS),
            ("completed_unlimited", "completed", LOOPS),
            ("completed_and_task", "completed, a task for each", LOOPS),
        ):
            _growth(make, what, sizes, lambda place, n, name=name: _start(place, name, n))
        for name, what in (("mailbox", "mailbox"), ("mailbox_and_task", "mailbox, task for each")):
            _growth(make, what, MESSAGES, lambda place, n, name=name: _mailbox(place, name, n))
        _growth(make, "events published before", MESSAGES, _events_before)
        _growth(make, "events published after", MESSAGES, _events_after)


def _growth(
    make: Callable[[], Place],
    what: str,
    sizes: Sequence[int],
    work: Callable[[Rhythm, int], Took],
) -> None:
    """Prints what an item takes, in several sizes."""
    least: Took | None = None
    for count in sizes:
        with closing(make()) as place, _app(place) as app, app.worker():
            took = work(app, count)
        first = least or took
        _tell(make, f"{what}: {count:,}", count, took, "", first, sizes[0])
        least = first


def _tell(
    make: Callable[[], Place],
    what: str,
    count: int,
    took: Took,
    yardstick: str,
    than: Took,
    than_count: int,
) -> None:
    ratio = [
        (ours / count) / (other / than_count)
        for ours, other in ((took.wall_s, than.wall_s), (took.cpu_s, than.cpu_s))
    ]
    row(
        f"{make.__name__}: {what}",
        _shown(took, count),
        yardstick,
        f"{ratio[0]:.2f} ×, CPU {ratio[1]:.2f} ×",
    )


def _shown(took: Took, count: int) -> str:
    return f"{show_s(took.wall_s / count)}, CPU {show_s(took.cpu_s / count)}"


def _app(place: Place) -> Rhythm:
    app = Rhythm(place.url, tasks=[Task(note, "note", "default", 0, None, None)])
    app.register(FLOW)
    return app


def _group(make: Callable[[], Place], name: str, count: int) -> Took:
    with closing(make()) as place, _app(place) as app, app.worker():
        return _start(app, name, count)


def _start(app: Rhythm, name: str, count: int) -> Took:
    return _until(lambda: app.start_workflow(name, {"n": count}), count)


def _until(begin: Callable[[], Handle], expected: int) -> Took:
    wall, cpu = time.perf_counter(), time.process_time()
    assert begin().result("30m") == expected
    return Took(time.perf_counter() - wall, time.process_time() - cpu)


def _mailbox(app: Rhythm, name: str, count: int) -> Took:
    """Of the receiver: its mailbox is full when it begins."""
    handle = app.start_workflow(name, {"n": count})
    app.start_workflow("sends", {"n": count, "to": handle.id}).result("30m")
    return _begun(app, handle, count)


def _events_before(app: Rhythm, count: int) -> Took:
    handle = app.start_workflow("events_before", {"n": count})
    app.start_workflow("publishes", {"n": count}).result("30m")
    return _begun(app, handle, count)


def _begun(app: Rhythm, handle: Handle, count: int) -> Took:
    def begin() -> Handle:
        app.signal(handle.id, "begin")
        return handle

    return _until(begin, count)


def _events_after(app: Rhythm, count: int) -> Took:
    """Of the receiver and of the publisher."""
    handle = app.start_workflow("events_after", {"n": count})

    def begin() -> Handle:
        app.start_workflow("publishes", {"n": count})
        return handle

    return _until(begin, count)
