"""The primary is killed and its synchronous standby takes its place: worker processes and clients
go on by a URL that names both."""

from __future__ import annotations

import time

from tests.chaos.report import Figure, at_least, spread
from tests.chaos.server import until
from tests.chaos.world import SHORT, world
from tests.support.failover import Pair, pair

WORKERS, IN_FLIGHT = 3, 40


def scenario(seed: int, scale: float) -> list[Figure]:
    """A pair can be used once: several follow each other, and their figures are those of the last,
    but for the times."""
    failovers, progress_s = max(1, round(3 * scale)), list[float]()
    for n in range(failovers):
        figures = [*_once(seed + n, scale, progress_s)]
        if not all(figure.good for figure in figures):
            return figures
    limit_s = 5.0 if scale > SHORT else 15.0
    return [
        *figures,
        at_least("failovers, all with the figures above good", len(progress_s), failovers),
        *spread("first progress since it was told to take over", progress_s, most_p99=limit_s),
    ]


def _once(seed: int, scale: float, progress_s: list[float]) -> list[Figure]:
    programs = max(20, round(150 * scale))
    with pair() as servers, world(servers.url, seed, programs) as w:
        w.workers.start(WORKERS if scale > SHORT else 2)
        acknowledged = [0]

        def strike() -> float:
            if not acknowledged[0] and len(w.load.started) >= programs / 2:
                acknowledged[0] = len(w.load.started)
                progress_s.append(_fail_over(servers))
            return 0.1

        w.torment(
            strike, lambda: acknowledged[0] > 0 and len(w.load.started) >= programs, IN_FLIGHT, 90.0
        )
        return [
            *w.verdict(),
            at_least("acknowledged starts when the primary was killed", acknowledged[0], 1),
            at_least("calls of the client without an answer", w.load.unanswered, 1),
        ]


def _fail_over(servers: Pair) -> float:
    """How long after the standby was told to take over the first turn was committed there: all
    clocks are this machine's."""
    servers.lose_the_primary()
    told_us, turn = time.time_ns() // 1000, list[int | None]()
    servers.promote()

    def first_turn() -> int | None:
        [(at_us,)] = servers.rows(
            servers.standby, f"SELECT min(at) FROM rhythm.history WHERE at > {told_us}"
        )
        turn[:] = [at_us]
        return turn[0]

    until(first_turn, 60.0, 0.02)
    return ((turn[0] or float("inf")) - told_us) / 1e6
