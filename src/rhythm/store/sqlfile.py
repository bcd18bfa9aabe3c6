"""SQL in files: statements by name, each under a line `-- name: what_it_does`.

Where a statement names a record, the record's columns are put in its place (`columns`).
"""

from __future__ import annotations

import re
from importlib import resources

from rhythm.store.columns import filled

# how a value that is given by name is written
VALUES = {"sqlite": ":{}", "postgres": "%({})s::{type}"}
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)  # for readers, not for the database


def statements(package: str, file: str) -> dict[str, str]:
    """Returns the statements of a file by their names."""
    parts, value = _NAME.split(_read(package, file))[1:], VALUES[package.rpartition(".")[2]]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    plain = ((name, _COMMENT.sub("", text).strip().removesuffix(";")) for name, text in pairs)
    return {name: filled(text, value) for name, text in plain}


def migrations(package: str) -> list[tuple[int, str, str]]:
    """Returns the migrations of a package in order: number, name, text."""
    folder = resources.files(package) / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [
        (int(name[:4]), name.removesuffix(".sql"), (folder / name).read_text("utf-8"))
        for name in names
    ]


def _read(package: str, file: str) -> str:
    return (resources.files(package) / file).read_text("utf-8")
