"""The README is true: its files are those of examples/readme, its commands print what it shows."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import forked

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SESSION = README.split("## Stop it anywhere")[1].split("\n## ")[0]
REST = README.replace(SESSION, "")
COMMANDS = re.findall(r"^\$ rhythm (.*)\n((?:.*\n)*?)```", REST, re.MULTILINE)


def rhythm(command: str) -> subprocess.CompletedProcess[str]:
    return forked.run(["-m", "rhythm", *shlex.split(command)], ROOT)


@pytest.mark.parametrize(
    ("language", "name"),
    [
        ("python", "shop.py"),
        ("js", "order.flow"),
    ],
)
def test_file_that_is_shown_is_the_example_that_is_linked(language: str, name: str) -> None:
    (shown,) = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert shown == (ROOT / "examples" / "readme" / name).read_text(encoding="utf-8")
    assert f"(examples/readme/{name})" in README


@pytest.mark.parametrize(("command", "shown"), COMMANDS)
def test_command_prints_all_that_is_shown_and_nothing_else(command: str, shown: str) -> None:
    ran = rhythm(command)
    assert without_times(ran.stderr) + ran.stdout == without_times(shown)


def test_flow_gives_the_same_result() -> None:
    """The second language, by the command that is shown for it."""
    (flow,) = re.findall(r"^rhythm (run .*order.flow.*)$", README, re.MULTILINE)
    ran = rhythm(flow)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == rhythm(COMMANDS[0][0]).stdout


def test_the_commands_are_the_run_and_the_mistake() -> None:
    assert [command.split()[0] for command, _ in COMMANDS] == ["run", "check"]


def test_killed_program_goes_on_as_the_session_shows(tmp_path: Path) -> None:
    """The session, but for the `kill`, which waits until there is something to see."""
    shutil.copytree(ROOT / "examples" / "readme", tmp_path, dirs_exist_ok=True)
    shell = {**os.environ, "RHYTHM_DATABASE_URL": "sqlite:///orders.db", "COLUMNS": "100"}
    session = re.findall(r"^\$ (.*)\n((?:(?!\$ |```).*\n)*)", SESSION, re.MULTILINE)
    assert [line.split()[0] for line, _ in session[:2]] == ["cd", "export"]
    (started, _), *rest, (left, _) = session[2:]
    command, kill = started.split(" & sleep 2; ")
    assert (kill, left) == ("kill -9 $!", "cd ../..")

    def words(line: str) -> list[str]:
        return ["-m", *shlex.split(line)]

    first = subprocess.Popen(
        [sys.executable, *words(command)],
        cwd=tmp_path, env=shell, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while "signal approve" not in forked.run(words("rhythm list"), tmp_path, env=shell).stdout:
            assert first.poll() is None
    finally:
        first.kill()
        first.wait()
    assert [line for line, _ in rest] == [line for line, _ in rest if line.startswith("rhythm ")]
    for line, shown in rest:
        ran = forked.run(words(line), tmp_path, env=shell)
        assert of_any_time(ran.stderr + ran.stdout) == of_any_time(shown), line
    trace = forked.run(words("rhythm trace A17"), tmp_path, env=shell).stdout
    assert trace.count("✓ charge") == 1


def of_any_time(text: str) -> str:
    """Ages are others, and so are gaps in tables; what it waits for while one looks may be said."""
    text = re.sub(r"^order (is|waits for) .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\bversion [0-9a-f]{12}\b", "VERSION", text)
    return re.sub(r" +", " ", re.sub(r"\b\d+s\b|\bnow\b", "AGE", text))


def test_every_command_of_the_table_exists() -> None:
    commands = re.findall(r"^\| `rhythm (\w+)", README, re.MULTILINE)
    assert len(commands) >= 11
    for command in commands:
        assert rhythm(f"{command} --help").returncode == 0


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/language.md",
        "docs/tutorial.md",
        "docs/coming-from.md",
        "docs/python-workflows.md",
        "docs/tasks.md",
        "docs/python.md",
        "docs/events.md",
        "docs/cli.md",
        "docs/workers.md",
        "docs/postgres.md",
        "docs/security.md",
        "docs/approvals.md",
        "docs/concepts.md",
        "docs/differences.md",
        "docs/http.md",
        "docs/json-steps.md",
        "docs/schedules.md",
        "SECURITY.md",
        "docs/internals/decisions.md",
        "docs/internals/storage.md",
        "docs/internals/performance.md",
        "examples/README.md",
    ],
)
def test_links_to_files_lead_to_files(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#]+)", text)
    assert not [
        link
        for link in links
        if "://" not in link and not (ROOT / page).parent.joinpath(link).exists()
    ]


def without_times(text: str) -> str:
    return re.sub(
        r"in [\d,]+ ms",
        "in … ms",
        re.sub(r"^ *(?:\d+\.\d\ds|[\d:]+:\d\d)  ", "", text, flags=re.MULTILINE),
    )
