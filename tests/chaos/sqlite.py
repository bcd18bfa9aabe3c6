"""Three processes on one SQLite file, killed at will: nobody meets a lock, nothing is lost, and what was acknowledged was synced."""

from __future__ import annotations

import re
import signal
import sqlite3
import tempfile
from pathlib import Path

from tests.chaos.kills import LASTING, takeover
from tests.chaos.report import Figure, at_least, none, shown
from tests.chaos.world import SHORT, world
from tests.support.debian import unpacked

WORKERS, IN_FLIGHT = 3, 40


def scenario(seed: int, scale: float) -> list[Figure]:
    return [*_kills(seed, scale), *_syncs(seed, scale)]


def _kills(seed: int, scale: float) -> list[Figure]:
    kills, programs = max(2, round(15 * scale)), max(30, round(500 * scale))
    with (
        tempfile.TemporaryDirectory(prefix="rhythm-chaos-") as folder,
        world(f"sqlite:///{folder}/rhythm.db", seed, programs, LASTING) as w,
    ):
        w.workers.start(WORKERS)
        gone = dict[int, float]()

        def kill() -> float:
            victim = w.chance.choice(w.workers.ready or w.workers.alive)
            victim.kill()
            gone[victim.pid] = victim.killed_at or 0.0
            w.workers.start()
            return w.chance.uniform(0.5, 2.0)

        w.torment(kill, lambda: len(gone) >= kills and len(w.load.started) >= programs, IN_FLIGHT, 60.0 + 3.0 * kills)
        verdict = w.verdict()
        with sqlite3.connect(f"{folder}/rhythm.db") as db:
            whole = [line for (line,) in db.execute("PRAGMA integrity_check") if line != "ok"]
        db.close()
        return [
            *verdict,
            at_least("kills", len(gone), kills),
            *takeover(w, gone, 1 if scale > SHORT else 0),
            none("`database is locked` in the logs", w.workers.said("locked")),
            none("damage (integrity_check)", whole),
        ]


def _syncs(seed: int, scale: float) -> list[Figure]:
    """One worker under strace: each group commit that was acknowledged was synced before."""
    if not (strace := unpacked("strace", "strace")):
        return [shown("syncs: not counted, there is no strace", "")]
    programs = max(10, round(100 * scale))
    with tempfile.TemporaryDirectory(prefix="rhythm-chaos-") as folder, world(f"sqlite:///{folder}/rhythm.db", seed, programs) as w:
        counted, traced = Path(folder) / "commits", Path(folder) / "strace"
        tracing = (str(strace), "-D", "-f", "-c", "-e", "trace=fsync,fdatasync", "-o", str(traced))
        [worker] = w.workers.start(settings={"RHYTHM_TEST_CHAOS_COMMITS": str(counted)}, before=tracing)
        w.torment(lambda: 1.0, lambda: len(w.load.started) >= programs, IN_FLIGHT, 60.0)
        w.load.settle(60.0)
        worker.send(signal.SIGTERM)
        worker.exit_s(10.0)
        commits = counted.stat().st_size
        return [at_least("group commits of one worker", commits, 1), at_least("… and its syncs", syncs(traced), commits)]


def syncs(traced: Path) -> int:
    """From the summary of strace: its fourth column counts the calls."""
    calls = re.findall(r"^\s*\S+\s+\S+\s+\S+\s+(\d+)\s+(?:\d+\s+)?f(?:data)?sync$", traced.read_text(), re.MULTILINE)
    return sum(int(count) for count in calls)
