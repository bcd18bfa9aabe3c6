"""A task or workflow that is defined anew takes the place of the old one: in notebooks, and when a
module is loaded again."""

from __future__ import annotations

import functools
import importlib
import linecache
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import rhythm
from rhythm.app import Rhythm
from rhythm.authoring.workflow import default_workflows
from rhythm.worker.handlers import default_tasks

Cell = Callable[[str], dict[str, Any]]
TASK = """
import rhythm

@rhythm.task
def redefined_task(n: int) -> str:
    return "{word}"
"""
WORKFLOW = """
import rhythm

@rhythm.workflow
async def redefined(n: int) -> {kind}:
    return {value}
"""


@pytest.fixture(autouse=True)
def registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test defines is forgotten afterwards."""
    monkeypatch.setattr(default_tasks, "_tasks", {})
    monkeypatch.setattr(default_workflows, "_workflows", {})


@pytest.fixture(params=["/tmp/ipykernel_77/{}.py", "<ipython-input-{}>"])
def cell(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cell]:
    """Runs a text as a notebook does: each run has a file name of its own, known to `linecache`."""
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    names: list[str] = []

    def run(text: str) -> dict[str, Any]:
        name = str(request.param).format(len(names) + 1)
        names.append(name)
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec"), vars(main))
        return vars(main)

    yield run
    for name in names:
        linecache.cache.pop(name, None)


def test_cells_that_run_again_are_seen_by_runs_starts_and_workers_that_run(
    cell: Cell, url: str
) -> None:
    cell(TASK.format(word="old"))
    cell(WORKFLOW.format(kind="str", value="await redefined_task.run(n)"))
    with Rhythm(url, (), environment={}, worker_poll_interval="20ms") as app, app.worker():

        def results() -> list[Any]:
            ran = app.run("redefined", {"n": 1})
            started = app.start(cell("")["redefined"], 1).result(timeout="60s")
            return [ran, started, app.queue_task("redefined_task", {"n": 1}).result(timeout="60s")]

        assert results() == ["old", "old", "old"]
        cell("# a comment moves it to another line\n" + TASK.format(word="new"))
        assert results() == ["new", "new", "new"]
        cell(WORKFLOW.format(kind="list[str]", value="[await redefined_task.run(n)]"))
        assert results() == [["new"], ["new"], "new"]


def test_execution_goes_on_with_the_workflow_that_it_began_with(cell: Cell, url: str) -> None:
    waits = 'await rhythm.signal("go")'
    cell(WORKFLOW.format(kind="object", value=waits))
    with Rhythm(url, (), environment={}, worker_poll_interval="20ms") as app, app.worker():
        old = app.start(cell("")["redefined"], 1)
        cell(WORKFLOW.format(kind="object", value="n"))
        assert app.start(cell("")["redefined"], 2).result(timeout="60s") == 2
        app.signal(old.id, "go", "ahead")
        assert old.result(timeout="60s") == "ahead"


@pytest.mark.parametrize("again", ["reload", "import"])
def test_module_that_is_loaded_again_replaces_what_it_had_defined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "redefined_module.py"

    def load(text: str) -> None:
        file.write_text(text)
        if again == "import":
            monkeypatch.delitem(sys.modules, file.stem, raising=False)
        known = sys.modules.get(file.stem)
        importlib.reload(known) if known else importlib.import_module(file.stem)

    for number, word in enumerate(("old", "new", "newest")):
        load("#\n" * number + TASK.format(word=word) + WORKFLOW.format(kind="int", value=number))
        assert default_tasks["redefined_task"](1) == word
        assert f"return {number}" in default_workflows["redefined"].compilation.source.text
    monkeypatch.delitem(sys.modules, file.stem)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (TASK.format(word="one"), rhythm.DuplicateTask),
        (WORKFLOW.format(kind="int", value="1"), rhythm.DuplicateWorkflow),
    ],
    ids=["task", "workflow"],
)
def test_two_functions_in_one_text_are_a_mistake_that_names_both_lines(
    cell: Cell, text: str, error: type[Exception]
) -> None:
    cell(text)
    cell(text)
    with pytest.raises(error) as refused:
        cell(text + text)
    lines = [line.rpartition(":")[2] for line in str(refused.value).splitlines()[1:3]]
    assert lines == ["4", "10"]


def test_functions_of_two_modules_are_a_mistake_that_names_both_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("redefined_here", "redefined_there"):
        (tmp_path / f"{name}.py").write_text(TASK.format(word=name))
    importlib.import_module("redefined_here")
    with pytest.raises(rhythm.DuplicateTask) as refused:
        importlib.import_module("redefined_there")
    assert "redefined_here.py:4" in str(refused.value)
    assert "redefined_there.py:4" in str(refused.value)
    monkeypatch.delitem(sys.modules, "redefined_here")


def test_task_that_is_added_while_a_worker_walks_through_them_does_not_disturb_it() -> None:
    rhythm.task(name="redefined_one")(lambda: 1)
    walked = []
    for name in default_tasks:
        rhythm.task(name=f"{name}_more")(lambda: 1)
        walked.append(name)
    assert (walked, len(default_tasks)) == (["redefined_one"], 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (5, "goes above a function, not 5"),
        ("charge", r"@rhythm.task\(name='charge'\)"),
        (functools.partial(print, 1), r"write rhythm.task\(name=…\)"),
    ],
)
def test_what_cannot_be_a_task_is_refused_with_what_to_write(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        rhythm.task(given)
