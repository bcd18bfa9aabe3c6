"""docs/json-steps.md: its files run, its commands print what is shown, its tables are those of the
code."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from rhythm.lang.steps.compile import compile_steps
from rhythm.lang.steps.conditions import NAMES
from rhythm.lang.steps.paths import CTX
from rhythm.lang.steps.problems import CODES
from rhythm.lang.steps.shapes import APPROVAL, DOCUMENT, EXECUTE, STEPS
from tests.support import forked
from tests.support.world import Execution, World

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "json-steps.md").read_text(encoding="utf-8")
FILES = {
    json.loads(text)["workflow_id"]: text
    for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
}
COMMANDS = re.findall(r"^\$ rhythm (.*)\n((?:(?!\$ |```).*\n)*)", PAGE, re.MULTILINE)


def named(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / f"{name}{'' if name == 'wrong' else '.steps'}.json").write_text(
            text, encoding="utf-8"
        )
    return folder


def ran(folder: Path, *args: str) -> str:
    done = forked.run(args, folder)
    return done.stdout or done.stderr


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_command_prints_what_is_shown(command: str, shown: str, tmp_path: Path) -> None:
    assert ran(named(tmp_path), "-m", "rhythm", *shlex.split(command)) == shown


def test_python_prints_what_is_shown(tmp_path: Path) -> None:
    [program], [shown] = (
        re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL),
        re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL),
    )
    (named(tmp_path) / "app.py").write_text(program, encoding="utf-8")
    assert ran(tmp_path, "app.py") == shown


def test_the_first_file_is_the_example() -> None:
    assert FILES["order_approval"] == (ROOT / "examples" / "order_approval.steps.json").read_text(
        encoding="utf-8"
    )


def test_branches_give_what_the_page_says() -> None:
    programs = list(compile_steps(FILES["checks"], "checks.json").programs_or_raise())
    tasks: dict[str, Any] = {"score": lambda given: {"ada": 20}.get(given["customer"], 1)}

    def ended(customer: str) -> Execution:
        world = World(programs, tasks=tasks)
        world.at(9, lambda: world.publish("order.paid", {"customer": customer, "by": "card"}))
        return world.run("checks", {"customer": customer})

    assert ended("ada").value == {"score": 20, "by": "card"}
    assert (ended("bob").status, ended("bob").value["message"]) == ("blocked", "no credit for bob")


def section(heading: str) -> str:
    return re.split(r"^###? ", PAGE.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[
        0
    ]


def words(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text))


def test_tables_have_every_key_and_operator() -> None:
    common = {"id", "type", "name", "description"}
    assert DOCUMENT.keys.keys() <= words(section("The file"))
    for type, shape in STEPS.items():
        text = section(type).replace('"action": "', "`action` ").replace('"status": "', "`status` ")
        assert shape.keys.keys() - common - (
            {"into", "next"} if type == "parallel" else set()
        ) <= words(text), type
    assert set(NAMES) <= words(section("condition"))
    assert APPROVAL.keys.keys() | EXECUTE.keys() | {"notify"} <= words(section("action"))
    assert {f"ctx.{part}" for part in CTX} <= set(re.findall(r"`(ctx\.\w+)`", PAGE))


def test_table_of_codes_is_that_of_the_module() -> None:
    told = dict(re.findall(r"^\| (S\d+) \| (.*) \|$", PAGE, re.MULTILINE))
    assert told.keys() == CODES.keys()
    assert all(told[code].startswith(meaning) for code, meaning in CODES.items())
