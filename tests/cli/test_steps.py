"""JSON steps on the command line: every command that takes a workflow file takes them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Shell

ORDER = (Path(__file__).parents[2] / "examples" / "order_approval.steps.json").read_text(
    encoding="utf-8"
)
SMALL, BIG = '{"order": {"total": 1}}', '{"order": {"total": 99999}}'


def test_check_takes_steps_by_file_folder_and_standard_input(shell: Shell) -> None:
    (shell.folder / "flows").mkdir()
    shell.write("flows/order.steps.json", ORDER)
    shell.write("flows/package.json", "{}")
    shell.write("flows/a.flow", "return 1")
    assert shell.rhythm("check", "flows").stdout == "2 files, 2 workflows: no problems\n"
    assert (
        shell.rhythm("check", "flows/order.steps.json").stdout
        == "1 file, 1 workflow: no problems\n"
    )
    assert shell.rhythm("check", "-", stdin=ORDER).stdout == "1 file, 1 workflow: no problems\n"
    wrong = shell.rhythm("check", "flows/package.json", "--format", "json")
    assert (
        wrong.returncode,
        [each["code"] for each in json.loads(wrong.stdout)["diagnostics"]],
    ) == (1, ["S005"])


def test_check_looks_up_the_tasks_of_an_application(shell: Shell) -> None:
    shell.write("order.steps.json", ORDER)
    shell.write(
        "tasks.py",
        "import rhythm\n\n\n@rhythm.task\ndef notify(recipients: list, text: str) -> None: ...\n",
    )
    found = json.loads(
        shell.rhythm("check", "order.steps.json", "--app", "tasks.py", "--format", "json").stdout
    )["diagnostics"]
    assert [(each["code"], each["label"]) for each in found] == [
        ("S104", "/steps/1/execute/0/type"),
        ("S104", "/steps/1/execute/0/message"),
    ]


def test_run_prints_the_outcome(shell: Shell) -> None:
    shell.write("order.json", ORDER)
    ran = shell.rhythm("run", "order.json", "--inputs", SMALL, "--quiet")
    assert (ran.returncode, json.loads(ran.stdout)) == (0, {"outcome": "allowed"})


def test_run_shows_what_blocked_it_under_its_step(shell: Shell) -> None:
    shell.write(
        "stop.json",
        (
            '{"workflow_id": "stop", "steps": [\n  {"id": "no", "type": "action", "action": '
            '"block", "reason": "closed"}\n]}'
        ),
    )
    ran = shell.rhythm("run", "stop.json", "--quiet")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(
        'blocked[Blocked]: closed\n  ┌─ stop.json:2:10\n2 │   {"id": "no", '
    )
    document = json.loads(shell.rhythm("run", "stop.json", "--output", "json").stdout)
    assert (document["status"], document["result"], document["error"]["data"]) == (
        "blocked",
        None,
        {"step": "no"},
    )


def test_a_flow_finds_the_steps_beside_it(shell: Shell) -> None:
    for file, name in (("order_approval.steps.json", "order_approval"), ("other.json", "other")):
        shell.write(file, ORDER.replace('"order_approval"', f'"{name}"'))
    shell.write(
        "main.flow",
        (
            'let a = await workflow("order_approval", inputs)\nlet b = await '
            'workflow("other", inputs)\nreturn [a, b]'
        ),
    )
    ran = shell.rhythm("run", "main.flow", "--inputs", SMALL, "--quiet")
    assert json.loads(ran.stdout) == [{"outcome": "allowed"}, {"outcome": "allowed"}]


def test_listing_and_graph_show_the_steps(shell: Shell) -> None:
    shell.write("order.steps.json", ORDER)
    assert "await approval(" in shell.rhythm("listing", "order.steps.json").stdout
    assert "require_approval: approval(" in shell.rhythm("graph", "order.steps.json").stdout
    assert (
        json.loads(shell.rhythm("listing", "order.steps.json", "--format", "json").stdout)[
            "language"
        ]
        == "steps"
    )


def test_start_registers_a_file_and_waits_for_its_end(shell: Shell) -> None:
    shell.write("order.steps.json", ORDER)
    shell.write("tasks.py", "import rhythm\n")
    ran = shell.rhythm(
        "start", "order.steps.json", "--inputs", SMALL, "--wait", "--app", "tasks.py"
    )
    assert (ran.returncode, json.loads(ran.stdout)) == (0, {"outcome": "allowed"})
    assert shell.rhythm("workflows").stdout.splitlines()[1].startswith("order_approval")
    missing = shell.rhythm("start", "./order")
    assert (missing.returncode, missing.stderr.strip()) == (
        2,
        "rhythm: ./order is neither the name of a workflow nor a .flow or .json file",
    )


def test_show_names_the_step_that_waits(shell: Shell) -> None:
    shell.write(
        "wait.json",
        (
            '{"workflow_id": "hold", "steps": [\n  {"id": "w", "type": "wait", "signal": '
            '"go", "timeout": "1h"}\n]}'
        ),
    )
    shell.write("tasks.py", "import rhythm\n")
    shell.rhythm(
        "start", "wait.json", "--id", "h1", "--wait", "--app", "tasks.py", "--timeout", "1s"
    )
    assert "signal go (step w, line 2)" in shell.rhythm("show", "h1").stdout


def test_a_blocked_execution_is_shown_as_what_it_is(shell: Shell) -> None:
    shell.write(
        "stop.json",
        (
            '{"workflow_id": "stop", "steps": [\n  {"id": "no", "type": "action", "action": '
            '"block", "reason": "closed"}\n]}'
        ),
    )
    shell.write("tasks.py", "import rhythm\n")
    ran = shell.rhythm("start", "stop.json", "--id", "s1", "--wait", "--app", "tasks.py")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "blocked[Blocked]: closed" in ran.stderr
    assert "blocked" in shell.rhythm("list", "--status", "blocked").stdout
    shown = shell.rhythm("show", "s1").stdout
    assert "status      blocked" in shown
    assert "blocked[Blocked]: closed\n  ┌─ stop.json:2:10" in shown
    assert "■ blocked stop after" in shell.rhythm("trace", "s1").stdout
    again = shell.rhythm("retry", "s1")
    assert (again.returncode, "was blocked, which is its outcome" in again.stderr) == (1, True)
    assert shell.rhythm("doctor").returncode == 0


def test_fmt_leaves_json_alone(shell: Shell) -> None:
    (shell.folder / "flows").mkdir()
    shell.write("flows/order.steps.json", ORDER)
    shell.write("flows/a.flow", "return 1\n")
    assert (
        shell.rhythm("fmt", "--check", "flows").returncode,
        (shell.folder / "flows/order.steps.json").read_text(),
    ) == (0, ORDER)
    refused = shell.rhythm("fmt", "flows/order.steps.json")
    assert (refused.returncode, "any formatter of JSON will do" in refused.stderr) == (2, True)
