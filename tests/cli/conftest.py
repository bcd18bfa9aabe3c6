"""A folder of its own for each test, and the `rhythm` command run in it as a user would run it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.places import PLACES, There
from tests.support import forked
from tests.support.length import LONG

TASKS = """
import asyncio
import os
import threading
import time

import rhythm

calls = {}


@rhythm.task
def greet(name: str, mark: str = "!") -> str:
    print("printed by a task")
    os.system("echo printed by a program")
    return f"Hello, {name}{mark}"


@rhythm.task(retries=3, backoff="10ms")
def flaky(failures: int) -> int:
    calls["flaky"] = calls.get("flaky", 0) + 1
    if calls["flaky"] <= failures:
        raise ConnectionError("no route")
    return calls["flaky"]


@rhythm.task
async def nap(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


@rhythm.task
def hang() -> None:
    threading.Event().wait()


barrier = threading.Barrier(3)


@rhythm.task
def meet(n: int) -> int:
    barrier.wait(timeout=60)
    return n


@rhythm.task(retries=5)
def refuse() -> None:
    calls["refuse"] = calls.get("refuse", 0) + 1
    raise rhythm.TaskFailed("no money", code="Declined", data={"calls": calls["refuse"]})


@rhythm.task
def later() -> int:
    calls["later"] = calls.get("later", 0) + 1
    if calls["later"] < 3:
        raise rhythm.RetryLater("1h")
    return calls["later"]


@rhythm.task
def unstorable() -> object:
    return object()


@rhythm.task
def leave() -> None:
    raise SystemExit(3)


@rhythm.task
async def cancel_itself() -> None:
    raise asyncio.CancelledError()


@rhythm.task
async def async_leave() -> None:
    raise SystemExit(3)


@rhythm.task
async def leave_on_the_side() -> None:
    async def side() -> None:
        raise SystemExit(3)

    asyncio.get_running_loop().create_task(side())
    await asyncio.sleep(60)


class Speechless(Exception):
    def __str__(self) -> str:
        raise SystemExit(4)


def circle() -> Exception:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    return one


FAILURES = {
    "exception as message": lambda: rhythm.TaskFailed(ValueError("no money")),
    "code of no text": lambda: rhythm.TaskFailed("no", code=404),
    "empty code": lambda: rhythm.TaskFailed("no", code=""),
    "data of no JSON": lambda: rhythm.TaskFailed("no", data={"when": object()}),
    "half a character": lambda: rhythm.TaskFailed("a\\ud800b\\0c"),
    "half a character elsewhere": lambda: ValueError("a\\ud800b\\0c"),
    "long": lambda: ValueError("x" * 10_000_000),
    "speechless": lambda: Speechless(),
    "circle": lambda: circle(),
}


@rhythm.task
def fail(how: str) -> None:
    raise FAILURES[how]()


def shared() -> list:
    value = []
    for _ in range(50):
        value = [value, value]
    return value


RESULTS = {
    "list": lambda: [0] * 100_001,
    "text": lambda: "x" * (2**20 + 1),
    "whole": lambda: ["x" * 2**19] * 3,
    "shared": shared,
    "fits": lambda: ["x" * 2**19],
}


@rhythm.task
def give(what: str) -> object:
    return RESULTS[what]()
"""


class Shell:
    """Runs `rhythm` in a folder; every file a test writes is in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("tasks.py", TASKS)

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def read(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    def rhythm(
        self, *args: str, stdin: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return forked.run(
            ["-m", "rhythm", *args], self.folder, stdin, {**os.environ, **environment}
        )

    def run(self, flow: str, *args: str, app: bool = True) -> dict[str, Any]:
        """The document that `rhythm run --output json` prints for this workflow."""
        self.write("main.flow", flow)
        ran = self.rhythm(
            "run", "main.flow", "--output", "json", *(["--app", "tasks.py"] if app else []), *args
        )
        document: dict[str, Any] = json.loads(ran.stdout)
        assert ran.returncode == (0 if document["status"] == "completed" else 1), ran
        assert list(document) == ["status", "result", "error"]
        return document


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that runs commands does it twice: on the database, and on a server on it."""
    if "place" in metafunc.fixturenames:
        alone = hasattr(metafunc.function, "on_database")
        metafunc.parametrize("place", ["database"] if alone else PLACES)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What a server answers does not depend on its database: one of them is enough for a sample."""
    left_out = [item for item in items if not LONG and _is_server_on_postgres(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _is_server_on_postgres(item: pytest.Item) -> bool:
    given = getattr(getattr(item, "callspec", None), "params", {})
    return (given.get("place"), given.get("url")) == ("server", "postgres")


@pytest.fixture
def there(url: str, place: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[There]:
    """What commands work on: the database of the test, or a server on it."""
    made = There(url, place, monkeypatch)
    yield made
    made.close()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def result(shell: Shell) -> Callable[..., Any]:
    """Runs a workflow that must complete; its result."""

    def run(flow: str, *args: str) -> Any:
        document = shell.run(flow, *args)
        assert document["error"] is None, document
        return document["result"]

    return run
