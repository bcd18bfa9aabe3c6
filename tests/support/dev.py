"""`rhythm dev` as a process in a project of its own, for tests that change the project."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

LONG_S = 120  # for a loaded machine; nothing is measured by it
APP = """
import os, time, rhythm
import words

@rhythm.task(queue="letters")
def greet(name: str) -> str:
    return f"{words.GREETING}, {name}"

@rhythm.task
def wait_for(file: str) -> str:
    open(file + ".begun", "a").write("OLD\\n")
    while not os.path.exists(file):
        time.sleep(0.01)
    return "OLD"

@rhythm.task
def kill(code: int) -> None:
    os._exit(code)

@rhythm.workflow
async def waits(name: str) -> list[str]:
    answer = await rhythm.signal("go")
    return ["OLD", str(answer), await greet.run(name)]
"""
FLOW = """
workflow hello(name: text) {
  return await task("greet", { name: name })
}
workflow wait(file: text) {
  return await task("wait_for", { file: file })
}
workflow kills(code: number) {
  await task("kill", { code: code })
}
"""


class Dev:
    """`rhythm dev` in a project of its own; all that it prints is in `log`."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url, self.log = folder, url, folder / "log"
        self.log.touch()
        self.running: list[subprocess.Popen[bytes]] = []

    def project(self) -> None:
        (self.folder / "workflows").mkdir()
        self.write("app.py", APP)
        self.write("words.py", 'GREETING = "Hello"\n')
        self.write("workflows/flows.flow", FLOW)

    def write(self, name: str, text: str) -> None:
        """Saves a file as editors do: in one step."""
        (self.folder / "saved.tmp").write_text(text, encoding="utf-8")
        os.replace(self.folder / "saved.tmp", self.folder / name)

    def start(self, *args: str, **settings: str) -> subprocess.Popen[bytes]:
        given = {f"RHYTHM_{name.upper()}": value for name, value in settings.items()}
        command = [sys.executable, "-m", "rhythm", "dev", "--port", "0", *args]
        environment = {**os.environ, "RHYTHM_DATABASE_URL": self.url, **given}
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=log, stderr=log
            )
        self.running.append(process)
        return process

    def began(self, *args: str, **settings: str) -> subprocess.Popen[bytes]:
        before = self.said.count("Ctrl-C ends it")
        process = self.start(*args, **settings)
        self.until(lambda: self.said.count("Ctrl-C ends it") > before)
        return process

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def until(self, reached: Callable[[], Any]) -> None:
        for _ in range(LONG_S * 100):
            if reached():
                return
            signal.sigtimedwait([], 0.01)
        raise AssertionError(f"never: {self.said}")

    def says(self, *texts: str) -> None:
        """Waits until all of this was said."""
        self.until(lambda: all(text in self.said for text in texts))

    def reloaded(self, change: Callable[[], None]) -> None:
        """Changes something, and waits until the new code runs."""
        before = self.said.count("loaded again:")
        change()
        self.until(lambda: self.said.count("loaded again:") > before)

    def close(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGINT)
            process.wait(LONG_S)
