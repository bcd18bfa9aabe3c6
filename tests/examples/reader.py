"""Somebody who does what a page says, from top to bottom, in one empty folder with two terminals.

| block | the reader |
| --- | --- |
| `python NAME`, `js NAME`, `toml NAME`, `ini NAME`, `dockerfile NAME` | puts it into the file NAME; a function or class that is there already is replaced, the rest stays |
| `python` | runs it as a program; the `text` that follows is what it prints |
| `console` | types the lines that begin with `$`; what is shown under one is what it prints; nothing shown: it succeeds. A line `…` stands for any lines, ` …` at its end for the rest of it |
| `console NAME` | the same in another terminal, NAME: its command goes on running, and what is shown is printed there sooner or later. The terminal's next command ends it first; a block without a `$` is what it prints next |
| `kill -9 12345` | kills the process that has printed its id, where the page shows `pid 12345,` |
| `console install` | nothing: what installs Rhythm, or builds an image, needs a network |

Times, ids and versions are others. Whatever else a page has, the reader refuses.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from tests.examples.markdown import Block, blocks
from tests.examples.test_cli_page import plain
from tests.support import forked

ASKED = 200  # times that a command which only looks is run until it sees what the page shows
LIMIT_S = 120
INSTALL = "install"
FILES = {"python", "js", "flow", "toml", "ini", "dockerfile", "sql", "json", "html"}
LOOKS = {
    "list",
    "count",
    "why",
    "show",
    "trace",
    "schedules",
    "approvals",
    "queues",
    "workers",
    "doctor",
}
SHELL = re.compile(r"[|>&;]|\$\(")
# said by a library about another one
NOT_OURS = re.compile(r"^.*StarletteDeprecationWarning.*\n.*\n", re.MULTILINE)
Check = Callable[[Path], None]


class Reader:
    """`instead` is what stands for what in the blocks, such as the URL of a database."""

    def __init__(self, folder: Path, **shell: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.instead = folder, dict[str, str]()
        self.shell = {**os.environ, "COLUMNS": "100", "TERM": "dumb", **shell}
        for name in [name for name in self.shell if name.startswith("RHYTHM_")]:
            if not name.startswith("RHYTHM_TEST_"):
                del self.shell[name]
        self.terminals: dict[str, Terminal] = {}
        self.shown: list[tuple[str, str]] = []  # what the page shows in which terminal
        self._bin = folder.parent / f"{folder.name}-bin"
        self._put_on_path("rhythm", "-m rhythm")
        self._put_on_path("python", "")

    def follow(self, page: str, checks: dict[str, Check] | None = None) -> None:
        """Does all that the page says; a check is made for each file whose name ends so."""
        try:
            todo = [block for block in blocks(page) if block.language != ""]
            for block, after in zip(todo, [*todo[1:], None], strict=True):
                self.do(block, after, checks or {})
        finally:
            for terminal in self.terminals.values():
                terminal.end()

    def do(self, block: Block, after: Block | None, checks: dict[str, Check]) -> None:
        for shown, real in self.instead.items():
            block = block._replace(text=block.text.replace(shown, real))
        match block.language:
            case "text":
                return
            case "console" if block.name == INSTALL:
                return
            case "console" if "$ " not in block.text:
                self.terminals[block.name].shows(block.text, block)
            case "console":
                for line, shown in re.findall(
                    r"^\$ (.*(?:\\\n.*)*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE
                ):
                    self.type(line, shown, block)
            case language if language in FILES and block.name:
                self.write(block)
                for ending, check in checks.items():
                    if block.name.endswith(ending):
                        check(self.folder / block.name)
            case "python":
                shown = after.text if after is not None and after.language == "text" else None
                self.run_program(block, shown)
            case _:
                raise AssertionError(f"{block}: nobody knows how to do this")

    def write(self, block: Block) -> None:
        """Adds a block to its file; what it defines takes the place of what had that name."""
        place = self.folder / block.name
        place.parent.mkdir(parents=True, exist_ok=True)
        text = place.read_text(encoding="utf-8") if place.exists() else ""
        if block.language != "python":
            text = ""
        for name in re.findall(r"^(?:async def|def|class) (\w+)", block.text, re.MULTILINE):
            text = without(text, name)
        place.write_text(f"{text.rstrip()}\n\n\n{block.text}".lstrip(), encoding="utf-8")

    def run_program(self, block: Block, shown: str | None) -> None:
        (self.folder / "program.py").write_text(block.text, encoding="utf-8")
        ran = forked.run(["program.py"], self.folder, env=self.shell)
        errors = NOT_OURS.sub("", ran.stderr)
        assert (ran.returncode, errors) == (0, ""), f"{block}\n{ran.stderr}"
        if shown is not None:
            assert of_any_time(ran.stdout) == of_any_time(shown), f"{block}\n{ran.stdout}"

    def type(self, line: str, shown: str, block: Block) -> None:
        words = shlex.split(line.replace("\\\n", ""), comments=True)
        if words[0] == "export":
            self.shell |= [words[1].split("=", 1)]
        elif words[0] == "cd":
            self.folder = (self.folder / words[1]).resolve()
        elif words[0] == "kill":
            self.kill(words[-1])
        elif block.name:
            self.shown.append((block.name, shown))
            self.open(block.name, words).shows(shown, block)
        else:
            self.see(line, words, shown, block)

    def open(self, name: str, words: list[str]) -> Terminal:
        """Runs a command in a terminal of its own, in which nothing runs any more."""
        if name in self.terminals:
            self.terminals[name].end()
        command = [str(self._bin / words[0]) if words[0] in ("rhythm", "python") else words[0]]
        self.terminals[name] = Terminal([*command, *words[1:]], self.folder, self.shell)
        return self.terminals[name]

    def kill(self, pid: str) -> None:
        """Kills what has printed its process id, in the terminal for which the page shows this."""
        (name,) = {name for name, shown in self.shown if f"pid {pid}," in shown}
        self.terminals[name].kill()

    def see(self, line: str, words: list[str], shown: str, block: Block) -> None:
        looks = words[0] == "rhythm" and words[1] in LOOKS
        wanted = pattern_of(shown)
        for _ in range(ASKED if looks and shown else 1):
            code, ran = self.run(line, words)
            if wanted.fullmatch(of_any_time(ran)) if shown else code == 0:
                return
        detail = f"{block}: $ {line}\nprinted:\n{ran}\nthe page shows:\n{shown}"
        raise AssertionError(detail)

    def run(self, line: str, words: list[str]) -> tuple[int, str]:
        # pytest looks at what was imported before it
        forks = words[0] in ("rhythm", "python") and "pytest" not in words
        if forks and not SHELL.search(re.sub(r"'[^']*'", "", line)):
            args = words[1:] if words[0] == "python" else ["-m", *words]
            ran = forked.run(args, self.folder, env=self.shell)
        else:
            ran = subprocess.run(
                ["bash", "-c", line],
                cwd=self.folder,
                env={**self.shell, "PATH": f"{self._bin}:{self.shell['PATH']}"},
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        return ran.returncode, ran.stderr + ran.stdout

    def _put_on_path(self, name: str, args: str) -> None:
        self._bin.mkdir(exist_ok=True)
        place = self._bin / name
        place.write_text(f'#!/bin/sh\nexec {sys.executable} {args} "$@"\n')
        place.chmod(place.stat().st_mode | stat.S_IXUSR)


class Terminal:
    """A command that goes on running, and what it has printed so far."""

    def __init__(self, command: list[str], folder: Path, shell: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**shell, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._lines: list[str] = []
        self._seen = 0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def shows(self, shown: str, block: Block) -> None:
        """Waits until each of the lines was printed, one after the other; or any line, if none is
        shown. What was waited for before does not count again."""
        wanted = [line for line in shown.splitlines() if line.strip() not in ("", "…")]
        with self._changed:
            for line in wanted or [" …"]:
                pattern = pattern_of(line)
                found = self._changed.wait_for(lambda: self._find(pattern), LIMIT_S)  # noqa: B023 - waited for here
                printed = "\n".join(self._lines)
                assert found, f"{block}: this was not printed: {line}\nbut:\n{printed}"

    def _find(self, pattern: re.Pattern[str]) -> bool:
        """Whether a line was printed that nobody has waited for yet; it is over once it was."""
        for at, line in enumerate(self._lines[self._seen :], self._seen):
            if pattern.fullmatch(of_any_time(line)):
                self._seen = at + 1
                return True
        return False

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def kill(self) -> None:
        """Kills the process whose id was printed, and no other; all that it has started must end,
        too: until then, the terminal is not silent."""
        (pid,) = re.findall(r"\bpid (\d+)", "\n".join(self._lines))
        os.kill(int(pid), signal.SIGKILL)
        self.end()

    def end(self) -> None:
        """Ends the command, with all that it has started."""
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait(LIMIT_S)
        self._thread.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


def without(text: str, name: str) -> str:
    """The text of a module without the function or class of this name, and its decorators."""
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if (
            isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef | ast.ClassDef)
            and node.name == name
        ):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            del lines[first - 1 : node.end_lineno]
            return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines))
    return text


def of_any_time(text: str) -> str:
    """The text without times, ids, versions and the width of columns."""
    text = re.sub(r"^\w+ (is \w+|waits for .*)\n", "", plain(text), flags=re.MULTILINE)
    text = re.sub(r"\bversion [0-9a-f]{12}\b", "VERSION", text)
    text = re.sub(r"^ *(\d+d )?[\d:]+:\d\d(\.\d+)?  ", "", text, flags=re.MULTILINE)
    text = re.sub(r"\b[0-9a-f]{12}\b", "VERSION", text)
    text = re.sub(r"\bpid \d+", "pid N", text)
    text = re.sub(r"in [\d.,]+ ?m?s\b", "LENGTH", re.sub(r"[ ─]+", " ", text))
    return re.sub(r" +$", "", text, flags=re.MULTILINE).strip()


def pattern_of(shown: str) -> re.Pattern[str]:
    """What is shown as a pattern: a line that is `…` stands for any lines, ` …` at the end of one
    for the rest of it."""
    parts = re.split(r"^ *…$\n?", shown, flags=re.MULTILINE)
    escaped = [re.escape(of_any_time(part)) for part in parts]
    open_ended = [re.sub(r"\\ …(?=\\\n|$)", ".*", part) for part in escaped]
    return re.compile(r"[\s\S]*".join(open_ended))
