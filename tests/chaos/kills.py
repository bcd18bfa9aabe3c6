"""Four workers; one of them is killed with `kill -9` every second or three, and another one takes
its place.

Half of the new ones are started where the killed one was, and see that its process has gone. The
others believe to be on machines of their own: what those held who were killed is taken over for
their silence alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.chaos import ledger
from tests.chaos.report import Figure, at_least, at_most, shown, spread
from tests.chaos.server import own_server
from tests.chaos.world import SHORT, World, world

WORKERS, IN_FLIGHT = 4, 120
DEAD_AFTER_S = 5.0  # longer than it takes to start a worker, so that the two ways can be told apart
TAKEOVER_S = 15.0  # at the latest, on a machine that has other things to do as well
# said by a worker that finds one of its machine gone
SEEN = "its process has ended; what it owned is free"
LASTING = {"RHYTHM_TEST_CHAOS_LASTS_S": "0.2"}  # so that something runs on whoever is killed


class Killer:
    """Kills workers and replaces them, some of them where they were."""

    def __init__(self, w: World, workers: int) -> None:
        self.w, self.beside, self.silent = w, dict[int, float](), dict[int, float]()
        for _ in range(workers):
            self.start()

    @property
    def count(self) -> int:
        return len(self.beside) + len(self.silent)

    def start(self) -> None:
        self.w.workers.start_on(f"machine {len(self.w.workers.all)}")

    def kill(self) -> None:
        victim = self.w.chance.choice(self.w.workers.ready or self.w.workers.alive)
        victim.kill()
        beside = self.count % 2 == 0
        (self.beside if beside else self.silent)[victim.pid] = victim.killed_at or 0.0
        if beside:
            self.w.workers.start_on(victim.machine)
        else:
            self.start()

    def figures(self, kills: int, must: bool) -> list[Figure]:
        return [
            at_least("kills", self.count, kills),
            at_least(
                "… seen by the one that was started in its place",
                self.w.workers.said(SEEN),
                1 if must else 0,
            ),
            *takeover(self.w, self.beside, "on its machine", DEAD_AFTER_S if must else None),
            *takeover(self.w, self.silent, "for its silence", DEAD_AFTER_S + 2.0 if must else None),
        ]


def scenario(seed: int, scale: float) -> list[Figure]:
    kills, programs = max(2, round(100 * scale)), max(30, round(3000 * scale))
    full = scale > SHORT
    with (
        own_server() as server,
        world(
            server.url,
            seed,
            programs,
            {**LASTING, "RHYTHM_DEAD_AFTER": str(DEAD_AFTER_S if full else 2.0)},
        ) as w,
    ):
        killer = Killer(w, WORKERS if full else 2)

        def kill() -> float:
            killer.kill()
            return w.chance.uniform(1.0, 3.0) if full else 1.0

        w.torment(
            kill,
            lambda: killer.count >= kills and len(w.load.started) >= programs,
            IN_FLIGHT if full else 30,
            60.0 + 3.0 * kills,
        )
        return [
            *w.verdict(),
            at_least("programs started", len(w.load.started), programs),
            *killer.figures(kills, full),
            shown("deadlocks (retried)", server.logged("deadlock detected")),
            at_most("sessions left, ours", len(server.sessions()), 4),
        ]


def takeover(w: World, gone: Mapping[int, float], how: str, most_p50: float | None) -> list[Figure]:
    """Until somebody else begins what the dead one was running. `most_p50`: none in the short
    forms, where chance decides."""
    found = ledger.takeovers_s(ledger.read(w.folder), gone)
    return [
        at_least(f"tasks cut short, taken over {how}", len(found), 0 if most_p50 is None else 1),
        *spread(f"takeover {how}", found, most_p50, TAKEOVER_S),
    ]
