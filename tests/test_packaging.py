"""What is installed: the bounds that users get, the lock file that we work with, and the Pythons
that CI runs with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
PINS = {
    canonicalize_name(name): Version(version)
    for name, version in re.findall(r"^([\w.-]+)==([\w.]+)", LOCK, re.MULTILINE)
}
ASKED = [
    Requirement(text)
    for texts in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    for text in texts
    if not text.startswith("rhythm[")
]
HOLES = {  # the first version without the known holes
    "orjson": "3.11.6",
    "h11": "0.16",
    "starlette": "1.3.1",
}
SUPPORTED = sorted(
    (
        match[1]
        for match in (
            re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line)
            for line in PROJECT["classifiers"]
        )
        if match
    ),
    key=Version,
)


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_the_lock_file_has_what_the_project_asks_for(asked: Requirement) -> None:
    pinned = PINS.get(canonicalize_name(asked.name))
    assert pinned is not None, "run `make lock`"
    assert pinned in asked.specifier, "run `make lock`"


def test_every_pin_has_a_hash_and_nothing_says_where_it_came_from() -> None:
    blocks = re.split(r"^(?=[\w.-]+==)", LOCK, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(PINS)
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in LOCK
    assert "index-url" not in LOCK


@pytest.mark.parametrize("name", HOLES)
def test_versions_with_known_holes_are_not_installed(name: str) -> None:
    (asked,) = {str(each.specifier) for each in ASKED if each.name == name}
    (least,) = [Version(each.version) for each in SpecifierSet(asked) if each.operator == ">="]
    assert least >= Version(HOLES[name])


def test_the_oldest_python_is_the_one_that_is_required() -> None:
    assert PROJECT["requires-python"] == f">={SUPPORTED[0]}"


def test_the_wheel_has_all_files_of_the_package(tmp_path: Path) -> None:
    """Also those that are no Python: statements, and the project that `rhythm new` writes."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as opened:
        has = {name for name in opened.namelist() if name.startswith("rhythm/")}
    files = (path for path in (ROOT / "src" / "rhythm").rglob("*") if path.is_file())
    names = {path.relative_to(ROOT / "src").as_posix() for path in files}
    assert has == {name for name in names if "__pycache__" not in name}


def in_ci(folder: Path, *versions: str) -> list[str]:
    """What `.ci/run` runs on a machine that has these Pythons, and a name of another that leads
    nowhere."""
    there = {f"python{version}": version for version in versions}
    programs = {
        "make": 'echo "make $*"',
        "pyenv": "exit 1",
        **{
            name: f'case "$2" in *"\'{version}\'"*) exit 0 ;; esac; exit 1'
            for name, version in there.items()
        },
        **{f"python{version}": "exit 127" for version in SUPPORTED if version not in versions},
        "python3": "exit 127",
        "python": "exit 127",
    }
    for name, body in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        [ROOT / ".ci" / "run"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return [*ran.stdout.splitlines(), *ran.stderr.splitlines()]


def test_ci_runs_the_oldest_and_the_newest_python_that_it_finds(tmp_path: Path) -> None:
    assert in_ci(tmp_path, *SUPPORTED) == [
        *(f"Python {version}: python{version}" for version in SUPPORTED),
        f"make test PYTHON=python{SUPPORTED[0]}",
        f"make test PYTHON=python{SUPPORTED[-1]}",
    ]


def test_ci_is_content_with_one_python(tmp_path: Path) -> None:
    told = in_ci(tmp_path, "3.12")
    assert told == [
        "Python 3.11: not found",
        "Python 3.12: python3.12",
        "Python 3.13: not found",
        "make test PYTHON=python3.12",
    ]


def test_ci_fails_without_any_python(tmp_path: Path) -> None:
    assert in_ci(tmp_path)[-1] == "This machine has none of the Pythons that Rhythm supports."
