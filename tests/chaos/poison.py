"""Tasks that take their worker with them, eat its memory or never end, alone and two at once: each
is given up after so many claims, however often it may be tried; the others go on, and come to their
right ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from tests.chaos import ledger
from tests.chaos.processes import PATIENT
from tests.chaos.report import Figure, at_least, at_most, none, shown
from tests.chaos.server import own_server
from tests.chaos.world import SHORT, World, world

WORKERS, IN_FLIGHT, CRASH_LIMIT = 3, 40, 3
# as much memory as a container would have
LIMITED = ("sh", "-c", 'ulimit -v 4000000; exec "$@"', "sh")
DEADLY = ("leave", "stubborn", "segfault")  # the others end by themselves, the first time
# at once
ROUNDS = (
    ("leave",),
    ("stubborn",),
    ("segfault",),
    ("devour", "block"),
    ("leave", "stubborn"),
    ("segfault", "leave"),
)
SHORT_ROUNDS = (("leave", "stubborn"), ("devour", "block"))
FLOW = """
workflow NAME() {
  try {
    await task("NAME")
  } catch (e) {
    return e
  }
}
"""


class Given(NamedTuple):
    """A poison that was given: alone, or beside others."""

    id: str
    task: str
    alone: bool


def scenario(seed: int, scale: float) -> list[Figure]:
    programs = max(30, round(600 * scale))
    with (
        own_server() as server,
        world(server.url, seed, programs, {**PATIENT, "RHYTHM_CRASH_LIMIT": str(CRASH_LIMIT)}) as w,
    ):
        w.workers.start(WORKERS, before=LIMITED)
        given, left = list[Given](), [*(ROUNDS if scale > SHORT else SHORT_ROUNDS)]

        def next_round() -> float:
            """One after the other, when nothing is suspected any more. Workers are started again,
            as always."""
            w.workers.start(WORKERS - len(w.workers.alive), before=LIMITED)
            if (
                left
                and not unended(w, given)
                and not w.load.query("SELECT 1 FROM ready WHERE crashes > 0 LIMIT 1")
            ):
                names = left.pop(0)
                for name in names:
                    given.append(give(w, name, len(given), len(names) == 1))
            return 0.1

        def done() -> bool:
            return (
                not left and not unended(w, given) and len(w.load.started) >= programs + len(given)
            )

        w.torment(next_round, done, IN_FLIGHT, 60.0 + 20.0 * len(left))
        errors = errors_of(w, given)
        w.load.settle(60.0)
        for one in given:
            del w.load.started[one.id]
        verdict = w.verdict()
        deadly = [one for one in given if one.task in DEADLY]
        return [
            *verdict,
            at_least("poison given", len(given), 2),
            at_least(
                "workers that were killed by a task", len(w.workers.all) - WORKERS, CRASH_LIMIT
            ),
            none("innocents taken for poison", taken_for_poison(w, given)),
            none("poison that did not end", [one for one in given if one.id not in errors]),
            none(
                "poison not given up at the limit",
                [
                    errors[one.id]
                    for one in deadly
                    if one.id in errors and not at_limit(errors[one.id])
                ],
            ),
            none("poison not begun as often as that", begun_otherwise(w, given)),
            *[shown(f"{one.task}: {errors.get(one.id, '')[:90]}", "") for one in given],
            at_most("sessions left, ours", len(server.sessions()), 4),
        ]


def give(w: World, task: str, number: int, alone: bool) -> Given:
    name = f"{task}{number}"
    [id] = w.load.start(name, FLOW.replace("NAME", name, 1).replace("NAME", task), [None])
    return Given(id, task, alone)


def at_limit(error: str) -> bool:
    return f"its worker died {CRASH_LIMIT} times" in error


def begun_otherwise(w: World, given: Sequence[Given]) -> list[str]:
    """Each claim is a beginning, unless the worker died of another poison before it came to
    that."""
    begun, found = ledger.begun(ledger.read(w.folder)), []
    for one in given:
        times = sum(len(lines) for task, lines in begun.items() if task.startswith(f"{one.id}."))
        most = CRASH_LIMIT if one.task in DEADLY else 1
        if times > most or (times < most and (one.alone or one.task not in DEADLY)):
            found.append(f"{one.id} {times} times")
    return found


def taken_for_poison(w: World, given: Sequence[Given]) -> list[str]:
    """Programs some of which was beside poison each time a worker died."""
    found = w.load.query(
        "SELECT DISTINCT root_id FROM executions WHERE strpos(error, 'its worker died') > 0"
    )
    return sorted({id for (id,) in found} - {one.id for one in given})


def unended(w: World, given: Sequence[Given]) -> list[str]:
    found = w.load.store.reading.get([one.id for one in given]) if given else {}
    return [id for id, execution in found.items() if execution.finished_at is None]


def errors_of(w: World, given: Sequence[Given]) -> dict[str, str]:
    found = w.load.store.reading.get([one.id for one in given])
    errors = {
        id: json.loads(execution.result or "null")
        for id, execution in found.items()
        if execution.finished_at is not None
    }
    return {id: f"{error['code']}: {error['message']}" for id, error in errors.items() if error}
