"""Nobody says that there is work (`notify=off`): whoever looks finds it, about a poll interval
later."""

from __future__ import annotations

import time

from tests.chaos.processes import POLL_S
from tests.chaos.report import Figure, at_least, none, spread
from tests.chaos.server import own_server
from tests.chaos.world import SHORT, World, world

WORKERS, IN_FLIGHT = 2, 30
PROBE = 'workflow probe() {\n  await task("add", { a: 1, b: 2 })\n}\n'


def scenario(seed: int, scale: float) -> list[Figure]:
    programs, probes = max(20, round(200 * scale)), max(8, round(60 * scale))
    with (
        own_server("-c log_min_messages=log -c log_statement=all") as server,
        world(f"{server.url}&notify=off", seed, programs) as w,
    ):
        w.workers.start(WORKERS)
        w.torment(lambda: 1.0, lambda: len(w.load.started) >= programs, IN_FLIGHT, 60.0)
        w.load.settle(60.0)
        latency_s = probed(w, probes)
        slack_s = 0.25 if scale > SHORT else 10.0  # among other tests the machine is busy
        return [
            *w.verdict(),
            none(
                "told or listened to (NOTIFY, LISTEN), as the server saw it",
                server.logged("pg_notify(") + server.logged("LISTEN "),
            ),
            at_least("started one by one while all were idle", len(latency_s), probes),
            *spread(
                f"from its start to its end, polled every {POLL_S:g} s",
                latency_s,
                POLL_S + slack_s,
                2 * POLL_S + slack_s,
            ),
        ]


def probed(w: World, count: int) -> list[float]:
    """Each is started at some moment between two looks."""
    for _ in range(count):
        time.sleep(w.chance.uniform(POLL_S, 2 * POLL_S))
        w.load.start("probe", PROBE, [None])
    w.load.settle(30.0)
    took = w.load.query(
        "SELECT finished_at - created_at FROM executions WHERE name = 'probe' AND "
        "finished_at IS NOT NULL"
    )
    return [us / 1e6 for (us,) in took]
