"""The application of the workers that are tormented: small tasks that write down when they begin
and when they end.

The ledger is a file for each process, on the clock that counts since the machine started: it is the
same for all processes, no fault reaches it, and what was written survives `kill -9`.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import random
import resource
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import rhythm
from rhythm.worker import local_workers, loop

logging.basicConfig(format="%(relativeCreated)d ms %(levelname)s %(message)s", level=logging.INFO)
if "FAKETIME" in os.environ:  # it refuses the way in which Python sleeps
    time.sleep = lambda seconds: threading.Event().wait(seconds) and None
# the longest of the ordinary tasks
LASTS_S = float(os.environ.get("RHYTHM_TEST_CHAOS_LASTS_S", "0.03"))


def _mark_commits(file: str) -> None:
    """Whoever watches the calls of the system sees where a group commit begins, and where it is
    acknowledged."""
    marks, commit = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), SqliteTurns.commit

    def marking(self: SqliteTurns, turns: Any, ends: Any) -> Any:
        os.write(marks, b"<")
        answer = commit(self, turns, ends)
        os.write(marks, b">")
        return answer

    SqliteTurns.commit = marking  # type: ignore[method-assign]


if "RHYTHM_TEST_CHAOS_COMMITS" in os.environ:
    from rhythm.store.sqlite.turns import SqliteTurns

    _mark_commits(os.environ["RHYTHM_TEST_CHAOS_COMMITS"])

if "RHYTHM_TEST_MACHINE" in os.environ:
    local_workers.MACHINE = loop.MACHINE = os.environ["RHYTHM_TEST_MACHINE"]


@cache
def _ledger() -> int:
    folder = os.environ["RHYTHM_TEST_CHAOS_LEDGER"]
    return os.open(f"{folder}/{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def _note(what: str) -> None:
    attempt = rhythm.current()
    since_boot_us, wall_us = (
        time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000,
        time.time_ns() // 1000,
    )
    os.write(
        _ledger(), f"{since_boot_us} {what} {attempt.id} {attempt.attempt} {wall_us}\n".encode()
    )


@contextmanager
def _noted() -> Iterator[None]:
    _note("began")
    try:
        yield
    finally:
        _note("ended")


@rhythm.task
def value(value: Any = None) -> Any:
    with _noted():
        time.sleep(random.random() * LASTS_S)
        return value


@rhythm.task
def add(a: int, b: int) -> int:
    with _noted():
        return a + b


@rhythm.task
async def double(x: int) -> int:
    with _noted():
        await asyncio.sleep(random.random() * LASTS_S)
        return x * 2


@rhythm.task
def fail(code: str = "TaskFailed") -> None:
    with _noted():
        pass
    raise rhythm.TaskFailed("it failed", code=code)


@rhythm.task(retries=1000, backoff=0.05)
def flaky(x: int, fails: int) -> int:
    with _noted():
        if rhythm.current().attempt <= fails:
            raise ConnectionError("not yet")
        return x


@rhythm.task
def long(seconds: float) -> float:
    """One that is still running when its worker is told to stop."""
    with _noted():
        time.sleep(seconds)
        return seconds


@rhythm.task
def leave() -> None:
    _note("began")
    os._exit(3)


@rhythm.task(retries=10)
def stubborn() -> None:
    """May be tried more often than a worker may die of it."""
    _note("began")
    os._exit(3)


@rhythm.task
def segfault() -> None:
    """Recursion without an end on the C stack, which no limit of Python's stops."""
    _note("began")
    sys.setrecursionlimit(10**9)

    def deeper(_: object = None) -> int:
        return max([0], key=deeper)

    try:
        deeper()
    except RecursionError:  # newer ones do stop it
        ctypes.string_at(0)


@rhythm.task
def devour() -> int:
    """Memory without an end; the worker's is limited, as in a container, so that the machine's is
    not."""
    _note("began")
    size, _ = resource.getrlimit(resource.RLIMIT_AS)
    assert size != resource.RLIM_INFINITY, "the worker must have a limit"
    eaten = []
    while True:
        eaten.append(bytearray(64 * 1024 * 1024))


@rhythm.task(timeout=0.5)
def block() -> None:
    _note("began")
    threading.Event().wait()
