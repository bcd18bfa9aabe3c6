"""Workers are told to stop under load, again and again, with more or less time to do so: once,
twice, while there is no database, and before they have come to work. Some are supervisors of two
processes."""

from __future__ import annotations

import signal
import threading
import time

from rhythm.cli.stopping import GIVE_BACK_S
from tests.chaos import ledger
from tests.chaos.processes import PATIENT, Process
from tests.chaos.report import Figure, at_least, none, shown, spread
from tests.chaos.server import Server, own_server
from tests.chaos.world import SHORT, World, world

# two cores: what starts, and what stops in its second, needs some of them
WORKERS, IN_FLIGHT = 3, 20
GRACES_S = (0.0, 1.0, 5.0)
POLL_S = 1.0  # as in production
STARTING_S = 1.5  # within which some are told to stop
LONG = """
workflow long() {
  for (i in range(2)) {
    await task("long", { seconds: 1.5 })
  }
}
"""


class Farewell:
    """A worker that was told to stop; how long it takes is measured aside."""

    def __init__(self, process: Process, grace_s: float, answers: bool, twice: bool) -> None:
        self.process, self.answers, self.twice = process, answers, twice
        self.pids, self.starting = process.pids(), not process.worker_names()
        self.allowed_s = (min(0.3, grace_s) if twice else grace_s) + 1.0
        self.took_s, self.gone_at = 0.0, 0.0
        process.send(signal.SIGTERM)
        self.thread = threading.Thread(target=self._wait)
        self.thread.start()

    @property
    def out_of_time(self) -> bool:
        """It went although it may not have given back everything: on a machine this busy it could
        not."""
        return self.took_s >= self.allowed_s - 1.0 + GIVE_BACK_S

    def _wait(self) -> None:
        began = time.monotonic()
        if self.twice and self.process.exit_s(0.3) is None:
            self.process.send(signal.SIGTERM)
        if self.process.exit_s(20.0) is None:
            self.process.kill()
        self.gone_at = time.monotonic()
        self.took_s = self.gone_at - began


class Storm:
    def __init__(self, w: World, server: Server, count: int) -> None:
        self.w, self.server, self.count = w, server, count
        self.graces = dict[Process, float]()
        self.hasty = dict[Process, float]()  # to be told while they start, and when
        self.supervisors = set[Process]()
        self.farewells = list[Farewell]()
        self.left = list[tuple[Farewell, str]]()  # claims of workers that have gone
        self.checked = set[Farewell]()
        self.outages = 0

    def start(self) -> None:
        while len(self.w.workers.alive) < WORKERS:
            grace_s = self.w.chance.choice(GRACES_S)
            several = self.w.chance.random() < 0.2
            options = ("--processes", "2") if several else ()
            [process] = self.w.workers.start(
                settings={"RHYTHM_SHUTDOWN_GRACE": f"{grace_s:.0f}"}, options=options
            )
            self.graces[process] = grace_s
            self.supervisors |= {process} if several else set()
            first = not any(farewell.starting for farewell in self.farewells) and not self.hasty
            if self.farewells and (first or self.w.chance.random() < 0.25):
                self.hasty[process] = process.began + (
                    0.2 if first else self.w.chance.uniform(0.0, STARTING_S)
                )

    def strike(self) -> float:
        self.check()
        for process in [process for process, at in self.hasty.items() if at <= time.monotonic()]:
            del self.hasty[process]
            self.tell(process, True)
        told = {farewell.process for farewell in self.farewells}
        working = time.monotonic() - (3.0 if self.count > 20 else 1.0)
        ready = [
            process
            for process in self.w.workers.ready
            if process not in told | set(self.hasty) and process.began < working
        ]
        if (
            ready
            and len(self.farewells) < self.count
            and sum(not farewell.gone_at for farewell in self.farewells) < 2
        ):
            if len(self.farewells) >= (self.outages + 1) * max(4, self.count // 3):
                self.without_database(ready[:2])
            else:
                self.tell(self.w.chance.choice(ready), True)
        self.start()
        return 0.1 + self.w.chance.random() * 0.8

    def tell(self, process: Process, answers: bool) -> None:
        self.farewells.append(
            Farewell(process, self.graces[process], answers, self.w.chance.random() < 0.1)
        )

    def without_database(self, processes: list[Process]) -> None:
        self.outages += 1
        for farewell in self.farewells:
            # else it may have nobody to give its claims to
            farewell.answers = farewell.answers and bool(farewell.gone_at)
        self.server.stop("immediate")
        for process in processes:
            self.tell(process, False)
        for farewell in self.farewells[-len(processes) :]:
            farewell.thread.join()
        self.server.start()

    def check(self) -> None:
        """What a worker has claimed must be free by the time it has gone."""
        for farewell in self.farewells:
            if farewell.gone_at and farewell not in self.checked:
                self.checked.add(farewell)
                for name in farewell.process.worker_names() if farewell.answers else ():
                    held = self.w.load.query(f"SELECT id FROM ready WHERE claimed_by = '{name}'")
                    self.left += [
                        (farewell, f"{id} of {name}, {self.described(farewell)}") for (id,) in held
                    ]

    def described(self, farewell: Farewell) -> str:
        what = "starting " * farewell.starting + "supervisor" * (
            farewell.process in self.supervisors
        )
        return f"{farewell.took_s:.1f} of {farewell.allowed_s:.1f} s {what}"

    @property
    def done(self) -> bool:
        return (
            not self.hasty
            and len(self.farewells) >= self.count
            and all(farewell.gone_at for farewell in self.farewells)
        )


def scenario(seed: int, scale: float) -> list[Figure]:
    count, programs = max(6, round(200 * scale)), max(20, round(400 * scale))
    with (
        own_server() as server,
        world(
            server.url, seed, programs, {**PATIENT, "RHYTHM_WORKER_POLL_INTERVAL": str(POLL_S)}
        ) as w,
    ):
        storm = Storm(w, server, count)
        storm.start()
        w.load.start("long", LONG, [None] * max(4, round(40 * scale)))
        w.torment(storm.strike, lambda: storm.done, IN_FLIGHT, 60.0 + 2.0 * count)
        for farewell in storm.farewells:
            farewell.thread.join()
        storm.check()
        verdict = w.verdict()
        answered = {
            pid: f.gone_at for f in storm.farewells if f.answers and not f.twice for pid in f.pids
        }
        began_s = ledger.takeovers_s(ledger.read(w.folder), answered)
        slack_s = 0.0 if scale > SHORT else 10.0  # among other tests the machine is busy
        return [
            *verdict,
            at_least("told to stop", len(storm.farewells), count),
            shown("… of these twice", sum(farewell.twice for farewell in storm.farewells)),
            at_least(
                "… of these while they started",
                sum(farewell.starting for farewell in storm.farewells),
                1,
            ),
            at_least(
                "… of these supervisors of two",
                sum(farewell.process in storm.supervisors for farewell in storm.farewells),
                1,
            ),
            shown(
                "… of these while the database was down",
                sum(not farewell.answers for farewell in storm.farewells),
            ),
            none(
                "later than its grace and a second",
                [storm.described(f) for f in storm.farewells if f.took_s > f.allowed_s + slack_s],
            ),
            none(
                "claims left",
                [what for farewell, what in storm.left if not (slack_s and farewell.out_of_time)],
            ),
            *spread(
                "what was given back began elsewhere", began_s, POLL_S + slack_s, POLL_S + slack_s
            ),
        ]
