"""docs/python.md is true: each section's program prints what is shown, and its tables are those of
the code."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from rhythm.app import Handle, Rhythm
from tests.support import forked

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("program", "shown"), PROGRAMS)
def test_program_prints_what_is_shown(tmp_path: Path, program: str, shown: str) -> None:
    (tmp_path / "workflows").mkdir()
    if 'paths=["./workflows"]' in program:
        (flow,) = re.findall(r"```js\n(.*?)```", PAGE, re.DOTALL)
        (tmp_path / "workflows" / "order.flow").write_text(flow, encoding="utf-8")
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("RHYTHM_") or name.startswith("RHYTHM_TEST_")
    }
    ran = forked.run(["program.py"], tmp_path, env=plain)
    assert (ran.stderr, ran.stdout) == ("", shown)


def test_every_program_of_the_page_is_run() -> None:
    assert len(PROGRAMS) == PAGE.count("```python") == 8


def test_table_of_methods_names_all_of_them() -> None:
    (table,) = re.findall(r"\| method \| does \|\n(.*?)\n\n", PAGE, re.DOTALL)
    named = set(re.findall(r"`(\w+)\(", table.replace("| ", "|")))
    public = {
        name for name in dir(Rhythm) if callable(getattr(Rhythm, name)) and not name.startswith("_")
    }
    assert named == public - {"close", "program"}
    for name in (
        name
        for name, member in vars(Handle).items()
        if callable(member) and not name.startswith("_")
    ):
        assert f"`{name}(" in PAGE


def test_table_of_rooms_names_their_methods() -> None:
    (table,) = re.findall(r"\| room \| called \| .*?\n(.*?)\n\n", PAGE, re.DOTALL)
    flat = {
        name: method.__wrapped__
        for name, method in vars(Rhythm).items()
        if hasattr(method, "__wrapped__")
    }
    called = {name for name, method in flat.items() if method.__name__ == "__call__"}
    named: dict[str, str] = {}
    for room, listed, methods in re.findall(
        r"^\| `app\.(\w+)` \|(.*?)\| (.*) \|$", table, re.MULTILINE
    ):
        named |= {
            (own or method): f"{room}.{method}"
            for method, own in re.findall(r"`(\w+)`(?: \(`(\w+)`\))?", methods)
        }
        named |= {
            own or room: f"{room}.__call__" for own in re.findall(r"lists(?: \(`(\w+)`\))?", listed)
        }
    expected = {
        name: method.__qualname__[0].lower() + method.__qualname__[1:]
        for name, method in flat.items()
    }
    assert called - named.keys() == {"bulk", "overview", "why"}  # which are nothing else
    assert named == {
        name: method for name, method in expected.items() if name not in ("bulk", "overview", "why")
    }
