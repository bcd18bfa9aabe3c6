"""Runs one script for one job, for a limited time, and takes what it prints.

However it ends, so do all the processes that it started: they are in a process group of its own.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

from rhythm.record import Record

GRACE_S = 5.0
POLL_S = 0.05
MAX_REASON_CHARS = 200
FOLDERS = re.compile(r"(?<![/:\w])(?:/[^\s/'\"]+)+/")  # of a path; results may be published
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class Outcome(Record):
    """How one job of one engine ended."""

    figures: dict[str, float]
    settings: str = ""
    problem: str = ""  # why figures are missing
    took_s: float = 0.0


def run(command: Sequence[str], environment: Mapping[str, str], limit_s: float) -> Outcome:
    """The outcome of a command. It never raises for what the command does."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        with _group(command, environment, out, errors) as process:
            code = _exit_code(process, began + limit_s)
        printed = _text(out)
        return Outcome(
            figures=_merged(printed, "figures"),
            settings="; ".join(_each(printed, "settings")),
            problem=_problem(code, limit_s, _text(errors)),
            took_s=round(time.monotonic() - began, 1),
        )


@contextmanager
def _group(
    command: Sequence[str], environment: Mapping[str, str], out: IO[bytes], errors: IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    """The process, at the head of a new group; the whole group is ended at the end."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=errors,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        _end(process)


def _exit_code(process: subprocess.Popen[bytes], limit: float) -> int | None:
    """None if it has not ended in time."""
    try:
        return process.wait(max(0.0, limit - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asks the group to end, and kills it if it does not."""
    limit = time.monotonic() + GRACE_S
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        while time.monotonic() < limit:
            process.poll()  # takes its exit code, so that the group can be gone
            os.killpg(process.pid, 0)
            time.sleep(POLL_S)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _each(printed: str, key: str) -> Iterator[Any]:
    """What the lines of JSON have under this key; engines may print other lines."""
    for line in printed.splitlines():
        with suppress(ValueError):
            said = json.loads(line)
            if isinstance(said, dict) and key in said:
                yield said[key]


def _merged(printed: str, key: str) -> dict[str, float]:
    return {name: value for each in _each(printed, key) for name, value in each.items()}


def _problem(code: int | None, limit_s: float, errors: str) -> str:
    """Why it failed; empty if it did not."""
    if code == 0:
        return ""
    if code is None:
        return f"not done after {limit_s:g} s"
    lines = [line.strip() for line in ESCAPES.sub("", errors).splitlines() if line.strip()]
    reason = (lines or [f"exit code {code}"])[-1]
    return FOLDERS.sub("", reason)[:MAX_REASON_CHARS]
