"""Four workers; one of them is killed with `kill -9` every second or three, and another one takes its place."""

from __future__ import annotations

from tests.chaos import ledger
from tests.chaos.report import Figure, at_least, at_most, shown, spread
from tests.chaos.server import own_server
from tests.chaos.world import SHORT, World, world

WORKERS, IN_FLIGHT = 4, 120
TAKEOVER_S = 15.0  # at the latest, on a machine that has other things to do as well
LASTING = {"RHYTHM_TEST_CHAOS_LASTS_S": "0.2"}  # so that something runs on whoever is killed


def scenario(seed: int, scale: float) -> list[Figure]:
    kills, programs = max(3, round(100 * scale)), max(30, round(3000 * scale))
    in_flight = IN_FLIGHT if scale > SHORT else 30
    with own_server() as server, world(server.url, seed, programs, LASTING) as w:
        w.workers.start(WORKERS if scale > SHORT else 2)
        gone = dict[int, float]()

        def kill() -> float:
            victim = w.chance.choice(w.workers.ready or w.workers.alive)
            victim.kill()
            gone[victim.pid] = victim.killed_at or 0.0
            w.workers.start()
            return w.chance.uniform(1.0, 3.0)

        w.torment(kill, lambda: len(gone) >= kills and len(w.load.started) >= programs, in_flight, 60.0 + 3.0 * kills)
        return [
            *w.verdict(),
            at_least("programs started", len(w.load.started), programs),
            at_least("kills", len(gone), kills),
            *takeover(w, gone, 1 if scale > SHORT else 0),
            shown("deadlocks (retried)", server.logged("deadlock detected")),
            at_most("sessions left, ours", len(server.sessions()), 4),
        ]


def takeover(w: World, gone: dict[int, float], least: int) -> list[Figure]:
    """Until somebody else begins what the dead one was running: it must be missed first, and then rescued."""
    found = ledger.takeovers_s(ledger.read(w.folder), gone)
    return [at_least("tasks cut short", len(found), least), *spread("takeover of what it ran", found, most_p99=TAKEOVER_S)]
