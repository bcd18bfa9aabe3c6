"""Figures of a job, and tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.measure import show_s
from rhythm.record import Record


class Figure(Record):
    """One number of a job."""

    key: str  # as the scripts print it
    title: str
    unit: str  # "/s": more is better; "ms", "s", "MB" and "B": less is; "": a number of things
    drawn: bool = False  # in the picture

    @property
    def more_is_better(self) -> bool:
        return self.unit == "/s"

    def show(self, value: float) -> str:
        match self.unit:
            case "/s":
                return f"{value:,.0f}/s"
            case "ms":
                return show_s(value / 1e3)
            case "s":
                return show_s(value)
        return f"{value:{',.0f' if value >= 1000 else '.3g'}} {self.unit}".rstrip()

    def best(self, values: list[float]) -> float:
        return max(values) if self.more_is_better else min(values)

    def times_better(self, ours: float, theirs: float) -> float:
        return ours / theirs if self.more_is_better else theirs / ours


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """In Markdown."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, ["---"] * len(heads), *lines))
