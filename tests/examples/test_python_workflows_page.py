"""docs/python-workflows.md is true: its blocks are one file that runs, and what it refuses is."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rhythm.errors import InvalidInputs
from rhythm.ir.input_schema import check_inputs
from rhythm.lang.python.functions import FUNCTIONS
from rhythm.lang.python.problems import CODES
from rhythm.worker.handlers import default_tasks
from tests.python.engine import run_in_process
from tests.python.mistakes import MISTAKES, said_to
from tests.python.modules import functions_of
from tests.python.rewrites import REWRITES, WITHOUT, compiled_body, problem_in, written

PAGE = (Path(__file__).parents[2] / "docs" / "python-workflows.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


WARNED = re.findall(r"^```python warned (P\d+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def module(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """The file that the blocks of the page are; its tasks are there during the test."""
    known = dict(default_tasks._tasks)
    yield functions_of("\n".join(BLOCKS), tmp_path, keep=True)
    default_tasks._tasks = known


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("order", {"order_id": "7", "items": ["tea", "cup"]}),
        ("order", {"order_id": "7", "items": [], "total": 5000.0}),
        ("cheapest", {"offers": ["abc", "d"]}),
        ("cheapest", {"offers": ["abcde"], "limit": 1.0}),
        ("quote", {"size": "l", "amounts": [10.0, 20.5]}),
    ],
)
def test_the_page_runs_as_it_does_in_python(
    name: str, inputs: dict[str, Any], module: dict[str, Any]
) -> None:
    native = {**inputs, "size": module["Size"](inputs["size"])} if "size" in inputs else inputs
    assert run_in_process(module[name], inputs) == asyncio.run(module[name].local(**native))


def test_inputs_are_kept_as_the_page_says(module: dict[str, Any]) -> None:
    given = {"order_id": "7", "items": [{"sku": "a", "price": 3}], "wait": "1h30m", "shop": "x"}
    assert run_in_process(module["parcel"], given) == {"order": "7", "total": 3.0, "wait_s": 5400.0}
    given["items"] = [{"sku": "a", "price": "3"}]
    with pytest.raises(InvalidInputs, match=re.escape(re.findall(r"``(.*?)``", PAGE)[0])):
        check_inputs("parcel", module["parcel"].inputs, given)


@pytest.mark.parametrize(("code", "text"), WARNED)
def test_what_the_page_warns_of_is_warned_of(code: str, text: str, tmp_path: Path) -> None:
    made = functions_of("\n".join([*BLOCKS[:1], text]), tmp_path)
    found = made[re.search(r"async def (\w+)", text)[1]].compilation.diagnostics  # type: ignore[index]  # there is one
    assert [one.code for one in found] == [code]
    assert found[0].message in PAGE or code == "P104"


@pytest.mark.parametrize(
    ("code", "wrong", "right"),
    [(code, *each) for code, rewrites in REWRITES.items() for each in rewrites],
)
def test_refusal_has_a_rewrite_that_compiles(
    code: str, wrong: str, right: str, tmp_path: Path
) -> None:
    assert problem_in(wrong, tmp_path).code == code
    assert compiled_body(right, tmp_path).diagnostics == []


def test_every_code_has_a_rewrite() -> None:
    assert REWRITES.keys() | WITHOUT.keys() == CODES.keys()


def test_page_has_the_messages_that_people_see(tmp_path: Path) -> None:
    """`python -m tests.python.rewrites` writes them anew."""
    assert written(tmp_path) == PAGE


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_told_once_with_what_to_write_instead(name: str) -> None:
    said = said_to(name)
    assert said.count("error[") == said.count("= help: ") == 1


def test_there_are_twenty_mistakes() -> None:
    assert len(MISTAKES) == 20


def test_page_names_all_functions_of_python_that_are_there() -> None:
    (row,) = re.findall(r"^\| functions \| `(.*?)`", PAGE, re.MULTILINE)
    known = {name.removeprefix("builtins.") for name in FUNCTIONS if name.startswith("builtins.")}
    assert set(row.split()) == known
