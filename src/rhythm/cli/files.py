"""Finds, reads and writes workflow files.

It does so without `pathlib`: `rhythm check` would spend a tenth of its time importing that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from rhythm.cli.command import UsageError
from rhythm.lang.languages import FOUND_IN_FOLDERS


def find_files(names: Iterable[str], kinds: tuple[str, ...] = FOUND_IN_FOLDERS) -> list[str]:
    """Returns the named files, and for a folder all files of these kinds below it.

    `-` is standard input. `UsageError` if a file does not exist, or a folder has no such file.
    """
    found: list[str] = []
    for name in names:
        if name != "-" and not os.path.exists(name):
            raise UsageError(f"there is no file {name}")
        inside = sorted(_below(name, kinds)) if os.path.isdir(name) else [name]
        if not inside:
            raise UsageError(f"there is no {' or '.join(kinds)} file in {name}")
        found += inside
    return list(dict.fromkeys(found))


def _below(folder: str, kinds: tuple[str, ...]) -> list[str]:
    return [
        os.path.join(path, file)
        for path, _, files in os.walk(folder)
        for file in files
        if file.endswith(kinds)
    ]


def is_python(name: str) -> bool:
    """Whether a file is Python: its workflows are found by importing it, not by reading it."""
    return name.endswith(".py")


def read_source(name: str) -> str:
    """Returns the text of a file, or of standard input (`-`).

    `UsageError` if it cannot be read, or is not UTF-8.
    """
    try:
        if name == "-":
            return sys.stdin.buffer.read().decode("utf-8")
        with open(name, "rb") as file:
            return file.read().decode("utf-8")
    except UnicodeDecodeError as problem:
        raise UsageError(
            f"{name} is not UTF-8 text (byte {problem.start}); save it as UTF-8"
        ) from None
    except OSError as problem:
        raise UsageError(f"cannot read {name}: {problem.strerror or problem}") from None


def write_source(name: str, text: str) -> None:
    """Replaces the text of a file in one step.

    A process that is killed meanwhile leaves the old text. `UsageError` if it cannot be written.
    """
    beside = f"{name}.{os.getpid()}.tmp"
    try:
        with open(beside, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(beside, os.stat(name).st_mode)
        os.replace(beside, os.path.realpath(name))
    except OSError as problem:
        raise UsageError(f"cannot write {name}: {problem.strerror or problem}") from None
