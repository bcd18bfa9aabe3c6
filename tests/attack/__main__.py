"""`python -m tests.attack [SCENARIO …] [--seed N] [--scale S]`: what people try who may do
something, and want more.

Each scenario prints its figures beside what they must be. The exit code is 1 if one of them is not
as it must be.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.chaos.__main__ import show

SCENARIOS = ("four_eyes", "audit", "bombs", "server_load", "terminal")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.attack", description="Attacks Rhythm as its users could."
    )
    parser.add_argument("scenarios", nargs="*", choices=[*SCENARIOS, []], default=[])
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1_000_000 % 1_000_000)
    parser.add_argument("--scale", type=float, default=1.0, help="of the full size, such as 0.1")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    figures = [
        figure
        for name in given.scenarios or SCENARIOS
        for figure in show(f"tests.attack.{name}", given.seed, given.scale)
    ]
    good = all(figure.good for figure in figures)
    print(f"seed {given.seed}: {'all as it must be' if good else 'NOT ALL AS IT MUST BE'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
