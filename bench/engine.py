"""What people wait for beside the work itself: registering, and what comes from outside while
workflows run."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench import raw
from bench.measure import row, show_s, spread, timed
from bench.places import each
from rhythm import Rhythm
from rhythm.app.loading import compile_flows, read_flows
from rhythm.worker.handlers import Task

REGISTERED, REACTIONS = 100, 20

FLOW = """
workflow waits() {
  while (true) {
    let x = await signal("go")
    await task("note", { x })
  }
}
workflow works() {
  while (true) {
    await task("note", { x: 0 })
  }
}
"""


def registering() -> None:
    """A hundred workflows: new, and once more unchanged."""
    text = "".join(
        f'workflow w{n}() {{\n  return await task("note", {{ x: {n} }})\n}}\n'
        for n in range(REGISTERED)
    )
    definitions = compile_flows(read_flows([text]), ())
    for place in each():
        limit = place.raw(raw.queue, REGISTERED)[0]
        for what in ("new", "unchanged"):
            took = timed(lambda store=place.app.store: store.definitions.register(definitions))
            ours = f"{place.name}: register {REGISTERED} workflows, {what}"
            row(ours, show_s(took), f"as many rows alone: {show_s(limit)}", f"{took / limit:.1f} ×")


class Seen:
    """When a handler began."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.task = Task(self.note, "note", "default", 0, None, None)

    def note(self, x: int) -> int:
        self.times.append(time.perf_counter())
        return x

    def after(self, work: Callable[[], object]) -> float:
        """Seconds from the beginning of this to the next handler."""
        self.times.clear()
        began = time.perf_counter()
        work()
        _until(lambda: bool(self.times))
        return self.times[0] - began


def reacting() -> None:
    """What comes from another application: a signal to the task it starts, a pause to standstill,
    and back. Asked every millisecond."""
    for place in each():
        seen = Seen()
        with Rhythm(place.url, tasks=[seen.task]) as app, app.worker():
            app.register(FLOW)
            signals, pauses, resumes = _reactions(place.app, seen)
        row(f"{place.name}: signal to the task it starts", spread(signals))
        row(f"{place.name}: pause to standstill", spread(pauses), "wanted: under 100 ms")
        row(f"{place.name}: resume to the next task", spread(resumes), "wanted: under 500 ms")


def _reactions(client: Rhythm, seen: Seen) -> tuple[list[float], list[float], list[float]]:
    waits, works = client.start_workflow("waits"), client.start_workflow("works")
    _until(lambda: bool(seen.times))
    pauses, resumes = list[float](), list[float]()
    for _ in range(REACTIONS):
        pauses.append(timed(lambda: _pause(client, works.id)))
        resumes.append(seen.after(lambda: client.resume(works.id)))
    _pause(client, works.id)
    return (
        [seen.after(lambda: client.signal(waits.id, "go", 1)) for _ in range(REACTIONS)],
        pauses,
        resumes,
    )


def _pause(client: Rhythm, id: str) -> None:
    client.pause(id)
    _until(lambda: client.get(id).status == "paused")


def _until(done: Callable[[], bool]) -> None:
    while not done():
        time.sleep(0.001)
