"""Takes one guard out of a copy of the code, and finds out whether the tests that are named for it
turn red."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.support.compiled import VARIABLE

ROOT = Path(__file__).parents[2]
LIMIT_S = 100.0  # for the tests of one mutant
# what begins the next statement or function
ENDS = {".sql": r"^-- name: ", ".py": r"^ {0,4}(def |async def |class |@)"}
UNFIT = (
    "SyntaxError", "NameError", "UnboundLocalError", "TypeError", "AttributeError",
    "ProgrammingError", "UndefinedColumn",
    "no such column", "syntax error",
)  # fmt: skip  # red for the wrong reason: the mutant does not run


class Change(NamedTuple):
    """A text in one statement or function that is replaced; it must be there exactly once."""

    file: str  # below src/rhythm
    inside: str  # the name of the statement or function
    old: str
    new: str


class Mutant(NamedTuple):
    guard: str  # what is taken away
    database: str  # sqlite, postgres, or any: code that both have in common
    tests: tuple[str, ...]  # all of these must turn red
    changes: tuple[Change, ...]


class Verdict(NamedTuple):
    mutant: Mutant
    word: str  # "red", or what is wrong
    seconds: float
    output: str = ""

    def line(self) -> str:
        tests = ", ".join(test.rpartition("::")[2] for test in self.mutant.tests)
        return (
            f"{self.mutant.guard:<66} {self.mutant.database:<8} {self.word:<8} "
            f"{self.seconds:6.1f}  {tests}"
        )


class NotFound(Exception):
    """The table is no longer true: the code that a mutant changes is not there, or is there
    twice."""


def changed(text: str, change: Change) -> str:
    """The text of a file with the change made."""
    first, last = _section(text, change)
    body = text[first:last]
    if body.count(change.old) != 1:
        raise NotFound(
            f"{change.file}, {change.inside}: found {body.count(change.old)} times "
            f"instead of once: {change.old!r}"
        )
    return text[:first] + body.replace(change.old, change.new) + text[last:]


def _section(text: str, change: Change) -> tuple[int, int]:
    kind = Path(change.file).suffix
    head = (
        rf"^-- name: {change.inside}$"
        if kind == ".sql"
        else rf"^ {{0,4}}(def|async def|class) {change.inside}\b"
    )
    heads = list(re.finditer(head, text, re.MULTILINE))
    if "migrations" in change.file:
        return 0, len(text)
    if len(heads) != 1:
        raise NotFound(f"{change.file}: found {len(heads)} times instead of once: {change.inside}")
    end = re.compile(ENDS[kind], re.MULTILINE).search(text, heads[0].end())
    return heads[0].start(), end.start() if end else len(text)


def mutated(source: Path, mutant: Mutant) -> dict[Path, str]:
    """The files of `source` (a folder `rhythm`) that the mutant changes."""
    texts: dict[Path, str] = {}
    for change in mutant.changes:
        path = source / change.file
        texts[path] = changed(texts.get(path) or path.read_text(), change)
    return texts


def verdict(mutant: Mutant, environment: Mapping[str, str] = {}) -> Verdict:
    """Runs the tests of a mutant on a copy of the tree."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rhythm-mutant-") as folder:
        copy = copy_of_tree(Path(folder))
        for path, text in mutated(copy / "src" / "rhythm", mutant).items():
            path.write_text(text)
        word, output = _judge(mutant, copy, environment)
    return Verdict(mutant, word, time.monotonic() - began, output)


def copy_of_tree(folder: Path) -> Path:
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def run_tests(
    tests: tuple[str, ...],
    root: Path,
    environment: Mapping[str, str],
    *options: str,
    limit_s: float | None = LIMIT_S,
) -> tuple[int | None, str]:
    """The exit code of pytest, None if it did not end, and what it said."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--no-header",
        "--tb=short",
        "-rf",
        *options,
        *tests,
    ]
    # the sources, whatever is tested here; and quicker
    env = {
        **os.environ,
        **environment,
        "PYTHONPATH": str(root / "src"),
        "RHYTHM_TEST_LONG": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    env.pop(VARIABLE, None)
    try:
        done = subprocess.run(
            command, cwd=root, env=env, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout + done.stderr


def _judge(mutant: Mutant, root: Path, environment: Mapping[str, str]) -> tuple[str, str]:
    options = () if mutant.database == "any" else ("-k", mutant.database)
    options = options if len(mutant.tests) > 1 else (*options, "-x")
    code, output = run_tests(mutant.tests, root, environment, *options)
    if code is None:
        return "NO END", f"no end in {LIMIT_S:.0f} s"
    if code not in (0, 1):
        return "BROKEN", output
    if unfit := next((word for word in UNFIT if word in output), None):
        return "BROKEN", f"the mutant does not run: {unfit}\n{output}"
    red = [
        test
        for test in mutant.tests
        if re.search(rf"^FAILED {re.escape(test)}\b", output, re.MULTILINE)
    ]
    return "red" if len(red) == len(mutant.tests) else "NOT RED", output
