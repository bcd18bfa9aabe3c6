"""The README is true: its files run with its commands and print what it shows."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def block(language: str, part: str = "") -> str:
    return next(text for text in re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL) if part in text)


def rhythm(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    args = shlex.split(command.removeprefix("$ rhythm "))
    return subprocess.run(
        [sys.executable, "-m", "rhythm", *args], cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=120
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(block("python"), encoding="utf-8")
    (tmp_path / "order.flow").write_text(block("js"), encoding="utf-8")
    return tmp_path


def test_the_twenty_lines_run_and_print_what_is_shown(folder: Path) -> None:
    command, shown = block("console", "rhythm run").split("\n", 1)
    ran = rhythm(command, folder)
    assert ran.returncode == 0, ran.stderr
    assert without_times(ran.stderr) + ran.stdout == without_times(shown)


def test_the_mistake_is_reported_as_shown(folder: Path) -> None:
    command, shown = block("console", "rhythm check").split("\n", 1)
    line = re.search(r"^2 │ (.*)$", shown, re.MULTILINE)
    assert line
    (folder / "order.flow").write_text(f"workflow order(inputs) {{\n{line[1]}\n  return total\n}}\n", encoding="utf-8")
    assert rhythm(command, folder).stdout.startswith(shown)


def test_every_command_of_the_table_exists(folder: Path) -> None:
    commands = re.findall(r"^\| `rhythm (\w+) ", README, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        assert rhythm(f"{command} --help", folder).returncode == 0


def without_times(text: str) -> str:
    return re.sub(r"in [\d,]+ ms", "in … ms", re.sub(r"^ *[\d:.]+s? ", "", text, flags=re.MULTILINE))
