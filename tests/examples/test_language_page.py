"""docs/language.md, for those who follow it with `rhythm run`: its first steps, and what it says
cannot be run there yet."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import forked

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
FIRST_STEPS = re.findall(
    r"```(python|flow|console)\n(.*?)```", PAGE[: PAGE.index("## Tour")], re.DOTALL
)


def without_times(text: str) -> str:
    return re.sub(
        r"in [\d,]+ ms",
        "in … ms",
        re.sub(r"^ *(?:\d+\.\d\ds|[\d:]+:\d\d)  ", "", text, flags=re.MULTILINE),
    )


def rhythm(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return forked.run(["-m", "rhythm", *args], folder)


def run(folder: Path, flow: str, *args: str) -> Any:
    (folder / "page.flow").write_text(flow, encoding="utf-8")
    return json.loads(
        rhythm(folder, "run", "page.flow", "--fast-forward", "--output", "json", *args).stdout
    )


def test_first_steps_print_what_is_shown(tmp_path: Path) -> None:
    (_, tasks), (_, flow), (_, console) = FIRST_STEPS
    (tmp_path / "tasks.py").write_text(tasks, encoding="utf-8")
    (tmp_path / "greet.flow").write_text(flow, encoding="utf-8")
    command, shown = console.split("\n", 1)
    ran = rhythm(tmp_path, *shlex.split(command.removeprefix("$ rhythm ")))
    assert without_times(ran.stderr) + ran.stdout == without_times(shown)
    assert "no problems" in rhythm(tmp_path, "check", "greet.flow", "--app", "tasks.py").stdout


def test_approval_expires_in_a_run(tmp_path: Path) -> None:
    flow = (
        'let answer = await approval({ role: "manager", timeout: "1d" })\nreturn answer.decision\n'
    )
    assert run(tmp_path, flow)["result"] == "expired"


@pytest.mark.parametrize(
    "wait", ['approval({ role: "manager" })', 'event("paid")', 'signal("paid")']
)
def test_wait_for_what_cannot_come_ends_a_run_that_says_so(tmp_path: Path, wait: str) -> None:
    error = run(tmp_path, f"return await {wait}\n")["error"]
    assert error["code"] == "Stuck"
    assert f"waits for {wait.partition('(')[0]}" in error["message"]


def test_signals_sent_and_events_published_in_a_run_arrive(tmp_path: Path) -> None:
    flow = """
      workflow page(ctx, inputs) {
        publish("paid", { by: "ada" })
        send(ctx.id, "go", 1)
        let paid = await event("paid")
        let go = await signal("go")
        let stop = await signal("stop")
        return [paid.data.by, go, stop]
      }
    """
    assert run(tmp_path, flow, "--signal", "stop=2")["result"] == ["ada", 1, 2]


@pytest.mark.parametrize("options", ["queue: 'q'", "priority: 5", "version: 'v'"])
def test_options_for_the_engine_change_nothing_in_a_run(tmp_path: Path, options: str) -> None:
    flow = f"""
      @queue("q") @on("paid") @schedule("0 9 * * *") @version("v2")
      workflow page {{
        let one = await workflow("child", null, {{ {options} }})
        let two = await workflow("child", null, {{ {options} }})
        return [one, two]
      }}
      workflow child(ctx, inputs) {{
        return slice(ctx.id, -2)
      }}
    """
    assert run(tmp_path, flow)["result"] == [".1", ".2"]
