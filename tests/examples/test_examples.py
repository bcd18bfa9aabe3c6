"""Every example runs: the commands of examples/README.md are the test cases."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.examples.test_all_pages import problem_with
from tests.support import forked

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
COMMANDS = re.findall(
    r"^\$ rhythm (.*)$", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.MULTILINE
)

RESULTS: dict[str, Any] = {
    'items:=["tea", "cup"]': {"total": 18.45, "parcel": "parcel of 2 to Lisbon", "signed_by": None},
    'items:=["kettle"]': "OrderFailed",
    "sources:=": {
        "seen": ["news of cups", "news of slow news", "news of tea"],
        "weather": "news of weather",
        "mails": {"boss": "completed", "nobody": "failed"},
    },
    "customer=Acme": {"number": "Acme-17", "total": 980, "reminders": 2},
    "bought=": {"plan": "pro", "until": None},
    '"total": 50}': {"outcome": "allowed"},
    '"total": 15000}': "Blocked",
    "customer=ada -i price=5": {
        "status": "finished",
        "receipts": [f"ada:5.00:{month}" for month in range(12)],
    },
    "email=": {"plan": "none", "offer": "expired", "days": 14},
}


HEAD = re.compile(r'^"""[A-Z].*\n\nShows: .+\nRun:   .+\n', re.MULTILINE)


def rhythm(*args: str) -> subprocess.CompletedProcess[str]:
    return forked.run(["-m", "rhythm", *args], ROOT)


def script(name: str, *args: str) -> subprocess.CompletedProcess[str]:
    return forked.run([str(EXAMPLES / name), *args], ROOT)


@pytest.mark.parametrize(
    "command",
    [each for each in COMMANDS if each.startswith("run ") and "images.py" not in each],
)
def test_example_runs_to_the_result_it_promises(command: str) -> None:
    ended = json.loads(rhythm(*shlex.split(command), "--output", "json").stdout)
    expected = next(value for part, value in RESULTS.items() if part in command)
    assert (ended["error"]["code"] if ended["error"] else ended["result"]) == expected


def test_pictures_are_made_small(tmp_path: Path) -> None:
    (command,) = [command for command in COMMANDS if "images.py" in command]
    here = command.replace("folder=photos", f"folder={tmp_path / 'photos'}")
    ended = json.loads(rhythm(*shlex.split(here), "--output", "json").stdout)
    assert (ended["result"]["thumbnails"], ended["result"]["broken"]) == (6, [])


FEATURED = ["order_with_approval", "images", "billing", "agent_with_review"]


@pytest.mark.parametrize("name", FEATURED)
def test_example_says_in_its_head_what_it_shows_and_how_to_run_it(name: str) -> None:
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert HEAD.match(text)
    for command in re.findall(r"\b(rhythm \w[^;\n]*)", text.split('"""')[1]):
        assert problem_with(command) == ""


def test_tests_of_the_examples_pass() -> None:
    """As people run them: `pytest examples`."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "examples"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    for name in FEATURED:
        assert (EXAMPLES / f"test_{name}.py").exists()


@pytest.mark.parametrize(
    "command", [command for command in COMMANDS if not command.startswith("run ")]
)
def test_example_can_be_shown(command: str) -> None:
    ran = rhythm(*shlex.split(command))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert len(ran.stdout.splitlines()) > 10


def test_every_example_is_in_the_readme_and_run_by_some_command() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for flow in (*EXAMPLES.glob("*.flow"), *EXAMPLES.glob("*.json")):
        assert f"]({flow.name})" in text
        assert any(f"examples/{flow.name}" in command for command in COMMANDS)


def test_examples_have_no_problems_and_are_formatted() -> None:
    for flow in sorted((*EXAMPLES.glob("*.flow"), *EXAMPLES.glob("*.json"))):
        tasks = flow.with_name(f"{flow.name.partition('.')[0]}_tasks.py")
        checked = rhythm("check", str(flow), *(["--app", str(tasks)] if tasks.exists() else []))
        assert ": no problems" in checked.stdout or set(re.findall(r"F\d+", checked.stdout)) == {
            "F201"
        }, checked.stdout
    assert rhythm("fmt", "--check", "examples").stdout == ""


def test_demo_shows_the_run_and_resumes_in_a_new_process_for_each_step() -> None:
    ran = script("demo.py")
    assert ran.returncode == 0, ran.stderr
    assert "■ completed order" in ran.stderr
    assert '{"number": "Acme-17", "total": 980, "reminders": 2}' in ran.stdout
    assert len(set(re.findall(r"process (\d+)", ran.stdout))) == 6


def test_demo_shows_the_command_that_it_runs() -> None:
    (command,) = re.findall(r"^\$ rhythm (.* \\\n.*)$", script("demo.py").stdout, re.MULTILINE)
    assert '"total": 29.7' in rhythm(*shlex.split(command.replace("\\\n", ""))).stdout


def test_one_step_shows_what_it_ran_and_what_it_kept_and_the_file_holds_that(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state.json"
    script("one_step.py", str(state))
    ran, kept = script("one_step.py", str(state)).stdout.splitlines()
    assert ran.endswith('ran   rate_of(person="Grace") = 110')
    assert kept.endswith(
        'kept  line 6; total=540, person="Grace", hours=4; loop: 2 of 2; result: 110'
    )
    saved = json.loads(state.read_text(encoding="utf-8"))
    assert (saved["snapshot"]["locals"]["total"], saved["results"]) == (540, {"2": 110})


@pytest.mark.parametrize("args", [[], ["--what"], ["a.json", "b.json"]])
def test_one_step_without_its_file_says_what_to_do(args: list[str]) -> None:
    ran = script("one_step.py", *args)
    assert (ran.returncode, ran.stderr) == (2, "")
    assert ran.stdout.startswith("usage: python examples/one_step.py STATE_FILE")


def test_commands_of_the_readme_name_scripts_that_exist() -> None:
    named = re.findall(
        r"^\$ python (?!-m)(\S+)",
        (EXAMPLES / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert named == ["examples/one_step.py"]
    assert (ROOT / named[0]).is_file()
