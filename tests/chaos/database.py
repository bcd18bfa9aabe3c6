"""The database is stopped in the middle of everything and comes back; single sessions are ended all
the time.

While it is down clients insist, a worker is killed, and another one is started that finds no
database.
"""

from __future__ import annotations

import time

from tests.chaos.report import Figure, at_least, at_most, shown, spread
from tests.chaos.server import Server, own_server, until
from tests.chaos.world import SHORT, World, world

WORKERS, IN_FLIGHT = 4, 60
SESSIONS = 8  # that one worker may have open
LONGEST_DOWN_S = 5.0


def scenario(seed: int, scale: float) -> list[Figure]:
    stops, programs = max(1, round(8 * scale)), max(20, round(400 * scale))
    with own_server() as server, world(server.url, seed, programs) as w:
        w.workers.start(WORKERS if scale > SHORT else 2)
        progress_s, ended = list[float](), [0]

        def strike() -> float:
            if (len(progress_s) < stops and w.chance.random() < 0.15) or ended[0] > 8 * len(
                progress_s
            ) + 4:
                progress_s.append(restart(server, w, LONGEST_DOWN_S if scale > SHORT else 1.0))
                return 1.0
            ended[0] += server.end_session(w.chance)
            return w.chance.random() * 0.5

        w.torment(
            strike,
            lambda: len(progress_s) >= stops and len(w.load.started) >= programs,
            IN_FLIGHT,
            60.0 + 20.0 * stops,
        )
        settled = w.load.settle(60.0)
        sessions = len(server.sessions())
        return [
            *w.verdict(),
            at_least("stops of the database", len(progress_s), stops),
            at_least("sessions ended", ended[0], stops),
            at_least("calls of the client without an answer", w.load.unanswered, 1),
            *spread(
                "first progress once it accepts connections",
                progress_s,
                most_p99=3.0 if scale > SHORT else 15.0,
            ),
            shown("calm again", str(settled)),
            at_most("sessions while all is calm", sessions, (WORKERS + 1) * SESSIONS),
            at_most("sessions left, ours", len(server.sessions()), 4),
        ]


def restart(server: Server, w: World, longest_s: float) -> float:
    """Stops and starts it; how long after it accepts connections the first turn was committed."""
    server.stop("immediate")
    back = time.monotonic() + w.chance.random() * longest_s
    w.chance.choice(w.workers.alive).kill()
    w.workers.start()
    while time.monotonic() < back:
        w.load.feed(IN_FLIGHT, 0)
        time.sleep(0.05)
    server.start()
    accepts = time.monotonic()
    before = server.rows("SELECT count(*) FROM rhythm.history")
    until(lambda: server.rows("SELECT count(*) FROM rhythm.history") != before, 30.0, 0.01)
    return time.monotonic() - accepts
