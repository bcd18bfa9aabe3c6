"""The connection breaks at a commit: before the server has it, or after, when nobody can tell; or
nothing comes back for a while."""

from __future__ import annotations

from tests.chaos.processes import LOST
from tests.chaos.proxy import Proxy
from tests.chaos.report import Figure, at_least, shown
from tests.chaos.server import own_server
from tests.chaos.world import SHORT, world

WORKERS, IN_FLIGHT = 4, 60


def scenario(seed: int, scale: float) -> list[Figure]:
    cuts, programs = max(4, round(100 * scale)), max(20, round(400 * scale))
    with (
        own_server() as server,
        world(server.url, seed, programs) as w,
        Proxy(f"{server.folder}/.s.PGSQL.5432", w.chance) as proxy,
    ):
        w.workers.url = proxy.url
        often = 1 if scale > SHORT else 4
        proxy.chances |= {
            "cut before": 0.02 * often,
            "cut after": 0.02 * often,
            "black hole": 0.003 * often,
            "byte by byte": 0.02 * often,
        }
        w.workers.start(WORKERS if scale > SHORT else 2)

        def enough() -> bool:
            each = min(proxy.met["cut before"], proxy.met["cut after"])
            return (
                each >= cuts / 2
                and proxy.met["black hole"] >= 1
                and len(w.load.started) >= programs
            )

        w.torment(lambda: 1.0, enough, IN_FLIGHT, 60.0 + 1.0 * cuts)
        proxy.calm()
        return [
            *w.verdict(),
            shown("commits that went through the proxy", proxy.met["commits"]),
            at_least("cut before the commit was passed on", proxy.met["cut before"], cuts / 2),
            at_least("ambiguous: cut before the answer was", proxy.met["cut after"], cuts / 2),
            at_least("black holes", proxy.met["black hole"], 1),
            at_least("passed on byte by byte", proxy.met["byte by byte"], 1),
            shown("claims that workers found lost", w.workers.said(LOST)),
        ]
