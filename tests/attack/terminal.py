"""Control characters, in all that people can write, through every command: none may reach a
terminal. Played by the tests of the command line."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.chaos.report import Figure, at_least, none

TESTS = "tests/cli/test_hostile.py"


def scenario(seed: int, scale: float) -> list[Figure]:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS],
        capture_output=True,
        text=True,
        check=False,
    )
    counts = {
        what: int(number)
        for number, what in re.findall(r"(\d+) (passed|failed|errors?)", ran.stdout)
    }
    failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return [
        at_least("commands that were tried", counts.get("passed", 0), 1),
        none("commands that let one through", failed),
    ]
