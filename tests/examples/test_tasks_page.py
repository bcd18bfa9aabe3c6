"""docs/tasks.md is true: its Python is one file of tasks, its workflows run with it, its table is
the decorator's."""

from __future__ import annotations

import datetime
import decimal
import enum
import inspect
import json
import re
import subprocess
import typing
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rhythm
from rhythm.engine.payload import dump
from rhythm.engine.typed import kind_of
from tests.support import forked

PAGE = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text(encoding="utf-8")
TASKS = "\n\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
FLOWS = re.findall(r"```flow\n(.*?)```", PAGE, re.DOTALL)


def python(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return forked.run(args, folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS, encoding="utf-8")
    return tmp_path


def run(folder: Path, flow: str, *args: str) -> Any:
    """How the workflow ended, with the page's tasks."""
    (folder / "page.flow").write_text(flow, encoding="utf-8")
    ran = python(
        folder,
        "-m",
        "rhythm",
        "run",
        "page.flow",
        "--app",
        "tasks.py",
        "--fast-forward",
        "--output",
        "json",
        *args,
    )
    return json.loads(ran.stdout)


@pytest.mark.parametrize("flow", [flow for flow in FLOWS if "//=>" in flow])
def test_workflow_has_the_result_that_is_shown(folder: Path, flow: str) -> None:
    text, shown = flow.split("//=>")
    assert run(folder, text) == {
        "status": "completed",
        "result": json.loads(re.sub("^//", "", shown, flags=re.MULTILINE)),
        "error": None,
    }


@pytest.mark.parametrize("flow", [flow for flow in FLOWS if "//~" in flow])
def test_check_reports_what_is_shown_on_its_line(folder: Path, flow: str) -> None:
    (folder / "page.flow").write_text(flow, encoding="utf-8")
    checked = json.loads(
        python(
            folder, "-m", "rhythm", "check", "page.flow", "--app", "tasks.py", "--format", "json"
        ).stdout
    )
    shown = [
        (n, code)
        for n, line in enumerate(flow.splitlines(), 1)
        for code in re.findall(r"//~ (F\d+)", line)
    ]
    assert [(found["line"], found["code"]) for found in checked["diagnostics"]] == shown


def test_every_workflow_of_the_page_is_tested() -> None:
    assert len(FLOWS) > 5
    assert all("//=>" in flow or "//~" in flow for flow in FLOWS)


def test_unit_tests_of_the_page_pass(folder: Path) -> None:
    ran = python(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tasks.py")
    assert ran.returncode == 0, ran.stdout
    assert "2 passed" in ran.stdout


def test_table_lists_the_options_of_the_decorator() -> None:
    options = {
        name: p.default
        for name, p in inspect.signature(rhythm.task).parameters.items()
        if p.kind is p.KEYWORD_ONLY
    }
    section = PAGE.split("## Options of")[1].split("\n## ")[0]
    table = dict(re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", section, re.MULTILINE))
    assert table.keys() == options.keys()
    assert (options["queue"], table["retries"]) == (None, str(options["retries"]))


@pytest.mark.parametrize("inputs", ['{ item: "tea", size: 1 }', "{ }"])
def test_inputs_that_do_not_fit_fail_at_once(folder: Path, inputs: str) -> None:
    ended = run(
        folder,
        (
            f'return await task("price_of", {inputs}, {{ retries: 1000, backoff: "1d", '
            f'timeout: "1d" }})\n'
        ),
    )
    assert (ended["error"]["code"], ended["error"]["data"]) == (
        "TaskFailed",
        {"task": "price_of", "type": None},
    )


def test_inputs_that_do_not_fit_their_hints_fail_at_once(folder: Path) -> None:
    options = '{ retries: 1000, backoff: "1d" }'
    flow = f'return await task("reserve", {{ item: "tea", count: inputs.count }}, {options})\n'
    assert run(folder, flow, "-i", "count:=2")["result"] == {"item": "tea", "count": 2}
    message = 'task `reserve` failed: InvalidInputs: input `count` must be a whole number, not "2"'
    assert run(folder, flow, "-i", "count=2")["error"]["message"] == message


class Colour(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


NAMES = {
    **vars(typing),
    **vars(uuid),
    **vars(decimal),
    **vars(datetime),
    "Colour": Colour,
    "Point": Point,
}
TYPES = re.findall(
    r"^\| `(.*?)` \| `(.*?)` \| `(.*?)` \| (?:`(.*?)` )?\|$",
    PAGE.split("## Types")[1],
    re.MULTILINE,
)


@pytest.mark.parametrize(("hint", "python", "form", "also"), TYPES, ids=[row[0] for row in TYPES])
def test_types_become_what_the_table_says_and_come_back(
    hint: str, python: str, form: str, also: str
) -> None:
    # the page is ours
    value, kind = eval(python, NAMES), kind_of(eval(hint.replace("\\", ""), NAMES))
    assert json.loads(dump(value, "result")) == json.loads(form)
    assert kind is not None
    assert (kind.fit(json.loads(form)), type(kind.fit(json.loads(form)))) == (value, type(value))
    if also:
        assert kind.fit(json.loads(also)) == (
            datetime.date(2026, 1, 31)
            if "None" in hint
            else 3
            if hint in ("int", "float")
            else value
        )


def test_every_row_of_the_types_is_tested() -> None:
    assert len(TYPES) == 20


@pytest.mark.parametrize(
    "raised",
    [
        "asyncio.CancelledError",
        "SystemExit",
        "KeyboardInterrupt",
        "ExceptionGroup('g', [OSError()])",
    ],
)
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_any_exception_is_the_failure_of_its_task_only(
    folder: Path, kind: str, raised: str
) -> None:
    with (folder / "tasks.py").open("a", encoding="utf-8") as file:
        file.write(f"\n\n@rhythm.task\n{kind} raises():\n    raise {raised}\n")
    flow = """
      let one = await task("raises", null, { settle: true, timeout: "10s" })
      let other = await task("reserve", { item: "tea", count: 2 }, { timeout: "10s" })
      return [one.error.data.type, other.count]
    """
    assert run(folder, flow)["result"] == [re.sub(r"asyncio\.|\(.*", "", raised), 2]


def test_what_a_task_prints_is_on_standard_output_unless_that_is_json(folder: Path) -> None:
    (folder / "tasks.py").write_text(
        'import rhythm\n\n@rhythm.task\ndef say():\n    print("hello")\n', encoding="utf-8"
    )
    (folder / "page.flow").write_text('return await task("say")\n', encoding="utf-8")
    command = ["-m", "rhythm", "run", "page.flow", "--app", "tasks.py"]
    assert python(folder, *command).stdout == "hello\nnull\n"
    as_json = python(folder, *command, "--output", "json")
    assert (json.loads(as_json.stdout)["result"], as_json.stderr) == (None, "hello\n")
