"""`python -m tests.support.covered`: what the tests of `make coverage` ran, a line for each package
of Rhythm."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import PurePath
from typing import Any

PARTS = ("lang", "ir", "vm", "engine", "store", "worker", "app", "http", "cli")


def table(files: dict[str, Any]) -> str:
    """Statements and branches of each package, and of all."""
    sums = {part: Counter[str]() for part in (*PARTS, "the rest", "all")}
    for name, found in files.items():
        below = PurePath(name.partition("rhythm/")[2]).parts
        part = below[0] if below[0] in PARTS else "the rest"
        for which in (part, "all"):
            sums[which].update(
                {key: value for key, value in found["summary"].items() if key in KEYS}
            )
    head = f"{'':<10}{'statements':>12}{'':>8}{'branches':>12}{'':>8}"
    return "\n".join([head, *(_line(part, one) for part, one in sums.items())])


KEYS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def _line(part: str, sums: Counter[str]) -> str:
    statements, lines, branches, taken = (sums[key] for key in KEYS)
    return (
        f"{part:<10}{statements:>12,}{_share(lines, statements):>8}"
        f"{branches:>12,}{_share(taken, branches):>8}"
    )


def _share(some: int, all: int) -> str:
    return f"{100 * some / all:.1f}%" if all else "–"


if __name__ == "__main__":
    print(table(json.load(sys.stdin)["files"]))
