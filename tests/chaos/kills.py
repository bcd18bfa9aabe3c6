"""Four workers; one of them is killed with `kill -9` every second or three, and another one takes its place."""

from __future__ import annotations

from tests.chaos import ledger
from tests.chaos.processes import DEAD_AFTER_S
from tests.chaos.report import Figure, at_least, at_most, shown, spread
from tests.chaos.server import own_server
from tests.chaos.world import World, world

WORKERS, IN_FLIGHT = 4, 150
LASTING = {"RHYTHM_TEST_CHAOS_LASTS_S": "0.2"}  # so that something runs on whoever is killed


def scenario(seed: int, scale: float) -> list[Figure]:
    kills, programs = max(3, round(100 * scale)), max(40, round(3000 * scale))
    with own_server() as server, world(server.url, seed, programs, LASTING) as w:
        w.workers.start(WORKERS)
        gone = dict[int, float]()

        def kill() -> float:
            victim = w.chance.choice(w.workers.alive)
            victim.kill()
            gone[victim.pid] = victim.killed_at or 0.0
            w.workers.start()
            return w.chance.uniform(1.0, 3.0)

        w.torment(kill, lambda: len(gone) >= kills and len(w.load.started) >= programs, IN_FLIGHT, 60.0 + 3.0 * kills)
        return [
            *w.verdict(),
            at_least("programs started", len(w.load.started), programs),
            at_least("kills", len(gone), kills),
            *takeover(w, gone),
            shown("deadlocks (retried)", server.logged("deadlock detected")),
            at_most("sessions left, ours", len(server.sessions()), 4),
        ]


def takeover(w: World, gone: dict[int, float]) -> list[Figure]:
    """Until somebody else begins what the dead one was running: it must be missed first, and then rescued."""
    return spread("takeover of what it ran", ledger.takeovers_s(ledger.read(w.folder), gone), most_p99=DEAD_AFTER_S + 4.0)
