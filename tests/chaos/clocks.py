"""Workers whose clocks are hours ahead or behind: only the database's counts.

libfaketime makes threads slow to take turns: the interpreter's own lock is waited for with a time
limit, which goes through it. A thread waits up to 0.3 s for another one that computes, where 0.02 s
would do; what a wait for time itself lasts does not change.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

from tests.chaos import ledger
from tests.chaos.processes import LOST
from tests.chaos.report import Figure, at_least, none, spread
from tests.chaos.server import own_server
from tests.chaos.world import SHORT, world
from tests.support.debian import unpacked

IN_FLIGHT = 60
SKEWS = ("+3h", "-1h", "+0", "-1h")
# far less than the clocks are off
QUICK = {"RHYTHM_HEARTBEAT_INTERVAL": "1", "RHYTHM_DEAD_AFTER": "5", "RHYTHM_CLAIM_TTL": "60"}


ASLEEP = """
workflow asleep(inputs) {
  await sleep(inputs.seconds)
}
"""


def library() -> str:
    found = unpacked("libfaketime", "libfaketime.so.1")
    assert found, (
        "the clocks of processes are changed with libfaketime, a package of Debian: install it"
    )
    return str(found)


def skewed(skew: str) -> dict[str, str]:
    return {
        **QUICK,
        "LD_PRELOAD": library(),
        "FAKETIME": skew,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


def scenario(seed: int, scale: float) -> list[Figure]:
    programs = max(20, round(300 * scale))
    with own_server() as server, world(server.url, seed, programs) as w:
        for skew in SKEWS if scale > SHORT else SKEWS[:2]:
            w.workers.start(settings=skewed(skew))
        delays = {
            id: 1.0 + n / programs for n, id in enumerate(f"asleep-{n}" for n in range(programs))
        }
        w.load.start("asleep", ASLEEP, [{"seconds": seconds} for seconds in delays.values()])
        w.torment(lambda: 1.0, lambda: len(w.load.started) >= 2 * programs, IN_FLIGHT, 120.0)
        verdict = w.verdict()
        turns = w.load.query(
            "SELECT execution_id, max(at) - min(at) FROM history WHERE execution_id >= "
            "'asleep-' AND execution_id < 'asleep.' GROUP BY 1"
        )
        late_s = [slept_us / 1e6 - delays[id] for id, slept_us in turns]
        return [
            *verdict,
            at_least("processes with a clock that is hours off", len(off(w.folder)), 2),
            none("timers early", [late for late in late_s if late < 0]),
            *spread("timers late", late_s, most_p99=4.0),
            none("claims stolen", w.workers.said(LOST)),
        ]


def off(folder: Path) -> list[float]:
    """By how many hours the clocks of the processes were wrong, as they wrote it down
    themselves."""
    offset, lines = ledger.offset_us(), ledger.read(folder)
    wrong = {
        pid: median(line.wall_us - line.at_us - offset for line in lines if line.pid == pid)
        for pid in {line.pid for line in lines}
    }
    return [us / 3.6e9 for us in wrong.values() if abs(us) > 1.8e9]
