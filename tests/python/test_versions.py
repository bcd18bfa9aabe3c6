"""What makes a new version of a Python workflow, and that what runs ends on its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import rhythm
from rhythm.authoring.workflow import Workflow
from tests.app.test_operating import until
from tests.python.modules import functions_of

MODULE = """
import rhythm
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import NamedTuple

LIMIT = 60
RATE = 2
TABLE = {"a": 1, "b": 2}
UNUSED = 1


class Colour(Enum):
    RED = 1


@dataclass
class Order:
    id: str
    count: int = 1


def helper(x):
    return x * RATE


@rhythm.task(name="versions_task")
async def task(x: int, y: int = 1) -> int:
    return x


class Pair(NamedTuple):
    left: int
    right: int


@rhythm.task(name="versions_pair")
async def pair() -> Pair:
    raise NotImplementedError


@rhythm.task(name="versions_time")
async def time() -> datetime:
    raise NotImplementedError


@rhythm.workflow(name="versions", timeout=LIMIT)
async def workflow(order: Order, k: int = 3):
    # a comment
    done = await task(order.count)
    ends = await pair()
    begin = await time()
    end = await time()
    return [helper(done), list(TABLE), k, Colour.RED, ends[0], begin < end]
"""
CHANGES = {
    "comment": ("# a comment", "# another"),
    "layout": ("[helper(done), ", "[helper(done),  "),
    "helper": ("x * RATE", "x + RATE"),
    "constant": ("RATE = 2", "RATE = 3"),
    "type of a constant": ("RATE = 2", "RATE = 2.0"),
    "order of a constant": ('"a": 1, "b": 2', '"b": 2, "a": 1'),
    "default of a parameter": ("k: int = 3", "k: int = 4"),
    "default of a field": ("count: int = 1", "count: int = 2"),
    "member": ("RED = 1", "RED = 2"),
    "name of a task": ("versions_task", "versions_other"),
    "parameter of a task": (
        "x: int, y: int = 1) -> int:\n    return x",
        "z: int, y: int = 1) -> int:\n    return z",
    ),
    "field of a result": ("left: int", "start: int"),
    "type of a result": ("-> Pair", "-> list[int]"),
    "type of a time": ("-> datetime", "-> float"),
    "option that is a constant": ("LIMIT = 60", "LIMIT = 61"),
}
SAME = {
    "nothing": ("RATE = 2", "RATE = 2"),
    "another constant": ("UNUSED = 1", "UNUSED = 2"),
    "lines above": ("import rhythm\n", "import rhythm\n\n\n"),
    "body of a task": ("return x\n", "return x + 1\n"),
    "default of a task": ("y: int = 1", "y: int = 2"),
}


def version(text: str, folder: Path) -> str:
    workflow: Workflow[..., object] = functions_of(text, folder)["workflow"]
    return workflow.program.version


@pytest.mark.parametrize("change", CHANGES)
def test_change_of_what_runs_is_a_new_version(change: str, tmp_path: Path) -> None:
    assert MODULE.count(CHANGES[change][0]) == 1
    assert version(MODULE.replace(*CHANGES[change]), tmp_path) != version(MODULE, tmp_path)


@pytest.mark.parametrize("change", SAME)
def test_change_of_anything_else_is_none(change: str, tmp_path: Path) -> None:
    assert version(MODULE.replace(*SAME[change]), tmp_path) == version(MODULE, tmp_path)


OLD = """
import rhythm


@rhythm.workflow(name="versions_kept")
async def kept(n: int):
    log = [n]
    log.append(await rhythm.signal("go", timeout="1d"))
    if n == 1:
        raise ValueError("one")
    return ["old", log]
"""


def test_execution_ends_on_its_version_when_the_function_is_gone(url: str, tmp_path: Path) -> None:
    old = functions_of(OLD, tmp_path)["kept"]
    with rhythm.Rhythm(url, environment={}, workflows=[old]) as app, app.worker():
        ids = [app.start_workflow("versions_kept", {"n": n}).id for n in (1, 2)]
        for id in ids:
            until(lambda id=id: app.get(id).status == "suspended")
    (tmp_path / "module.py").unlink()
    with rhythm.Rhythm(url, environment={}, workflows=[]) as app, app.worker():
        for id in ids:
            app.signal(id, "go", "later")
        with pytest.raises(rhythm.ExecutionFailed) as error:
            app.result(ids[0], timeout="30s")
        assert app.result(ids[1], timeout="30s") == ["old", [2, "later"]]
    assert error.value.error["code"] == "ValueError"


def test_functions_of_two_modules_cannot_have_one_name(tmp_path: Path) -> None:
    from rhythm.authoring.workflow import PythonWorkflows

    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    text = "async def same() -> int:\n    return 1\n"
    one = functions_of(text, tmp_path / "one")["same"]
    two = functions_of(text, tmp_path / "two")["same"]
    two.__module__ = "another"
    known = PythonWorkflows()
    known.add(Workflow(one, "same", {}))
    known.add(Workflow(one, "same", {}))  # its module was loaded again
    with pytest.raises(rhythm.DuplicateWorkflow, match="two workflows are called 'same'"):
        known.add(Workflow(two, "same", {}))
