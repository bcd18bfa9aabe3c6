"""Figures: what a scenario has seen, beside what it must see. A run counts only if the faults
happened, so these are figures too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Figure(NamedTuple):
    name: str
    value: float | str
    must: str = ""  # for people
    good: bool = True

    def line(self) -> str:
        value = (
            self.value
            if isinstance(self.value, str)
            else f"{self.value:,.2f}"
            if isinstance(self.value, float)
            else f"{self.value:,}"
        )
        return (
            f"{self.name:<44} {value:>12}   "
            f"{self.must:<14}{'' if self.good else '  <-- NOT AS IT MUST BE'}"
        )


def shown(name: str, value: float | str) -> Figure:
    """It must be nothing in particular, and says so."""
    return Figure(name, value, "informative")


def none(name: str, found: int | Sequence[object]) -> Figure:
    """Nothing of this kind may have happened; the first things found are told."""
    count = found if isinstance(found, int) else len(found)
    what = (
        ""
        if isinstance(found, int) or not found
        else f" e.g. {'; '.join(map(str, found[:3]))[:600]}"
    )
    return Figure(name + what, count, "must be 0", count == 0)


def at_least(name: str, value: float, least: float) -> Figure:
    return Figure(name, value, f"at least {least:,}", value >= least)


def at_most(name: str, value: float, most: float) -> Figure:
    return Figure(name, value, f"at most {most:,}", value <= most)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def spread(
    name: str, values: Sequence[float], most_p50: float | None = None, most_p99: float | None = None
) -> list[Figure]:
    """The middle and the worst of many measurements, in seconds."""
    limits = ((f"{name}, p50 s ({len(values)})", 0.5, most_p50), (f"{name}, p99 s", 0.99, most_p99))
    found = [(what, percentile(values, share), most) for what, share, most in limits]
    return [
        shown(what, value) if most is None else at_most(what, value, most)
        for what, value, most in found
    ]
