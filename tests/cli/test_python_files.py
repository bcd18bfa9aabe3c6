"""Python files on the command line: `check`, `fmt`, `run`, `graph`, `listing`, `convert`, `start`."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Shell

SHOP = '''\
"""A shop."""

import rhythm


@rhythm.task
def charge(order: str, amount: float) -> str:
    if amount > 1000:
        raise ValueError("over the limit")
    return f"{order}/1"


@rhythm.workflow
async def left(n: int) -> int:
    return 10 // n


@rhythm.workflow
async def order(id: str, amount: float, n: int = 1) -> dict:
    receipt = await charge.run(id, amount)
    return {"receipt": receipt, "left": await left(n)}
'''
BROKEN = """\
import rhythm


@rhythm.workflow
async def one(x: int) -> int:
    f = lambda y: y
    return await later(x)


@rhythm.workflow
async def two(x: int) -> str:
    return open("x")


@rhythm.task
async def later(x: int) -> int:
    return x
"""


def test_check_reports_the_problems_of_all_workflows_of_a_file(shell: Shell) -> None:
    shell.write("broken.py", BROKEN)
    ran = shell.rhythm("check", "broken.py", "--format", "json")
    found = json.loads(ran.stdout)["diagnostics"]
    assert [(d["file"], d["code"], d["line"], d["column"]) for d in found] == [
        ("broken.py", "P011", 6, 9),
        ("broken.py", "P023", 12, 12),
    ]
    assert ran.returncode == 1
    shown = shell.rhythm("check", "broken.py").stdout
    assert "6 │     f = lambda y: y\n  │         ^^^^^^^^^^^\n" in shown
    assert shown.endswith("1 file: 2 errors\n")


def test_check_knows_python_workflows_beside_flow_files(shell: Shell) -> None:
    shell.write("shop.py", SHOP)
    shell.write("a.flow", 'return await workflow("order", { id: "1", amount: 2 })')
    ran = shell.rhythm("check", "shop.py", "a.flow")
    assert (ran.returncode, ran.stdout) == (0, "2 files, 3 workflows: no problems\n")


@pytest.mark.parametrize("command", ["run", "graph", "listing", "convert", "start"])
def test_file_that_does_not_compile_is_refused_with_all_problems(
    shell: Shell, command: str
) -> None:
    shell.write("broken.py", BROKEN)
    ran = shell.rhythm(command, "broken.py")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.count("error[P") == 2
    assert ran.stderr.endswith("rhythm: broken.py does not compile\n")


@pytest.mark.parametrize("command", ["run", "graph", "listing", "convert"])
def test_file_without_workflows_is_refused(shell: Shell, command: str) -> None:
    ran = shell.rhythm(command, "tasks.py")
    assert ran.returncode == 2
    assert "tasks.py has no workflow: write `@rhythm.workflow`" in ran.stderr


def test_app_that_does_not_compile_shows_all_problems(shell: Shell) -> None:
    shell.write("broken.py", BROKEN)
    shell.write("a.flow", "return 1")
    ran = shell.rhythm("run", "a.flow", "--app", "broken.py")
    assert ran.returncode == 2
    assert ran.stderr.count("error[P") == 2
    assert "Traceback" not in ran.stderr


def test_check_finds_one_name_in_two_files(shell: Shell) -> None:
    """No database takes them together."""
    shell.write("shop.py", SHOP)
    shell.write("other.flow", "workflow order() { return 1 }")
    ran = shell.rhythm("check", "shop.py", "other.flow", "--format", "json")
    found = json.loads(ran.stdout)["diagnostics"]
    assert ran.returncode == 1
    assert [(d["code"], d["file"], d["line"]) for d in found] == [
        ("F021", "shop.py", 18),
        ("F021", "other.flow", 1),
    ]


def test_check_of_a_flow_needs_only_the_tasks_of_its_app(shell: Shell) -> None:
    shell.write("broken.py", BROKEN)
    shell.write("good.flow", 'workflow good() { return await task("later", { x: 1 }) }')
    ran = shell.rhythm("check", "good.flow", "--app", "broken.py")
    assert (ran.returncode, ran.stdout) == (0, "1 file, 1 workflow: no problems\n")


def test_fmt_leaves_python_alone(shell: Shell) -> None:
    shell.write("shop.py", SHOP)
    ran = shell.rhythm("fmt", "shop.py")
    assert (ran.returncode, shell.read("shop.py")) == (2, SHOP)
    assert "shop.py is Python, and is left as it is" in ran.stderr


def test_run_calls_the_tasks_and_workflows_of_the_file(shell: Shell) -> None:
    shell.write("shop.py", SHOP)
    given = ("--workflow", "order", "-i", "id=A", "-i", "amount:=1", "-i", "n:=4", "--quiet")
    ran = shell.rhythm("run", "shop.py", *given)
    assert (ran.returncode, json.loads(ran.stdout)) == (0, {"receipt": "A/1", "left": 2})
    unknown = shell.rhythm("run", "shop.py", "--workflow", "ordr")
    assert unknown.stderr == "rhythm: shop.py has no workflow `ordr`; did you mean `order`?\n"


def test_run_refuses_inputs_that_do_not_fit_the_signature(shell: Shell) -> None:
    shell.write("shop.py", SHOP)
    ran = shell.rhythm("run", "shop.py", "--workflow", "order", "-i", "id=A")
    assert ran.returncode == 2
    assert "workflow `order` also needs the input `amount`" in ran.stderr


def test_failure_of_a_run_shows_the_lines_of_python(shell: Shell) -> None:
    shell.write("shop.py", SHOP)
    given = ("--workflow", "order", "-i", "id=A", "-i", "amount:=1", "-i", "n:=0", "--quiet")
    ran = shell.rhythm("run", "shop.py", *given)
    assert ran.returncode == 1
    assert ran.stderr == (
        "failed[ChildFailed]: `left` failed: integer division or modulo by zero\n"
        "   ┌─ shop.py:21:47\n"
        '21 │     return {"receipt": receipt, "left": await left(n)}\n'
        "   │                                               ^\n"
        "failed[ZeroDivisionError]: integer division or modulo by zero\n"
        "   ┌─ shop.py:15:12\n"
        "15 │     return 10 // n\n"
        "   │            ^\n"
    )


def test_flow_file_starts_a_python_workflow_of_app(shell: Shell) -> None:
    shell.write("shop.py", SHOP)
    shell.write("a.flow", 'return await workflow("left", { n: 5 })')
    assert shell.rhythm("run", "a.flow", "--app", "shop.py", "--quiet").stdout == "2\n"


def test_graph_and_listing_have_the_lines_of_python(shell: Shell) -> None:
    shell.write("shop.py", SHOP)
    drawn = shell.rhythm("graph", "shop.py", "--workflow", "order").stdout
    assert '20  ● receipt = task("charge", { order: id, amount })' in drawn
    listed = shell.rhythm("listing", "shop.py").stdout
    assert "left  python  version " in listed
    assert "return py.floordiv(10, n)" in listed


def test_converted_file_is_formatted_and_runs_to_the_same_result(shell: Shell) -> None:
    shell.write("shop.py", SHOP)
    shell.write("shop.flow", shell.rhythm("convert", "shop.py").stdout)
    assert shell.rhythm("check", "shop.flow").stdout == "1 file, 2 workflows: no problems\n"
    assert shell.rhythm("fmt", "--check", "shop.flow").returncode == 0
    given = ("--workflow", "order", "-i", "id=A", "-i", "amount:=1", "--quiet")
    results = [
        shell.rhythm("run", file, "--app", "shop.py", *given).stdout
        for file in ("shop.py", "shop.flow")
    ]
    assert results[0] == results[1] != ""
    one = shell.rhythm("convert", "shop.py", "--workflow", "left").stdout
    assert one.startswith("workflow left(n: integer) {\n")
    assert "order" not in one


def test_convert_refuses_what_flow_cannot_hold(shell: Shell) -> None:
    text = SHOP.replace(
        "@rhythm.workflow\nasync def left", '@rhythm.workflow(name="what is left")\nasync def left'
    )
    shell.write("shop.py", text)
    ran = shell.rhythm("convert", "shop.py")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "the workflow `what is left` cannot be written in .flow" in ran.stderr
    shell.write(
        "nul.py", 'import rhythm\n\n\n@rhythm.workflow\nasync def nul() -> str:\n    return "\\0"\n'
    )
    assert "cannot hold the character NUL" in shell.rhythm("convert", "nul.py").stderr
    assert shell.rhythm("convert", "a.flow").returncode == 2


def test_started_file_shows_its_lines(shell: Shell) -> None:
    shell.write("shop.py", SHOP)
    first = shell.rhythm(
        "start", "shop.py", "--id", "A1", "-i", "n:=5", "--wait", "--app", "shop.py"
    )
    assert (first.returncode, first.stdout) == (0, "2\n")
    given = ("-i", "id=A", "-i", "amount:=2000", "--id", "A2")
    failed = shell.rhythm("start", "order", *given, "--wait", "--app", "shop.py")
    assert failed.returncode == 1
    shown = shell.rhythm("show", "A2").stdout
    assert "of shop.py\n" in shown
    assert "20 │     receipt = await charge.run(id, amount)\n   │                     ^" in shown
    assert "line 20: receipt = await charge.run(id, amount)" in shell.rhythm("trace", "A2").stdout
    assert "\n\n\n" not in shown


def test_name_in_app_is_started_on_a_new_database(shell: Shell) -> None:
    shell.write("shop.py", SHOP)
    ran = shell.rhythm("start", "left", "-i", "n:=2", "--wait", "--app", "shop.py")
    assert (ran.returncode, ran.stdout) == (0, "5\n")


def test_check_with_an_app_finds_names_that_there_are_not(shell: Shell) -> None:
    shell.write("shop.py", SHOP + """

