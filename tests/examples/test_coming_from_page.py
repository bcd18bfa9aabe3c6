"""docs/coming-from.md is true: our side of it runs, in each of the ways that it can end."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rhythm.authoring.workflow import default_workflows
from rhythm.errors import ExecutionFailed
from rhythm.worker.handlers import default_tasks
from tests.examples.reader import Reader
from tests.examples.shell import commands_of
from tests.python.engine import run_in_process
from tests.python.modules import functions_of

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text(encoding="utf-8")
(OURS,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
THEIRS = re.findall(r"^```py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def module(tmp_path: Path) -> Iterator[dict[str, Any]]:
    tasks, workflows = dict(default_tasks._tasks), dict(default_workflows._workflows)
    yield functions_of(OURS, tmp_path, keep=True)
    default_tasks._tasks, default_workflows._workflows = tasks, workflows


@pytest.mark.parametrize(
    ("items", "signals", "end"),
    [
        (["tea", "cup"], [("approve", True)], ["parcel with tea", "parcel with cup"]),
        (["tea"], [("approve", False)], "refused"),
        (["tea"], [], "Timeout"),
        (["tea", "kettle"], [("approve", True)], "SoldOut: kettle"),
    ],
)
def test_order_ends_as_the_page_says(
    module: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    items: list[str],
    signals: list[tuple[str, Any]],
    end: Any,
) -> None:
    inputs = {"order_id": "7", "items": items, "amount": 5.0}
    try:
        assert run_in_process(module["order"], inputs, signals) == end
        assert capsys.readouterr().out == ""
    except ExecutionFailed as failed:
        error = failed.error
        assert end in (error["code"], error["message"], error["message"].partition(": ")[2])
        assert capsys.readouterr().out == "refunded payment of 5.0 for 7\n"


def test_the_other_side_is_python() -> None:
    assert len(THEIRS) == 3
    for block in THEIRS:
        ast.parse(block)


def test_lines_for_the_shell_are_commands(tmp_path: Path) -> None:
    """The three lines, in their order, and what comes of them."""
    (lines,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    worker, start, signal = commands_of(lines)
    (tmp_path / "shop.py").write_text(OURS, encoding="utf-8")
    reader = Reader(tmp_path)
    try:
        reader.open("worker", shlex.split(worker))
        while reader.run(start, shlex.split(start))[0] != 0:
            pass  # the worker has not registered it yet
        assert reader.run(signal, shlex.split(signal))[0] == 0
        result = "rhythm result 7"
        assert "parcel with tea" in reader.run(result, result.split())[1]
    finally:
        reader.terminals["worker"].end()
