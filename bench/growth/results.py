"""The results of a run, as they are stored: where, with which settings, and each case of each
row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.growth.measuring import Figures
from bench.servers import Store
from rhythm.record import Record


class Case(Record):
    """A row measures several: they differ in one thing."""

    title: str
    figures: Figures
    baseline: bool = False  # those after it are compared with it


class Sample(Record):
    """One case of one row on one database, or why it is missing."""

    row: str
    store: Store
    case: Case
    took_s: float
    problem: str = ""


class Results:
    """A run: what is known of it at its beginning, and the samples so far."""

    def __init__(self, about: dict[str, Any], samples: Sequence[Sample] = ()) -> None:
        self.about, self.samples = about, list(samples)

    def of(self, row: str) -> list[Sample]:
        return [sample for sample in self.samples if sample.row == row]

    def baseline(self, sample: Sample) -> Figures:
        """What a sample is compared with: figures of the last baseline before it, or none."""
        before = self.samples[: self.samples.index(sample)]
        found = [
            each.case.figures
            for each in before
            if (each.row, each.store) == (sample.row, sample.store) and each.case.baseline
        ]
        return {} if sample.case.baseline or not found else found[-1]

    def save(self, path: Path) -> None:
        samples = [{**vars(sample), "case": vars(sample.case)} for sample in self.samples]
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**self.about, "samples": samples}, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Results:
        about = json.loads(path.read_text(encoding="utf-8"))
        samples = about.pop("samples")
        return cls(about, [Sample(**{**each, "case": Case(**each["case"])}) for each in samples])
