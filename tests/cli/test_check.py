"""`rhythm check`, `rhythm listing`, `rhythm graph` and the front door: what they print and how they
exit."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version

import pytest

from tests.cli.conftest import Shell
from tests.support.compiled import COMPILED

SIX_MISTAKES = """\
workflow order(inputs) {
  let total = inputs.price * quantty
  let quantity = 2
  const rate = 0.2
  rate = 0.25
  if (total === 0) { return null }
  let names = inputs.items.map(x => x.name)
  let paid = await tsk("charge", { total })
  let receipt = 5 + await task("print", { paid })
  return receipt
}
"""


def test_sound_file_is_counted_and_exits_0(shell: Shell) -> None:
    shell.write(
        "good.flow", 'workflow a() { return 1 }\nworkflow b() { return await workflow("a") }'
    )
    ran = shell.rhythm("check", "good.flow")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "1 file, 2 workflows: no problems\n", "")


def test_six_mistakes_give_six_diagnostics_each_with_its_place_and_help(shell: Shell) -> None:
    shell.write("order.flow", SIX_MISTAKES)
    ran = shell.rhythm("check", "order.flow", "--format", "json")
    found = json.loads(ran.stdout)
    assert ran.returncode == 1
    assert [
        (d["code"], d["line"], d["column"])
        for d in found["diagnostics"]
        if d["severity"] == "error"
    ] == [
        ("F020", 2, 30),
        ("F022", 5, 3),
        ("F007", 6, 13),
        ("F008", 7, 32),
        ("F023", 8, 20),
        ("F012", 9, 21),
    ]
    assert all(d["help"] for d in found["diagnostics"])
    assert found["errors"] == 6


def test_help_for_a_duration_names_what_was_meant_else_any(shell: Shell) -> None:
    shell.write(
        "a.flow",
        'await sleep("2 hours")\nawait task("a", {}, { timeout: "30 dayz", backoff: "soon" })\n',
    )
    found = json.loads(shell.rhythm("check", "a.flow", "--format", "json").stdout)
    assert [d["help"] for d in found["diagnostics"] if d["severity"] == "error"] == [
        'write sleep("2h")',
        'write { timeout: "30d" }',
        'write { backoff: "1h30m" }',
    ]


def test_text_shows_the_line_a_caret_and_help(shell: Shell) -> None:
    shell.write("a.flow", "let total = 1\nreturn totl")
    ran = shell.rhythm("check", "a.flow")
    assert ran.stdout == (
        "error[F020]: unknown variable `totl`\n"
        "  ┌─ a.flow:2:8\n"
        "2 │ return totl\n"
        "  │        ^^^^\n"
        "  = help: did you mean `total`?\n"
        "\n"
        "1 file: 1 error\n"
    )


def test_folder_is_searched_and_workflows_of_all_files_are_known(shell: Shell) -> None:
    (shell.folder / "flows" / "deep").mkdir(parents=True)
    shell.write("flows/a.flow", 'return await workflow("b")')
    shell.write("flows/deep/b.flow", 'return await workflow("c")')
    ran = shell.rhythm("check", "flows")
    assert ran.returncode == 0
    assert "F105" in ran.stdout
    assert "`c`" in ran.stdout
    assert "`b`" not in ran.stdout


def test_calls_are_checked_against_the_tasks_of_an_app(shell: Shell) -> None:
    shell.write("a.flow", 'await task("gret", {})\nreturn await task("greet", { name: 5 })')
    ran = shell.rhythm("check", "a.flow", "--app", "tasks.py")
    assert "F103" in ran.stdout
    assert 'did you mean "greet"?' in ran.stdout
    assert "F104" in ran.stdout
    assert ran.returncode == 0, "warnings do not fail a check"


@pytest.mark.parametrize("command", ["check", "fmt", "graph", "listing", "run"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.flow", "missing.flow"),
        ("latin.flow", "is not UTF-8 text (byte 10); save it as UTF-8"),
    ],
)
def test_file_that_cannot_be_read_is_one_line(
    shell: Shell, command: str, name: str, message: str
) -> None:
    (shell.folder / "latin.flow").write_bytes(b'let x = "a\xe9"')
    ran = shell.rhythm(command, name)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert message in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_empty_folder_says_so(shell: Shell) -> None:
    (shell.folder / "empty").mkdir()
    ran = shell.rhythm("check", "empty")
    assert (ran.returncode, ran.stderr) == (
        2,
        "rhythm: there is no .flow or .steps.json file in empty\n",
    )


def test_listing_shows_every_instruction_with_its_line(shell: Shell) -> None:
    shell.write("a.flow", 'let x = await task("t")\nreturn x + 1')
    ran = shell.rhythm("listing", "a.flow")
    assert 'await task("t") -> x' in ran.stdout
    assert "return x + 1" in ran.stdout
    assert "; line 2" in ran.stdout
    assert json.loads(shell.rhythm("listing", "a.flow", "--format", "json").stdout)["name"] == "a"


def test_graph_draws_text_and_mermaid(shell: Shell) -> None:
    shell.write("a.flow", 'if (inputs.x) { await task("t") }\nreturn 1')
    assert 'task("t")' in shell.rhythm("graph", "a.flow").stdout
    assert shell.rhythm("graph", "a.flow", "--format", "mermaid").stdout.startswith("flowchart")


@pytest.mark.parametrize("command", ["listing", "graph"])
def test_what_does_not_compile_cannot_be_shown(shell: Shell, command: str) -> None:
    shell.write("a.flow", "return x")
    ran = shell.rhythm(command, "a.flow")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "F020" in ran.stderr


def test_help_lists_every_command_and_exits_0(shell: Shell) -> None:
    ran = shell.rhythm("--help")
    assert ran.returncode == 0
    for command in ("run", "check", "fmt", "graph", "listing"):
        assert f"  {command} " in ran.stdout
        assert shell.rhythm(command, "--help").returncode == 0


def test_no_command_shows_the_help_and_exits_2(shell: Shell) -> None:
    ran = shell.rhythm()
    assert ran.returncode == 2
    assert "usage: rhythm COMMAND" in ran.stdout


def test_unknown_command_suggests_the_nearest(shell: Shell) -> None:
    ran = shell.rhythm("chek")
    assert (ran.returncode, ran.stderr) == (
        2,
        "rhythm: there is no command `chek`; did you mean `check`?\n",
    )


def test_version_is_that_of_the_package(shell: Shell) -> None:
    build = " (compiled)" if COMPILED else ""
    assert shell.rhythm("--version").stdout == f"rhythm {version('rhythm')}{build}\n"


def test_reader_that_goes_away_is_no_error(shell: Shell) -> None:
    shell.write("a.flow", "\n".join(f"log({i})" for i in range(5000)))
    process = subprocess.Popen(
        [sys.executable, "-m", "rhythm", "listing", "a.flow"],
        cwd=shell.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.wait(timeout=60)
    process.stderr.close()


def test_what_standard_output_cannot_encode_is_escaped(shell: Shell) -> None:
    shell.write("é.flow", "return x")
    ran = shell.rhythm("check", "é.flow", PYTHONIOENCODING="ascii")
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "\\xe9.flow:1:8" in ran.stdout
    ran = shell.rhythm("check", "é.flow", "--format", "json", PYTHONIOENCODING="ascii")
    assert json.loads(ran.stdout)["diagnostics"][0]["file"] == "é.flow"


def test_program_is_valid_json_where_standard_output_is_not_utf_8(shell: Shell) -> None:
    shell.write("main.flow", 'return "é𝄞"')
    ran = shell.rhythm("listing", "main.flow", "--format", "json", PYTHONIOENCODING="ascii")
    assert "é𝄞" in json.dumps(json.loads(ran.stdout), ensure_ascii=False)
