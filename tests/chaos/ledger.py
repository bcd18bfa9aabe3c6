"""Reading what the tasks have written down, and holding it against what the database says."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

SLACK_US = 5_000  # between two clocks of one machine


class Line(NamedTuple):
    at_us: int  # since the machine started
    what: str
    task: str
    attempt: int
    pid: int
    wall_us: int  # what the process took for the time


def offset_us() -> int:
    """From the clock of the ledger to the one of a database on this machine."""
    return (time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC)) // 1000


def read(folder: Path) -> list[Line]:
    """All lines, in the order of time."""
    found = []
    for file in (folder / "ledger").iterdir():
        for line in file.read_text().splitlines():
            at, what, task, attempt, wall = line.split()
            found.append(Line(int(at), what, task, int(attempt), int(file.name), int(wall)))
    return sorted(found)


def begun(lines: Iterable[Line]) -> dict[str, list[Line]]:
    by_task = defaultdict[str, list[Line]](list)
    for line in lines:
        if line.what == "began":
            by_task[line.task].append(line)
    return by_task


def again(lines: Iterable[Line], finished_at: Mapping[str, int]) -> list[Line]:
    """Bodies that began after the end of their task was committed: `finished_at` is by task, on the
    database's clock."""
    ended = {task: at_us - offset_us() + SLACK_US for task, at_us in finished_at.items()}
    return [
        line
        for line in lines
        if line.what == "began" and line.task in ended and line.at_us > ended[line.task]
    ]


def takeovers_s(lines: list[Line], gone: Mapping[int, float]) -> list[float]:
    """For every body that was running when its process went (`gone`: pid to when): how long until
    another one began it again. What was given back before the process went may have begun before
    that, too: 0."""
    running = dict[tuple[int, str], int]()  # since when
    for line in lines:
        if line.pid in gone and line.what == "began":
            running[line.pid, line.task] = line.at_us
        elif line.pid in gone:
            running.pop((line.pid, line.task), None)
    starts = begun(lines)
    found = []
    for (pid, task), since_us in running.items():
        later = [
            line.at_us / 1e6 - gone[pid]
            for line in starts[task]
            if line.pid != pid and line.at_us > since_us
        ]
        found += [max(0.0, later[0])] if later else []
    return found
