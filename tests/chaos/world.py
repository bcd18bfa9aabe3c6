"""What every scenario has: a database, workers, a load, chance; and what is checked at the end of
each."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random

from rhythm.cli.output.progress import progress
from tests.chaos import ledger
from tests.chaos.load import Load
from tests.chaos.processes import Workers
from tests.chaos.report import Figure, none, shown
from tests.chaos.server import until

SHORT = 0.1  # scales below this are for the tests: fewer workers
CALM_S = 60.0  # within which everything must come to its end once there are no more faults


class World:
    def __init__(
        self, folder: Path, url: str, seed: int, distinct: int, settings: Mapping[str, str]
    ) -> None:
        self.folder, self.url, self.chance, self.began = (
            folder,
            url,
            Random(f"chaos {seed}"),
            time.monotonic(),
        )
        self.load = Load(url, seed, distinct)
        self.workers = Workers(folder, url, settings)

    def torment(
        self, faults: Callable[[], float], done: Callable[[], bool], in_flight: int, most_s: float
    ) -> None:
        """Keeps the load up and lets `faults` strike, which says after how many seconds it wants to
        again.

        Nothing strikes before all workers work: who kills workers that have not begun shows
        nothing.
        """
        until(lambda: len(self.workers.ready) == len(self.workers.alive) > 0, 60.0)
        began = time.monotonic()
        due = began + 0.5
        with progress("tormenting", int(most_s)) as tell:
            while not done() and time.monotonic() < began + most_s:
                self.load.feed(in_flight, 20)
                if time.monotonic() >= due:
                    due = time.monotonic() + faults()
                counts = f"{len(self.load.started):,} programs, {len(self.workers.all):,} processes"
                tell(int(time.monotonic() - began), int(most_s), f"{counts}, seconds")
                time.sleep(0.02)

    def verdict(self, excused: Callable[[ledger.Line], bool] | None = None) -> list[Figure]:
        """Calms down, and checks what must hold after every scenario. `excused`: bodies of
        committed tasks that are counted apart."""
        settled = self.load.settle(CALM_S)
        took_s = time.monotonic() - self.began
        late = self.workers.stop()
        lines = ledger.read(self.folder)
        bodies, tasks = sum(line.what == "began" for line in lines), len(ledger.begun(lines))
        again = ledger.again(lines, self.load.finished_at())
        apart = [line for line in again if excused and excused(line)]
        return [
            Figure("programs completed", len(self.load.started), "all must end", settled),
            shown("programs a second", len(self.load.started) / took_s),
            none("wrong results", self.load.wrong()),
            none("acknowledged starts and signals lost", self.load.lost()),
            none("committed tasks run again", [line for line in again if line not in apart]),
            shown("bodies for each task", bodies / max(1, tasks)),
            none("rules broken (doctor)", self.load.broken_rules()),
            none("bugs in the logs", self.workers.bugs()),
            none("workers that did not stop when told", [process.log()[-300:] for process in late]),
            *(
                [shown("… of a task that was committed, within an instant of a thaw", len(apart))]
                if excused
                else []
            ),
        ]


@contextmanager
def world(
    url: str, seed: int, distinct: int, settings: Mapping[str, str] | None = None
) -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="rhythm-chaos-") as folder:
        made = World(Path(folder), url, seed, distinct, settings or {})
        try:
            yield made
        finally:
            for process in made.workers.alive:
                process.kill()
            made.load.close()
