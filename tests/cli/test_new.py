"""`rhythm new`: the project that it writes works at once, and nothing is ever overwritten."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rhythm.cli.commands.new import TEMPLATE
from rhythm.cli.main import main
from tests.cli.conftest import Shell

FILES = [".gitignore", "README.md", "app.py", "test_app.py", "workflows/express.flow"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    assert main(["new", str(tmp_path / "shop")]) == 0
    return tmp_path / "shop"


def files(folder: Path) -> list[str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path.relative_to(folder).as_posix() for path in found)


def checked(project: Path, *command: str) -> None:
    """Runs a tool in the project; it must find nothing."""
    settings = [] if command[0] != "pytest" else ["-p", "no:cacheprovider"]
    # no settings of this repository: its files lie above in nobody's project
    ran = subprocess.run(
        [sys.executable, "-m", *command, *settings], cwd=project, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_all_files_of_the_template_are_written(project: Path) -> None:
    assert files(project) == sorted(FILES)
    assert all((project / name).stat().st_size for name in FILES)
    # everything there is of it: no tool has left something in the package
    assert files(Path(TEMPLATE)) == sorted(f"{name}.template" for name in FILES)


def test_next_commands_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", str(tmp_path / "my shop")]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^  (\S.*?)  +#", out, re.M) == [
        "rhythm dev",
        "pip install pytest",
        "python -m pytest",
    ]
    assert f"  cd '{tmp_path}/my shop'" in out


def test_empty_folder_and_one_with_other_files_are_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main.py").write_text("mine")
    (tmp_path / ".gitignore").write_text("mine")
    assert main(["new", "."]) == 0
    assert files(tmp_path) == sorted([*FILES, "main.py"])
    assert (tmp_path / ".gitignore").read_text() == "mine"
    out = capsys.readouterr().out
    assert "add a line rhythm.db* to it" in out
    assert "  cd " not in out


@pytest.mark.parametrize("name", [each for each in FILES if each != ".gitignore"])
def test_nothing_is_overwritten_and_nothing_is_written_beside_it(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to("nowhere")
    assert main(["new", str(tmp_path)]) == 2
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == [tmp_path / name]
    assert f"{name} is in {tmp_path} already" in capsys.readouterr().err


def test_folder_that_is_suggested_is_not_there_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "shop"]) == 0
    assert main(["new", "shop"]) == 2
    assert "such as rhythm new shop2\n" in capsys.readouterr().err
    assert main(["new", "shop2"]) == 0
    assert main(["new", "shop/"]) == 2
    assert "such as rhythm new shop3\n" in capsys.readouterr().err
    assert main(["new", "."]) == 0
    assert main(["new", "."]) == 2
    assert "such as rhythm new shop3\n" in capsys.readouterr().err


def test_file_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "shop").write_text("")
    assert main(["new", str(tmp_path / "shop")]) == 2
    assert main(["new", str(tmp_path / "shop" / "inner")]) == 2
    assert "name a" in capsys.readouterr().err


def test_project_is_clean_for_rhythm_and_ruff(project: Path) -> None:
    checked(project, "rhythm", "check", "app.py", "workflows")
    checked(project, "rhythm", "fmt", "--check", "workflows")
    checked(project, "ruff", "check", "--isolated", "--select", "E,F,W,I,UP,B,SIM,RUF", ".")
    checked(project, "ruff", "format", "--isolated", "--check", ".")


def test_project_is_clean_for_mypy(project: Path) -> None:
    checked(project, "mypy", "--strict", "--config-file", os.devnull, "app.py", "test_app.py")


def test_tests_of_the_project_pass(project: Path) -> None:
    checked(project, "pytest", "-q", "-c", os.devnull, "--rootdir", ".")


def test_its_workflows_run(project: Path) -> None:
    shell = Shell(project)
    for file, given, refunded in (
        ("app.py", ("--signal", "approve"), False),
        ("app.py", ("--signal", "approve=true"), False),
        ("app.py", ("--signal", "approve=false"), True),
        ("app.py", (), True),
        ("workflows/express.flow", ("--app", "app.py"), False),
    ):
        ran = shell.rhythm("run", file, "-i", "id=A1", "-i", "amount=5", *given, "--fast-forward")
        assert ran.returncode == 0, ran
        assert ("refund" in ran.stderr) is refunded
