"""Tables, fields, colours and progress, on terminals of any width, and where there is none."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.cells import cell_len

import rhythm as package
from rhythm.cli.output.progress import progress
from rhythm.cli.output.table import print_fields, print_table
from rhythm.cli.output.terminal import coloured
from rhythm.cli.output.tree import print_tree

CLI = Path(package.__file__).parent / "cli"
HEADS = ("ID", "WORKFLOW", "STATUS", "WAITS FOR / ERROR")
ROWS = [
    ("06fe1sz2n5qg7v0k4m8c3x9yte", "order", "failed", "CardDeclined: over the limit " * 5),
    ("A17", "[red]order[/red]", "completed", "[/] [bold]\x1b[31m\u202e日本語"),
]
SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


MakeTerminal = Callable[..., Terminal]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> MakeTerminal:
    """Makes standard output a terminal, of so many columns."""

    def make(columns: int = 120) -> Terminal:
        for name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", str(columns))
        made = Terminal()
        monkeypatch.setattr(sys, "stdout", made)
        return made

    return make


def plain(out: Terminal) -> list[str]:
    """The lines, without their colours."""
    return [line.rstrip() for line in SEQUENCE.sub("", out.getvalue()).splitlines()]


@pytest.mark.parametrize("columns", [40, 50, 80, 120, 200])
def test_table_fits_its_terminal_and_nothing_of_it_is_lost(
    terminal: MakeTerminal, columns: int
) -> None:
    out = terminal(columns)
    print_table(HEADS, ROWS, status=2)
    assert max(map(cell_len, plain(out))) <= columns
    given = Counter(c for row in ROWS for c in "".join(row) if c.isprintable() and c != " ")
    assert not given - Counter("".join(plain(out)))


def test_narrow_terminal_shows_a_record_for_each_row(terminal: MakeTerminal) -> None:
    out = terminal(40)
    print_table(HEADS, [("A17", "order", "paused", "x" * 10), (ROWS[0][0], "b", "failed", "")])
    assert plain(out) == [
        "id        A17",
        "workflow  order",
        "status    paused",
        "waits for / error",
        "          xxxxxxxxxx",
        "",
        "id        06fe1sz2n5qg7v0k4m8c3x9yte",
        "workflow  b",
        "status    failed",
    ]


def test_what_somebody_has_written_is_neither_markup_nor_a_sequence(
    terminal: MakeTerminal,
) -> None:
    out = terminal()
    print_table(HEADS, ROWS, status=2)
    print_fields([("name", "[red]x[/red]\x1b[31m"), ("status", "failed, [bold]"), ("none", "")])
    shown = "\n".join(plain(out))
    assert "[red]order[/red]" in shown
    assert "[/] [bold]\ufffd[31m\ufffd日本語" in shown
    assert "[red]x[/red]\ufffd[31m" in shown
    assert shown.replace("\n", "").isprintable()


def test_status_has_its_colour_and_heads_are_bold(terminal: MakeTerminal) -> None:
    out = terminal()
    print_table(HEADS, ROWS, status=2)
    print_fields([("status", "failed since noon")])
    shown = out.getvalue()
    assert "\x1b[1mSTATUS" in shown
    assert "\x1b[31mfailed\x1b[0m" in shown
    assert "\x1b[32mcompleted\x1b[0m" in shown
    assert "\x1b[31mfailed\x1b[0m since noon" in shown


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": "0"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
        ({"FORCE_COLOR": "0"}, False),
        ({"FORCE_COLOR": ""}, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_of_a_terminal_can_be_refused(
    terminal: MakeTerminal,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    expected: bool,
) -> None:
    out = terminal()
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    print_table(HEADS, ROWS, status=2)
    print_fields([("status", "failed")])
    assert ("\x1b" in out.getvalue()) == expected


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": ""}, False),
        ({"FORCE_COLOR": "0"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_can_be_asked_for_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variables: dict[str, str],
    expected: bool,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    print_table(HEADS, ROWS, status=2)
    print_fields([("status", "failed")])
    before = capsys.readouterr().out
    assert "\x1b" not in before
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    print_table(HEADS, ROWS, status=2)
    print_fields([("status", "failed")])
    shown = capsys.readouterr().out
    assert coloured(sys.stdout) == ("\x1b" in shown) == expected
    assert [line.rstrip() for line in SEQUENCE.sub("", shown).splitlines()] == before.splitlines()


def test_table_for_a_program_is_not_wrapped_and_cut_only_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("A", "x" * 300, "a b c"), ("日本", "y", "")]
    monkeypatch.delenv("COLUMNS", raising=False)
    print_table(("ID", "NAME", "NOTE"), rows)
    assert capsys.readouterr().out == (
        f"ID    NAME{' ' * 298}NOTE\nA     {'x' * 300}  a b c\n日本  y\n"
    )
    monkeypatch.setenv("COLUMNS", "20")
    print_table(("ID", "NAME", "NOTE"), [("A", "b", "a word and more words")])
    assert capsys.readouterr().out == "ID  NAME  NOTE\nA   b     a word an…\n"


def test_fields_go_on_below_themselves(terminal: MakeTerminal) -> None:
    out = terminal(24)
    print_fields([("name", "one two three four five"), ("lines", "a\nb"), ("none", "")])
    assert plain(out) == [
        "name   one two three",
        "       four five",
        "lines  a",
        "       b",
    ]


def test_very_long_field_is_left_to_the_terminal(terminal: MakeTerminal) -> None:
    out = terminal(24)
    print_fields([("name", "x" * 100_000)])
    assert plain(out) == [f"name  {'x' * 100_000}"]


def execution(id: str, name: str, status: str, type: str = "workflow") -> Any:
    return SimpleNamespace(id=id, name=name, status=status, type=type)


def test_what_an_execution_has_started_is_a_tree(terminal: MakeTerminal) -> None:
    children = {
        "A": [execution("A.1", "[red]", "completed", "task"), execution("A.2", "b", "failed")],
        "A.2": [execution(f"A.2.{n}", "t", "completed", "task") for n in range(1, 24)],
    }
    details = SimpleNamespace(children=lambda id, limit: children.get(id, [])[:limit])
    app: Any = SimpleNamespace(details=details)
    out = terminal()
    print_tree(app, execution("A", "a", "failed"))
    assert plain(out)[:6] == [
        "",
        "a failed A",
        "├── [red] completed A.1",
        "└── b failed A.2",
        "    ├── t completed A.2.1",
        "    ├── t completed A.2.2",
    ]
    assert plain(out)[-1] == "    └── … and more"
    none = terminal()
    print_tree(app, execution("B", "b", "failed"))
    assert none.getvalue() == ""


def test_progress_is_shown_on_a_terminal_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", made)
    with progress("counting [red]", 2000, moves=False) as tell:
        tell(1000, 2000)
    shown = made.getvalue()
    assert "counting [red]" in shown
    assert "1,000 of 2,000" in shown
    assert shown.endswith("\x1b[2K")


def test_progress_says_nothing_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("counting", 2) as tell:
        tell(1, 2)
    assert capsys.readouterr() == ("", "")


def test_commands_that_draw_nothing_do_not_import_rich() -> None:
    code = (
        "import sys; from rhythm.cli.main import main; main(['migrate', '--database', "
        "'sqlite://:memory:']); main(['doctor', '--database', 'sqlite:///nowhere.db']); "
        "print('rich' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "False"


def test_only_what_draws_imports_rich() -> None:
    """Everything else prints, and nothing that a terminal obeys gets past that."""
    for path in sorted(CLI.rglob("*.py")):
        found = {
            name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for name in (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else []
            )
            if name.split(".")[0] == "rich"
        }
        assert not found or path.parent.name == "output", path.name
