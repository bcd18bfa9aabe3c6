"""Each thing that a workflow must not contain has its own message, at its place, with advice."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rhythm.authoring.workflow import Workflow
from rhythm.lang.python.problems import CODES
from rhythm.lang.report import Compilation
from rhythm.lang.source import render_all
from tests.python.modules import compiled
from tests.python.refusals import HEADER, REFUSED


def _compiled(body: str, parameter: str, folder: Path) -> tuple[Compilation, str]:
    text = f"{HEADER}\nasync def workflow({parameter}):\n{textwrap.indent(body, '    ')}\n"
    return compiled(text, folder), text


@pytest.mark.parametrize(("code", "body", "parameter"), REFUSED, ids=lambda x: str(x)[:40])
def test_refused_with_code_place_and_advice(
    code: str, body: str, parameter: str, tmp_path: Path
) -> None:
    compilation, text = _compiled(body, parameter, tmp_path)
    assert [wrong.code for wrong in compilation.errors] == [code]
    [wrong] = compilation.errors
    line = compilation.source.position(wrong.start)[0]
    assert "# <-" in text.splitlines()[line - 1]
    shown = render_all(compilation.source, [wrong])
    assert "^" in shown
    assert f"module.py:{line}:" in shown
    assert wrong.help


def test_messages_are_all_different() -> None:
    """Sixty kinds of mistakes, each with its own words."""
    assert len(REFUSED) >= 60


def test_every_code_has_an_example() -> None:
    shown_elsewhere = {"P001", "P002", "P003"}
    assert {code for code, _, _ in REFUSED} | shown_elsewhere == {
        code for code in CODES if code[1] == "0"
    }


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    body = "import os\nx = {1, 2}\nf = lambda: 1\nreturn missing"
    compilation, _ = _compiled(body, "", tmp_path)
    assert [wrong.code for wrong in compilation.errors] == ["P013", "P051", "P011", "P020"]


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        ('await rhythm.slep("1h")', "did you mean `rhythm.sleep`?"),
        ("charge.delay(1)", "write await charge(…)"),
        ("pack.delay(1)", "write await pack.run(…)"),
        ("return OBJECT.get(1)", "that calls OBJECT.get(…)"),
        ("return date.today()", "that calls date.today(…)"),
        ('await rhythm.signal("go", "3d")', "timeout='3d'"),
        ("a = [[0] * 3] * 3\na[0][0] = 1\nreturn a", "[[0] * 3 for _ in range(3)]"),
    ],
)
def test_advice_can_be_followed(body: str, advice: str, tmp_path: Path) -> None:
    [wrong] = _compiled(body, "", tmp_path)[0].errors
    assert any(advice in help for help in wrong.help)


def test_a_limit_is_refused_only_where_a_signal_would_be_sent_by_that_name(tmp_path: Path) -> None:
    assert not _compiled('rhythm.signal(x, "go", "3d")', "x", tmp_path)[0].errors
    assert not _compiled('rhythm.signal(x, "go")', "x", tmp_path)[0].errors


def test_decorator_that_would_not_run_is_refused() -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def call(*args: Any) -> Any:
            return [await function(*args)]

        return call

    @logged
    async def decorated() -> int:
        return 1

    compiled = Workflow(decorated, "decorated", {}).compilation
    assert [wrong.code for wrong in compiled.errors] == ["P001"]
    assert "another decorator" in compiled.errors[0].message
