"""How things are measured and shown."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence


def best_s(work: Callable[[], object], rounds: int = 7, at_least_s: float = 0.05) -> float:
    """Seconds for one call: the best of several rounds, each long enough for the clock to be
    trusted."""
    calls, took = 1, _many(work, 1)
    while took < at_least_s:
        calls = max(calls + 1, int(calls * min(at_least_s / max(took, 1e-9) * 1.2, 100)))
        took = _many(work, calls)
    return min(_many(work, calls) for _ in range(rounds)) / calls


def _many(work: Callable[[], object], calls: int) -> float:
    gc.collect()
    began = time.perf_counter()
    for _ in range(calls):
        work()
    return time.perf_counter() - began


def show_s(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:,.3g} {unit}"
    return f"{seconds * 1e9:,.0f} ns"


def row(what: str, ours: str, yardstick: str = "", ratio: str = "") -> None:
    print(f"  {what:<46} {ours:>16}   {yardstick:<44} {ratio:>8}".rstrip(), flush=True)


def timed(work: Callable[[], object]) -> float:
    """Seconds for one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def spread(times: Sequence[float]) -> str:
    """The median and the 99th percentile."""
    ordered = sorted(times)
    return (
        f"{show_s(ordered[len(ordered) // 2])}, p99 {show_s(ordered[int(len(ordered) * 0.99) - 1])}"
    )


def percentiles(times: Sequence[float]) -> str:
    """Three of them, each a time that was measured."""
    ordered = sorted(times)
    return ", ".join(
        f"p{of} {show_s(ordered[-(-len(ordered) * of // 100) - 1])}" for of in (50, 95, 99)
    )


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """In Markdown, to be kept in a document."""
    for line in (heads, ["---"] * len(heads), *lines):
        print(f"| {' | '.join(line)} |")
