"""Inputs on the command line: read by the types that a workflow declares, and shown with them."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Shell

ORDER = """\
workflow order(
  id: text,
  amount: number = 3,
  gift: truth = false,
  tags: [text] = [],
  address: { zip: text }?,
  size: 1 | 2 = 1,
  wait: duration = "1h",
  either: integer | text = 0,
) {
  return [id, amount, gift, tags, address, size, wait, either]
}
"""
SHOP = """\
from dataclasses import dataclass

import rhythm


@dataclass
class Item:
    sku: str
    qty: int = 1


@rhythm.workflow
async def shop(items: list[Item], note: str | None = None) -> int:
    return sum(item.qty for item in items)
"""
GIVEN = {
    "id": ("5", "5"),
    "amount": ("5", 5),
    "gift": ("true", True),
    "tags": ('["a"]', ["a"]),
    "address": ('{"zip": "1"}', {"zip": "1"}),
    "size": ("2", 2),
    "wait": ("30m", 1800),
    "either": ("5", "5"),
}


def given(**inputs: str) -> list[str]:
    return [part for key, text in inputs.items() for part in ("-i", f"{key}={text}")]


def test_text_is_read_as_json_where_the_type_allows_no_text(shell: Shell) -> None:
    shell.write("order.flow", ORDER)
    ran = shell.rhythm("run", "order.flow", "-q", *given(**{k: v[0] for k, v in GIVEN.items()}))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout) == [value for _, value in GIVEN.values()]


def test_null_is_read_where_null_is_allowed(shell: Shell) -> None:
    shell.write("order.flow", ORDER)
    ran = shell.rhythm("run", "order.flow", "-q", *given(id="A", address="null"))
    assert json.loads(ran.stdout)[4] is None


@pytest.mark.parametrize(
    ("key", "text", "advice"),
    [
        ("amount", "five", "must be number, not text: write it as JSON, such as -i amount=5"),
        ("gift", "yes", "must be truth, not text: write it as JSON, such as -i gift=true"),
        (
            "tags",
            "a,b",
            """must be [text], not text: write it as JSON, such as -i 'tags=["a", "b"]'""",
        ),
        ("address", "x", """such as -i 'address={"key": "value"}'"""),
    ],
)
@pytest.mark.parametrize("command", ["run", "start"])
def test_text_that_cannot_be_read_is_refused(
    shell: Shell, command: str, key: str, text: str, advice: str
) -> None:
    shell.write("order.flow", ORDER)
    ran = shell.rhythm(command, "order.flow", *given(id="A", **{key: text}))
    assert ran.returncode == 2
    assert f"-i {key}={text}: the input `{key}` of workflow `order` " in ran.stderr
    assert advice in ran.stderr


@pytest.mark.parametrize("command", ["run", "start"])
def test_inputs_that_do_not_fit_are_refused(shell: Shell, command: str) -> None:
    shell.write("order.flow", ORDER)
    ran = shell.rhythm(command, "order.flow", "-i", "id:=7")
    assert (ran.returncode, ran.stderr) == (
        2,
        "rhythm: the input `id` of workflow `order` must be text, not a number\n",
    )
    ran = shell.rhythm(command, "order.flow", "-i", "id=7", "-i", "amuont=7")
    assert ran.returncode == 2
    assert "workflow `order` has no input `amuont`; did you mean `amount`?" in ran.stderr


def test_workflows_shows_the_inputs_with_type_and_default(shell: Shell) -> None:
    shell.write("order.flow", ORDER)
    shell.write("shop.py", SHOP)
    shell.rhythm("start", "order.flow", "-i", "id=A")
    shell.rhythm("start", "shop.py", "-i", "items=[]")
    shown = shell.rhythm("workflows", "order").stdout
    table = [line.split(maxsplit=1) for line in shown.partition("\n\n")[2].splitlines()]
    assert [row[0] for row in table] == ["INPUT", *GIVEN]
    assert table[1][1].split() == ["text", "required"]
    assert table[5][1].split(maxsplit=4) == ["{", "zip:", "text", "}", "| null  null"]
    shop = shell.rhythm("workflows", "shop").stdout
    assert "items  [{ sku: text, qty: integer = 1 }]  required" in shop
    [document] = shell.rhythm("workflows", "shop", "--output", "json").stdout.splitlines()[:1]
    assert document == "{"
    whole = json.loads(shell.rhythm("workflows", "shop", "--output", "json").stdout)
    assert whole["inputs"]["required"] == ["items"]


def test_schedule_takes_the_inputs_that_the_workflow_declares(shell: Shell) -> None:
    shell.write("order.flow", ORDER)
    shell.rhythm("start", "order.flow", "-i", "id=A")
    ran = shell.rhythm("schedules", "create", "nightly", "order", "--every", "1d")
    assert ran.returncode == 2
    assert "workflow `order` also needs the input `id`" in ran.stderr
    create = ("schedules", "create", "nightly", "order", "--every", "1d")
    made = shell.rhythm(*create, *given(id="5", amount="5"))
    assert made.returncode == 0, made.stderr
    shown = json.loads(shell.rhythm("schedules", "show", "nightly", "--output", "json").stdout)
    assert shown["inputs"] == {"id": "5", "amount": 5}