@rhythm.workflow
async def by_name(id: str):
    await rhythm.run_task("chrge", {"order": id, "amount": 1})
    await rhythm.run_task("charge", {"order": id, "amount": "1"})
    await rhythm.run_workflow("lft", {"n": 1})
""")  # fmt: skip
    shell.write("other.flow", "workflow left2 { return 1 }")
    alone = shell.rhythm("check", "shop.py")
    assert alone.stdout == "1 file, 3 workflows: no problems\n"
    ran = shell.rhythm("check", "shop.py", "other.flow", "--app", "shop.py", "--format", "json")
    found = json.loads(ran.stdout)["diagnostics"]
    assert [(d["code"], d["severity"], d["line"], d["help"]) for d in found] == [
        ("P103", "warning", 26, 'did you mean "charge"?'),
        ("P104", "warning", 27, "pass a number"),
        ("P105", "warning", 28, 'did you mean "left"?'),
    ]
    assert ran.returncode == 0


def test_check_lists_failures_that_nobody_handles(shell: Shell) -> None:
    shell.write("shop.py", SHOP)
    shell.write("a.flow", 'workflow a {\n  await task("charge")\n}')
    ran = shell.rhythm("check", "--failures", "shop.py", "a.flow")
    assert ran.stdout.splitlines()[1:] == [
        "",
        "what ends a workflow if it fails:",
        "  shop.py:20  order  task charge",
        "  shop.py:21  order  workflow left",
        "  a.flow:2  a  task charge",
    ]
    assert ran.returncode == 0
    ran = shell.rhythm("check", "--failures", "a.flow", "--format", "json")
    assert json.loads(ran.stdout)["failures"] == [
        {"file": "a.flow", "workflow": "a", "line": 2, "column": 9, "awaits": "task charge"}
    ]
    shell.write("b.flow", "workflow b { return 1 }")
    assert "no failure ends a workflow" in shell.rhythm("check", "--failures", "b.flow").stdout
