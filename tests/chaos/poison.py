"""Tasks that take their worker with them, eat its memory or never end: each is given up after so many claims, the others go on."""

from __future__ import annotations

import json

from tests.chaos import ledger
from tests.chaos.report import Figure, at_least, at_most, none, shown
from tests.chaos.server import own_server
from tests.chaos.world import World, world

WORKERS, IN_FLIGHT, CRASH_LIMIT = 3, 40, 3
LIMITED = ("sh", "-c", 'ulimit -v 4000000; exec "$@"', "sh")  # as much memory as a container would have
POISON = {"leave": CRASH_LIMIT, "segfault": CRASH_LIMIT, "devour": 1, "block": 1}  # how often each begins
FLOW = """
workflow NAME() {
  try {
    await task("NAME")
  } catch (e) {
    return e
  }
}
"""


def scenario(seed: int, scale: float) -> list[Figure]:
    programs, each = max(40, round(1000 * scale)), max(1, round(3 * scale))
    with own_server() as server, world(server.url, seed, programs, {"RHYTHM_CRASH_LIMIT": str(CRASH_LIMIT)}) as w:
        w.workers.start(WORKERS, before=LIMITED)
        given = {id: name for name in POISON for id in w.load.start(name, FLOW.replace("NAME", name), [None] * each)}

        def restart() -> float:
            """As whoever runs the workers does."""
            w.workers.start(WORKERS - len(w.workers.alive), before=LIMITED)
            return 0.2

        def done() -> bool:
            return len(w.load.started) >= programs + len(given) and not unended(w, given)

        w.torment(restart, done, IN_FLIGHT, 120.0)
        errors = errors_of(w, given)
        for id in given:
            del w.load.started[id]
        verdict = w.verdict()
        begun = ledger.begun(ledger.read(w.folder))
        times = {id: sum(len(lines) for task, lines in begun.items() if task.startswith(f"{id}.")) for id in given}
        return [
            *verdict,
            at_least("workers that were killed by a task", len(w.workers.all) - WORKERS, 2 * each * CRASH_LIMIT / 2),
            none("not ended", [f"{name} {id}" for id, name in given.items() if id not in errors]),
            none(
                "not begun as often as the limit says",
                [f"{id} {times[id]} times" for id, name in given.items() if times[id] != POISON[name]],
            ),
            *[shown(f"{name}: {next((error for id, error in errors.items() if given[id] == name), '')[:90]}", "") for name in POISON],
            at_most("sessions left, ours", len(server.sessions()), 4),
        ]


def unended(w: World, given: dict[str, str]) -> list[str]:
    return [id for id, execution in w.load.store.get(list(given)).items() if execution.finished_at is None]


def errors_of(w: World, given: dict[str, str]) -> dict[str, str]:
    found = w.load.store.get(list(given))
    errors = {id: json.loads(execution.result or "null") for id, execution in found.items() if execution.finished_at is not None}
    return {id: f"{error['code']}: {error['message']}" for id, error in errors.items() if error}
