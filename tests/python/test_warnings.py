"""What is most likely a mistake is reported, at its place; what may be right never is."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from rhythm.lang.python.problems import CODES
from rhythm.lang.report import Compilation
from rhythm.lang.source import render_all
from tests.python.corpus import load
from tests.python.modules import compiled, functions_of
from tests.python.warnings import HEADER, QUIET, WAITING, WARNED


def _compiled(body: str, parameters: str, folder: Path) -> tuple[Compilation, str]:
    text = f"{HEADER}\nasync def workflow({parameters}):\n{textwrap.indent(body, '    ')}\n"
    return compiled(text, folder), text


@pytest.mark.parametrize(("code", "body", "parameters"), WARNED, ids=lambda x: str(x)[:50])
def test_warned_of_once_at_its_place(code: str, body: str, parameters: str, tmp_path: Path) -> None:
    compilation, text = _compiled(body, parameters, tmp_path)
    shown = render_all(compilation.source, compilation.diagnostics)
    assert [found.code for found in compilation.diagnostics] == [code], shown
    [found] = compilation.diagnostics
    line = text.splitlines()[compilation.source.position(found.start)[0] - 1]
    assert (found.severity, "# <-" in line) == ("warning", True), shown
    assert line.partition("# <-")[2].strip() in found.message
    assert found.help
    assert compilation.programs, "a warning prevents nothing"


@pytest.mark.parametrize(("body", "parameters"), QUIET, ids=lambda x: str(x)[:60])
def test_what_may_be_right_is_left_alone(body: str, parameters: str, tmp_path: Path) -> None:
    compilation, _ = _compiled(body, parameters, tmp_path)
    assert render_all(compilation.source, compilation.diagnostics) == ""


@pytest.mark.parametrize("body", WAITING)
def test_wait_without_an_end_is_noted(body: str, tmp_path: Path) -> None:
    compilation, text = _compiled(body, "", tmp_path)
    assert [found.code for found in compilation.diagnostics] == ["P201"]
    limited = text.replace(
        "async def workflow(", '@rhythm.workflow(timeout="3d")\nasync def limited('
    )
    assert functions_of(limited, tmp_path)["limited"].compilation.diagnostics == []


def test_every_warning_has_an_example() -> None:
    by_name = {"P103", "P105"}  # of `rhythm check --app`: tests/cli/test_python_files.py
    shown = {code for code, _, _ in WARNED} | {"P201"} | by_name
    assert {code for code in CODES if code[1] in "12"} == shown


def test_no_program_of_the_corpus_is_warned_of() -> None:
    """All of them run to the same end as in CPython: whatever is reported there would be false."""
    found = [
        render_all(one.source, one.diagnostics)
        for one in (workflow.compilation for workflow in load().workflows.values())
        if one.diagnostics
    ]
    assert found == []


def test_more_wrong_options_than_are_shown_are_an_error_all_the_same(tmp_path: Path) -> None:
    body = "\n".join("await rhythm.sleep(-1)" for _ in range(150))
    compilation, _ = _compiled(body, "", tmp_path)
    assert {found.code for found in compilation.errors} == {"P034"}
    assert not compilation.programs
