"""`python -m tests.chaos [SCENARIO …] [--seed N] [--minutes M]`: real processes, real databases,
real faults.

Each scenario prints its figures beside what they must be. The exit code is 1 if one of them is not
as it must be.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import time
import traceback

import pytest

from tests.chaos.report import Figure

SCENARIOS = (
    "kills",
    "database",
    "frozen",
    "cut",
    "clocks",
    "storm",
    "poison",
    "sqlite",
    "sleeping",
    "failover",
    "polling",
    "people",
)
FULL_MINUTES = 10.0
TOTALS = (
    "programs completed",
    "kills",
    "fenced",
    "ambiguous",
    "wrong results",
    "committed tasks run again",
    "rules broken",
)


def run(name: str, seed: int, scale: float) -> list[Figure]:
    """The figures of one scenario, by the name of its module; `scale` is 1 for the full size."""
    figures: list[Figure] = importlib.import_module(name).scenario(seed, scale)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description="Torments workers and databases."
    )
    parser.add_argument("scenarios", nargs="*", choices=[*SCENARIOS, []], default=[])
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1_000_000 % 1_000_000)
    parser.add_argument(
        "--minutes",
        type=float,
        default=FULL_MINUTES,
        help="about how long all scenarios together may take",
    )
    given = parser.parse_args()
    where = f"seed {given.seed}, commit {_commit()}"
    print(where, flush=True)
    figures = [
        figure
        for name in given.scenarios or SCENARIOS
        for figure in show(f"tests.chaos.{name}", given.seed, given.minutes / FULL_MINUTES)
    ]
    good = all(figure.good for figure in figures)
    print(f"\nin all: {', '.join(f'{what} {_total(what, figures):,}' for what in TOTALS)}")
    print(f"{where}: {'all as it must be' if good else 'NOT ALL AS IT MUST BE'}")
    return 0 if good else 1


def _total(what: str, figures: list[Figure]) -> int:
    return sum(
        int(figure.value)
        for figure in figures
        if figure.name.startswith(what) and not isinstance(figure.value, str)
    )


def show(name: str, seed: int, scale: float) -> list[Figure]:
    began = time.monotonic()
    try:
        figures = run(name, seed, scale)
    except (Exception, pytest.skip.Exception):
        traceback.print_exc()
        figures = [Figure("the scenario itself", "failed", "", False)]
    print(f"{name.rpartition('.')[2]}: {time.monotonic() - began:.0f} s")
    for figure in figures:
        print(f"  {figure.line()}")
    sys.stdout.flush()
    return figures


def _commit() -> str:
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
