"""The results of a run, as they are stored: who, where, with which settings, and every figure of
every round."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.peers.engines import BY_NAME as ENGINES
from bench.peers.engines import Engine
from bench.peers.jobs import BY_NAME as JOBS
from bench.peers.jobs import Figure, Job
from bench.peers.places import SETTINGS, Server
from bench.peers.running import Outcome
from rhythm.record import Record


class Cell(Record):
    """One round of one job of one engine."""

    job: str
    engine: str
    round: int
    outcome: Outcome


class Results:
    """A run: what is known of it at its beginning, and the cells so far."""

    def __init__(self, about: dict[str, Any], cells: Sequence[Cell] = ()) -> None:
        self.about, self.cells = about, list(cells)

    def jobs(self) -> list[Job]:
        return [JOBS[name] for name in dict.fromkeys(cell.job for cell in self.cells)]

    def engines(self, job: Job) -> list[Engine]:
        """Who had a part in a job, in the order of the tables."""
        names = {cell.engine for cell in self.cells if cell.job == job.name}
        return [engine for name, engine in ENGINES.items() if name in names]

    def best(self, job: Job, engine: Engine, figure: Figure) -> float | None:
        """The best of all rounds: what else the machine did is nobody's figure."""
        values = [
            outcome.figures[figure.key]
            for outcome in self._outcomes(job, engine)
            if figure.key in outcome.figures
        ]
        return figure.best(values) if values else None

    def settings(self, job: Job, engine: Engine) -> str:
        return next((each.settings for each in self._outcomes(job, engine)), "")

    def problem(self, job: Job, engine: Engine) -> str:
        """Why there is no figure at all, or fewer rounds than others have."""
        return next((each.problem for each in self._outcomes(job, engine) if each.problem), "")

    def _outcomes(self, job: Job, engine: Engine) -> list[Outcome]:
        return [
            cell.outcome
            for cell in self.cells
            if (cell.job, cell.engine) == (job.name, engine.name)
        ]

    def save(self, path: Path) -> None:
        cells = [{**vars(cell), "outcome": vars(cell.outcome)} for cell in self.cells]
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**self.about, "cells": cells}, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Results:
        about = json.loads(path.read_text(encoding="utf-8"))
        cells = about.pop("cells")
        made = [Cell(**{**cell, "outcome": Outcome(**cell["outcome"])}) for cell in cells]
        return cls(about, made)


def begun(engines: Sequence[Engine], postgres: Server, rounds: int, scale: float) -> Results:
    """A run that begins now, on this machine."""
    versions = {engine.name: [*engine.packages, *engine.npm] for engine in engines}
    return Results(
        {
            "commit": _commit(),
            "began": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": {
                "cores": os.cpu_count(),
                "system": f"{platform.system()} {platform.machine()}",
                "python": platform.python_version(),
                "postgresql": postgres.version,
            },
            "settings": SETTINGS,
            "rounds": rounds,
            "scale": scale,
            "load": {"begin": load()},
            "versions": {name: pins for name, pins in versions.items() if pins},
        }
    )


def _commit() -> str:
    """Which Rhythm it is; empty outside of a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=10", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def load() -> float:
    """How much else goes on: figures of a busy machine are to be read as ratios."""
    return round(os.getloadavg()[0], 1) if sys.platform != "win32" else 0.0
