"""Workers are frozen at any moment, for longer than it takes to be taken for dead and than their
claims last, and then go on as if nothing had happened: others have taken over meanwhile, and are
not held up by whatever the frozen one had begun.

Between the last look whether a body may begin and its first line a process can be stopped: what
began again within an instant of a thaw is counted apart. Nothing else may begin again.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.chaos import ledger
from tests.chaos.processes import DEAD_AFTER_S, LAPSED, LOST, Process
from tests.chaos.report import Figure, at_least, at_most, shown
from tests.chaos.server import own_server
from tests.chaos.world import SHORT, World, world

WORKERS, IN_FLIGHT = 4, 60
CLAIM_TTL_S = 3.0
LONGER_THAN_S = max(CLAIM_TTL_S, DEAD_AFTER_S)
INSTANT_US = 50_000  # after a thaw
LONGEST_GAP_S = 12.0  # the server ends a session that is silent within a transaction after 10 s


class Freeze(NamedTuple):
    pid: int
    began: float
    ended: float


class Freezer:
    def __init__(self, w: World, count: int, longest: float) -> None:
        self.w, self.count, self.longest = w, count, longest
        self.frozen = dict[Process, tuple[float, float]]()  # since when, and until when at least
        self.over = list[Freeze]()

    @property
    def fenced(self) -> int:
        """A worker finds that claims have passed to others, or gives all of them up before it
        asks."""
        return self.w.workers.said(LOST) + self.w.workers.said(LAPSED)

    @property
    def enough(self) -> bool:
        """A freeze shows something only if its worker held something that others took."""
        return len(self.over) + len(self.frozen) >= self.count and self.fenced > 0

    def strike(self) -> float:
        thawed = [
            process for process, (_, until) in self.frozen.items() if until <= time.monotonic()
        ]
        for process in thawed:
            self.over.append(Freeze(process.pid, self.frozen.pop(process)[0], time.monotonic()))
            process.send(signal.SIGCONT)
        if thawed:
            return 0.5  # in which they find out what they have lost
        if len(self.frozen) < len(self.w.workers.alive) / 2 and not self.enough:
            victim = self.w.chance.choice(
                [process for process in self.w.workers.alive if process not in self.frozen]
            )
            victim.send(signal.SIGSTOP)
            self.frozen[victim] = (
                time.monotonic(),
                time.monotonic() + LONGER_THAN_S * self.w.chance.uniform(1.2, self.longest),
            )
        return self.w.chance.uniform(0.2, 1.0)

    def just_thawed(self, line: ledger.Line) -> bool:
        return any(
            line.pid == freeze.pid and 0 <= line.at_us - freeze.ended * 1e6 <= INSTANT_US
            for freeze in self.over
        )


def scenario(seed: int, scale: float) -> list[Figure]:
    freezes, programs = max(1, round(20 * scale)), max(20, round(400 * scale))
    with (
        own_server() as server,
        world(server.url, seed, programs, {"RHYTHM_CLAIM_TTL": str(CLAIM_TTL_S)}) as w,
    ):
        w.workers.start(WORKERS if scale > SHORT else 2)
        freezer = Freezer(w, freezes, 2.5 if scale > SHORT else 1.3)
        w.torment(
            freezer.strike,
            lambda: freezer.enough and not freezer.frozen and len(w.load.started) >= programs,
            IN_FLIGHT,
            60.0 + 8.0 * freezes,
        )
        return [
            *w.verdict(freezer.just_thawed),
            at_least("freezes", len(freezer.over), freezes),
            at_least(
                "shortest freeze, s",
                min(freeze.ended - freeze.began for freeze in freezer.over),
                LONGER_THAN_S,
            ),
            at_least("fenced: claims found lost or given up", freezer.fenced, 1),
            shown("… of these given up, each time all of a worker", w.workers.said(LAPSED)),
            *progress(w, freezer.over),
        ]


def progress(w: World, freezes: Sequence[Freeze]) -> list[Figure]:
    """What the others did while somebody was frozen."""
    offset = ledger.offset_us()

    def during(freeze: Freeze, times: list[int]) -> list[int]:
        return [at for at in times if freeze.began * 1e6 <= at <= freeze.ended * 1e6]

    turns = sorted(at - offset for (at,) in w.load.query("SELECT at FROM history"))
    ends = [
        at - offset
        for (at,) in w.load.query("SELECT finished_at FROM executions WHERE parent_id IS NULL")
    ]
    gaps_us = [
        later - earlier
        for freeze in freezes
        for bounds in [
            [round(freeze.began * 1e6), *during(freeze, turns), round(freeze.ended * 1e6)]
        ]
        for earlier, later in pairwise(bounds)
    ]
    done = [len(during(freeze, ends)) for freeze in freezes]
    return [
        at_least("programs completed by others during a freeze, mean", sum(done) / len(done), 1.0),
        shown("… at worst", min(done)),
        at_most(
            "longest time without any commit in a freeze, s", max(gaps_us) / 1e6, LONGEST_GAP_S
        ),
    ]
