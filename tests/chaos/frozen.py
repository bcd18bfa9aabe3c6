"""Workers are frozen for longer than their claims last, at any moment, and go on as if nothing had happened."""

from __future__ import annotations

import signal
import time

from tests.chaos.processes import DEAD_AFTER_S, LAPSED, LOST, Process
from tests.chaos.report import Figure, at_least, shown
from tests.chaos.server import own_server
from tests.chaos.world import world

WORKERS, IN_FLIGHT, AT_ONCE = 4, 80, 2


def scenario(seed: int, scale: float) -> list[Figure]:
    freezes, programs = max(2, round(20 * scale)), max(30, round(400 * scale))
    with own_server() as server, world(server.url, seed, programs) as w:
        w.workers.start(WORKERS)
        frozen, count = dict[Process, float](), [0]

        def strike() -> float:
            for process in [process for process, until in frozen.items() if until <= time.monotonic()]:
                process.send(signal.SIGCONT)
                del frozen[process]
            if len(frozen) < AT_ONCE and count[0] < freezes:
                victim = w.chance.choice([process for process in w.workers.alive if process not in frozen])
                victim.send(signal.SIGSTOP)
                frozen[victim] = time.monotonic() + DEAD_AFTER_S * w.chance.uniform(1.5, 3.0)
                count[0] += 1
            return w.chance.uniform(0.2, 1.5)

        done = lambda: count[0] >= freezes and not frozen and len(w.load.started) >= programs  # noqa: E731
        w.torment(strike, done, IN_FLIGHT, 60.0 + 8.0 * freezes)
        return [
            *w.verdict(exactly_once=False),
            at_least("freezes", count[0], freezes),
            at_least("fenced: claims that workers found lost", w.workers.said(LOST), 1),
            shown("workers that gave up by themselves", w.workers.said(LAPSED)),
        ]
