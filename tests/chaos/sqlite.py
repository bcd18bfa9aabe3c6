"""Three processes on one SQLite file, killed at will: nobody meets a lock, nothing is lost, and
what was acknowledged was synced."""

from __future__ import annotations

import re
import signal
import sqlite3
import tempfile
from pathlib import Path

from tests.chaos.kills import LASTING, Killer
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
        killer = Killer(w, WORKERS)

        def kill() -> float:
            killer.kill()
            return w.chance.uniform(0.5, 2.0)

        w.torment(
            kill,
            lambda: killer.count >= kills and len(w.load.started) >= programs,
            IN_FLIGHT,
            60.0 + 3.0 * kills,
        )
        verdict = w.verdict()
        with sqlite3.connect(f"{folder}/rhythm.db") as db:
            whole = [line for (line,) in db.execute("PRAGMA integrity_check") if line != "ok"]
        db.close()
        return [
            *verdict,
            *killer.figures(kills, scale > SHORT),
            none("`database is locked` in the logs", w.workers.said("locked")),
            none("damage (integrity_check)", whole),
        ]


def _syncs(seed: int, scale: float) -> list[Figure]:
    """One worker under strace: each group commit that was acknowledged was synced before, by the
    thread that committed it."""
    strace = unpacked("strace", "strace")
    assert strace, "syncs are counted with strace, a package of Debian: install it"
    programs = max(10, round(100 * scale))
    with (
        tempfile.TemporaryDirectory(prefix="rhythm-chaos-") as folder,
        world(f"sqlite:///{folder}/rhythm.db", seed, programs) as w,
    ):
        counted, traced = Path(folder) / "commits", Path(folder) / "strace"
        tracing = (
            str(strace),
            "-D",
            "-f",
            "-y",
            "-e",
            "trace=fsync,fdatasync,write",
            "-o",
            str(traced),
        )
        [worker] = w.workers.start(
            settings={"RHYTHM_TEST_CHAOS_COMMITS": str(counted)}, before=tracing
        )
        w.torment(lambda: 1.0, lambda: len(w.load.started) >= programs, IN_FLIGHT, 60.0)
        w.load.settle(60.0)
        worker.send(signal.SIGTERM)
        worker.exit_s(10.0)
        seen = Syncs(traced.read_text(errors="replace"), counted.name)
        return [
            at_least("group commits of one worker, acknowledged", seen.acknowledged, 1),
            none("… without a sync of the log in between, by its thread", seen.unsynced),
            shown("syncs of the log by these commits", seen.within),
            shown("… by claims, beats and others, between them", seen.between),
            shown("syncs of the database file (checkpoints)", seen.checkpoints),
        ]


class Syncs:
    """What strace saw. A thread marks with `<` where its group commit begins and with `>` that it
    was acknowledged; a sync of the log by this thread in between is the commit's own, or that of a
    checkpoint it made, whose sync of the database file is counted apart."""

    def __init__(self, trace: str, marks: str) -> None:
        self.acknowledged = self.unsynced = self.within = self.between = self.checkpoints = 0
        inside = dict[str, int]()  # of the threads within a commit: how many syncs they have seen
        for thread, call, file, mark in re.findall(
            r"^(\d+) +(\w+)\(\d+<([^>]*)>(?:, \"(.)\", 1)?", trace, re.MULTILINE
        ):
            if file.endswith(f"/{marks}") and mark == "<":
                inside[thread] = 0
            elif file.endswith(f"/{marks}"):
                self.acknowledged += 1
                self.unsynced += inside.pop(thread) == 0
            elif call != "write" and file.endswith("-wal"):
                self.within += thread in inside
                self.between += thread not in inside
                inside |= {thread: inside[thread] + 1} if thread in inside else {}
            elif call != "write" and file.endswith(".db"):
                self.checkpoints += 1
