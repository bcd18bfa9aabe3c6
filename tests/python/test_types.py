"""Type checkers see a workflow as an ordinary async function: wrong arguments are errors."""

from __future__ import annotations

from pathlib import Path

from tests.python.type_checkers import EXAMPLES, PROJECT, WRONG, WRONG_LINES, lines_found, mypy
from tests.support.length import long


def test_project_of_a_user_is_clean_and_wrong_arguments_are_found(tmp_path: Path) -> None:
    text = PROJECT + WRONG
    file = tmp_path / "project.py"
    file.write_text(text)
    said = mypy([file], tmp_path)
    assert lines_found([int(line.split(":")[1]) for line in said], text) == WRONG_LINES
    kinds = [line.rpartition("[")[2] for line in said]
    assert kinds == ["arg-type]", "call-arg]", "return-value]"]


@long
def test_examples_are_clean(tmp_path: Path) -> None:
    assert mypy(EXAMPLES, tmp_path) == []
