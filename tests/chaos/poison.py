"""Tasks that take their worker with them, eat its memory or never end: each is given up after so many claims, the others go on."""

from __future__ import annotations

import json

from tests.chaos import ledger
from tests.chaos.processes import PATIENT
from tests.chaos.report import Figure, at_least, at_most, none, shown
from tests.chaos.server import own_server
from tests.chaos.world import SHORT, World, world

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
    programs, each = max(30, round(600 * scale)), max(1, round(2 * scale))
    with own_server() as server, world(server.url, seed, programs, {**PATIENT, "RHYTHM_CRASH_LIMIT": str(CRASH_LIMIT)}) as w:
        w.workers.start(WORKERS, before=LIMITED)
        given = dict[str, str]()
        left = [name for name in POISON for _ in range(each) if scale > SHORT or name != "segfault"]

        def next_one() -> float:
            """One after the other, so that none dies of another, nor does who was beside it. Workers are started again, as always."""
            w.workers.start(WORKERS - len(w.workers.alive), before=LIMITED)
            if left and not unended(w, given) and not w.load.query("SELECT 1 FROM ready WHERE crashes > 0 LIMIT 1"):
                name = left.pop(0)
                given[
                    w.load.start(f"{name}{len(left)}", FLOW.replace("NAME", f"{name}{len(left)}", 1).replace("NAME", name), [None])[0]
                ] = name
            return 0.1

        def done() -> bool:
            return not left and not unended(w, given) and len(w.load.started) >= programs + len(given)

        w.torment(next_one, done, IN_FLIGHT, 60.0 + 60.0 * each)
        errors = errors_of(w, given)
        w.load.settle(60.0)
        taken = taken_for_poison(w, given)
        for id in (*given, *taken):
            del w.load.started[id]
        verdict = w.verdict()
        begun = ledger.begun(ledger.read(w.folder))
        times = {id: sum(len(lines) for task, lines in begun.items() if task.startswith(f"{id}.")) for id in given}
        unlike = [f"{id} {times[id]} times" for id, name in given.items() if times[id] != POISON[name]]
        return [
            *verdict,
            at_least(
                "workers that were killed by a task",
                len(w.workers.all) - WORKERS,
                sum(name in ("leave", "segfault") for name in given.values()) * CRASH_LIMIT,
            ),
            at_most("innocents taken for poison", len(taken), programs // 100),
            none("poison that did not end", [id for id in given if id not in errors]),
            none("poison not begun as often as the limit says", unlike),
            *[shown(f"{name}: {next((error for id, error in errors.items() if given[id] == name), '')[:90]}", "") for name in POISON],
            at_most("sessions left, ours", len(server.sessions()), 4),
        ]


def taken_for_poison(w: World, given: dict[str, str]) -> list[str]:
    """Programs some of which was beside poison each time a worker died. It is rare; they can be retried."""
    found = w.load.query("SELECT DISTINCT root_id FROM executions WHERE strpos(error, 'its worker died') > 0")
    return [id for (id,) in found if id in w.load.started and id not in given]


def unended(w: World, given: dict[str, str]) -> list[str]:
    return [id for id, execution in w.load.store.get(list(given)).items() if execution.finished_at is None] if given else []


def errors_of(w: World, given: dict[str, str]) -> dict[str, str]:
    found = w.load.store.get(list(given))
    errors = {id: json.loads(execution.result or "null") for id, execution in found.items() if execution.finished_at is not None}
    return {id: f"{error['code']}: {error['message']}" for id, error in errors.items() if error}
