"""docs/cli.md is true: its examples are one session, and every command prints what is shown; ids,
secrets, numbers of audit rows, times and durations are others."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from rhythm.cli.main import COMMANDS, main
from tests.support import forked

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
SESSION = "\n".join(re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL))
EXAMPLES = re.findall(r"^\$ rhythm (.*)\n((?:(?!\$ ).*\n)*)", SESSION, re.MULTILINE)
VARYING = {
    # how it is while one waits: every change, or none if it was fast
    r"^order (is|waits for) .*\n": "",
    r"\n+$": "\n",
    r'"started_by": "[^"]+"': "BY",
    r"rhy_[0-9a-hjkmnp-tv-z]{12}_[0-9a-hjkmnp-tv-z]{52}": "SECRET",
    r"\b[0-9a-hjkmnp-tv-z]{12}\b": "TOKEN",
    r"\b\d+:[0-9a-f]{64}\b": "HEAD",
    r"\b[0-9a-hjkmnp-tv-z]{26}\b": "ID",
    r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d:\d\d CES?T": "SLOT",
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d+Z| UTC)?)?": "TIME",
    r"^\d+ +TIME|\b\d+ rows": "N",  # of the audit
    r"^ *\d+\.\d\ds  ": "",
    r"(?<=[ ,])(\d+(\.\d+)?(ms|[smhd]))+( ago)?\b|\bnow\b": "LENGTH",
    r"LENGTH +(?=\S)": "LENGTH ",
}


def plain(text: str) -> str:
    for pattern, stands_for in VARYING.items():
        text = re.sub(pattern, stands_for, text, flags=re.MULTILINE)
    return text


def test_session_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("RHYTHM_DATABASE_URL", raising=False)
    for language, name in (("python", "tasks.py"), ("js", "order.flow")):
        (shown,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
        (tmp_path / name).write_text(shown, encoding="utf-8")
    for command, shown in EXAMPLES:
        words = shlex.split(command)
        if "--app" in words:  # tasks are registered once for each process
            ran = forked.run(["-m", "rhythm", *words], tmp_path)
            err, out = ran.stderr, ran.stdout
        else:
            main(words)
            out, err = capsys.readouterr()
        assert plain(err + out) == plain(shown), command


def test_page_shows_every_command_on_a_database() -> None:
    assert {command.split()[0] for command, _ in EXAMPLES} == {
        "start",
        "list",
        "show",
        "trace",
        "result",
        "signal",
        "publish",
        "why",
        "cancel",
        "terminate",
        "retry",
        "pause",
        "resume",
        "workflows",
        "workers",
        "queues",
        "queue",
        "token",
        "audit",
        "schedules",
    }
    table = re.findall(r"`rhythm (\w+)`", PAGE.split("**Which database.**")[0])
    assert set(table) <= COMMANDS.keys()


def test_every_command_is_shown_somewhere() -> None:
    root = Path(__file__).parents[2]
    pages = "\n".join(
        path.read_text(encoding="utf-8")
        for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    )
    assert [name for name in COMMANDS if not re.search(rf"\brhythm {name}\b", pages)] == []


def test_commands_of_the_table_lead_to_their_section() -> None:
    sections = {
        title.lower().replace(",", "").replace(" ", "-")
        for title in re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([\w-]+)\)", PAGE)) <= sections
