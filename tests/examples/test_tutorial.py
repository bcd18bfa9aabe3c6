"""docs/tutorial.md is true: its blocks make one file, and its sessions print what is shown; times,
ids and versions are others."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.examples.test_cli_page import plain
from tests.support import forked

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)(?: ([\w.]+))?\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ASKED = 200  # times that a command is run until it sees what the page shows


class Reader:
    """Somebody who does what the page says, in one folder, with two terminals."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.worker = folder, None
        self.shell = {**os.environ, "COLUMNS": "100"}
        self.shell.pop("RHYTHM_DATABASE_URL", None)

    worker: subprocess.Popen[bytes] | None

    def write(self, block: str, file: str) -> None:
        """Adds a block to the file; what it defines takes the place of what had that name."""
        place = self.folder / file
        text = place.read_text() if place.exists() else ""
        for name in re.findall(r"^(?:async def|class) (\w+)", block, re.MULTILINE):
            text = without(text, name)
        place.write_text(f"{text.rstrip()}\n\n\n{block}".lstrip())

    def type(self, line: str, shown: str) -> None:
        """Runs a command, until it prints what is shown."""
        words = shlex.split(line)
        if words[0] == "export":
            self.shell |= [words[1].split("=", 1)]
        elif words[:2] == ["rhythm", "worker"]:
            self.start_worker(words)
        elif words[0] == "pkill":
            self.stop_worker(kill=True)
        else:
            self.see(words, shown)

    def see(self, words: list[str], shown: str) -> None:
        asks = words[1] in ("list", "why", "show", "trace", "schedules")
        for _ in range(ASKED if asks else 1):
            ran = self.run(words)
            if of_any_time(ran) == of_any_time(shown):
                return
        assert of_any_time(ran) == of_any_time(shown), words

    def run(self, words: list[str]) -> str:
        args = words[1:] if words[0] == "python" else ["-m", *words]
        ran = forked.run(args, self.folder, env=self.shell)
        return ran.stderr + ran.stdout

    def start_worker(self, words: list[str]) -> None:
        self.stop_worker()
        command = [sys.executable, "-u", "-m", *words]
        self.worker = subprocess.Popen(
            command, cwd=self.folder, env=self.shell, stderr=subprocess.PIPE
        )
        assert self.worker.stderr is not None
        while not (line := self.worker.stderr.readline()).startswith(b"rhythm: worker"):
            assert line, "the worker has ended"

    def stop_worker(self, kill: bool = False) -> None:
        if self.worker is not None:
            self.worker.kill() if kill else self.worker.terminate()
            self.worker.communicate()
            self.worker = None


def without(text: str, name: str) -> str:
    """The text of a module without the function or class of this name, and its decorators."""
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            del lines[first - 1 : node.end_lineno]
            return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines))
    return text


def of_any_time(text: str) -> str:
    text = re.sub(r"\bversion [0-9a-f]{12}\b", "VERSION", plain(text))
    text = re.sub(r"^ *(\d+d )?[\d:]+:\d\d  ", "", text, flags=re.MULTILINE)
    return re.sub(r"in [\d.,]+ ?m?s\b", "LENGTH", re.sub(r" +", " ", text)).strip()


def test_everything_the_page_shows_happens(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    try:
        for language, info, text in BLOCKS:
            if language == "python":
                reader.write(text, info or "shop.py")
                continue
            for line, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
                reader.type(line, shown)
    finally:
        reader.stop_worker()


def test_page_has_nothing_but_python_and_sessions() -> None:
    assert {language for language, _, _ in BLOCKS} == {"python", "console"}
    assert len(BLOCKS) == PAGE.count("```") // 2
