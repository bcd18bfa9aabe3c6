"""What the scripts of all engines share. Each script runs in a virtual environment of its own, so
this needs the standard library, and psycopg where there is PostgreSQL.

A script is called as `SCRIPT JOB WHERE [ARGUMENT…]` and prints lines of JSON: the figures, and the
settings that it used. What it starts ends with it; how long it may take is the runner's business.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

SCALE = float(os.environ.get("BENCH_SCALE", "1"))  # of the sizes, to try everything quickly
POLL_S = 0.02  # a count costs the database a millisecond, too


def scaled(count: int) -> int:
    return max(20, int(count * SCALE))


TASKS, WORKFLOWS, STEPS, SINGLES = scaled(10_000), scaled(1000), 10, scaled(200)
LONG, LONGS, CHILDREN = 50, 10, scaled(1000)
WARM_UP = 20


def main(jobs: Mapping[str, Callable[..., Coroutine[Any, Any, None] | None]]) -> None:
    """Runs the job that the command line names."""
    name, *arguments = sys.argv[1:]
    if name not in jobs:
        sys.exit(f"no such job here: {name}")
    if running := jobs[name](*arguments):
        asyncio.run(running)


def tell(**figures: float) -> None:
    print(json.dumps({"figures": figures}), flush=True)


def settings(text: str) -> None:
    """Says with what the figures were reached."""
    print(json.dumps({"settings": text}), flush=True)


@contextmanager
def processes(count: int, *arguments: object) -> Iterator[list[subprocess.Popen[str]]]:
    """This script so many times, with other arguments; ended at the end."""
    command = [sys.executable, sys.argv[0], *map(str, arguments)]
    with ended([command] * count) as started:
        yield started


@contextmanager
def ended(commands: Sequence[Sequence[str]], **more: Any) -> Iterator[list[subprocess.Popen[str]]]:
    """These processes, with pipes to them; ended at the end."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(command, **pipes, **more) for command in commands]
    try:
        yield started
    finally:
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def output(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def together(count: int, *arguments: object) -> float:
    """Seconds that so many processes need for work that they begin at once: see `at_once`."""
    with processes(count, *arguments) as started:
        for process in started:
            output(process).readline()
        began = time.perf_counter()
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in started:
            if output(process).readline() != "done\n":
                sys.exit("a process failed")
        return time.perf_counter() - began


def at_once(work: Callable[[], object]) -> None:
    """Does the work when `together` gives the sign, and says when it is done."""
    print("ready", flush=True)
    sys.stdin.readline()
    work()
    print("done", flush=True)


def until(done: Callable[[], int], count: int) -> None:
    while done() < count:
        time.sleep(POLL_S)


def drained_per_s(done: Callable[[], int], count: int) -> float:
    """How many end in a second, from the moment a tenth has ended to the last: workers that have
    just been started are not measured."""
    until(done, count // 10)
    before, began = done(), time.perf_counter()
    if before == count:
        sys.exit("too few to be measured: all had ended at the first look")
    until(done, count)
    return (count - before) / (time.perf_counter() - began)


@contextmanager
def counted(where: str, text: str) -> Iterator[Callable[[], int]]:
    """What a statement counts in PostgreSQL, whenever it is asked."""
    import psycopg

    with psycopg.connect(where, autocommit=True) as db:
        yield lambda: int(db.execute(text.encode()).fetchall()[0][0])


def timed(work: Callable[[], object]) -> float:
    """Seconds for one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def singles(work: Callable[[], object], count: int = SINGLES) -> list[float]:
    """Seconds for each of so many calls, after a few that do not count."""
    for _ in range(WARM_UP):
        work()
    return [timed(work) for _ in range(count)]


def milliseconds(times: Sequence[float], percent: int) -> float:
    """A percentile: a time that was measured."""
    return sorted(times)[-(-len(times) * percent // 100) - 1] * 1e3


def spread(times: Sequence[float], prefix: str = "") -> dict[str, float]:
    """The median and the 99th percentile."""
    return {f"{prefix}p{of}_ms": milliseconds(times, of) for of in (50, 99)}


def a_step(times: Sequence[float]) -> float:
    """Milliseconds for a step, of times of workflows with LONG steps."""
    return milliseconds(times, 50) / LONG
