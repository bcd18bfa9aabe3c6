"""Workers are frozen for longer than their claims last, at any moment, and go on as if nothing had happened."""

from __future__ import annotations

import signal
import time

from tests.chaos.processes import DEAD_AFTER_S, LAPSED, LOST, Process
from tests.chaos.report import Figure, at_least, shown
from tests.chaos.server import own_server
from tests.chaos.world import SHORT, world

WORKERS, IN_FLIGHT = 4, 60


def scenario(seed: int, scale: float) -> list[Figure]:
    freezes, programs = max(2, round(20 * scale)), max(20, round(400 * scale))
    with own_server() as server, world(server.url, seed, programs) as w:
        w.workers.start(WORKERS if scale > SHORT else 2)
        frozen, count = dict[Process, float](), [0]

        def fenced() -> int:
            """A worker finds that claims have passed to others, or gives all of them up before it asks."""
            return w.workers.said(LOST) + w.workers.said(LAPSED)

        def enough() -> bool:
            """A freeze shows something only if its worker held something that others took."""
            return count[0] >= freezes and fenced() > 0

        def strike() -> float:
            for process in [process for process, until in frozen.items() if until <= time.monotonic()]:
                process.send(signal.SIGCONT)
                del frozen[process]
            if len(frozen) < len(w.workers.alive) / 2 and not enough():
                victim = w.chance.choice([process for process in w.workers.alive if process not in frozen])
                victim.send(signal.SIGSTOP)
                frozen[victim] = time.monotonic() + DEAD_AFTER_S * w.chance.uniform(1.5, 3.0)
                count[0] += 1
            return w.chance.uniform(0.2, 1.5)

        def done() -> bool:
            return enough() and not frozen and len(w.load.started) >= programs

        w.torment(strike, done, IN_FLIGHT, 60.0 + 8.0 * freezes)
        return [
            *w.verdict(exactly_once=False),
            at_least("freezes", count[0], freezes),
            at_least("fenced: claims found lost or given up", fenced(), 1),
            shown("… of these given up, each time all of a worker", w.workers.said(LAPSED)),
        ]
