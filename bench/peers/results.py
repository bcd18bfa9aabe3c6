"""The results of a run, as they are stored: who, where, with which settings, and every figure of
every round."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import runs
from bench.figures import Figure
from bench.peers.engines import BY_NAME as ENGINES
from bench.peers.engines import Engine
from bench.peers.jobs import BY_NAME as JOBS
from bench.peers.jobs import Job
from bench.peers.running import Outcome
from bench.servers import Server
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
    about = runs.begun(postgres, rounds, scale)
    return Results({**about, "versions": {name: pins for name, pins in versions.items() if pins}})
