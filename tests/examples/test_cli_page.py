"""docs/cli.md is true: its examples are one session, and every command prints what is shown; ids,
secrets, numbers of audit rows, times and durations are others."""

from __future__ import annotations

import os
import re
import shlex
import signal
from pathlib import Path

import pytest

from rhythm.app import Rhythm
from rhythm.cli.main import COMMANDS, main
from rhythm.cli.remote import WITHOUT_SERVER
from tests.support import forked
from tests.support.dev import Dev
from tests.support.serving import serving

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "cli.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^\$ rhythm (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
OVER_HTTP = re.findall(r"^## Over HTTP\n(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE)[0]
SESSION = "\n".join(re.findall(r"```console\n(.*?)```", PAGE.replace(OVER_HTTP, ""), re.DOTALL))
EXAMPLES = EXAMPLE.findall(SESSION)
# Commands whose session is on another page.
SHOWN_ELSEWHERE = {
    "approve": "approvals.md",
    "reject": "approvals.md",
    "worker": "workers.md",
    "server": "http.md",
}
WITHOUT_EXAMPLE = {"escalate", "help", "completion"}
WITHOUT_ROW = {"help", "completion"}
VARYING = {
    r"^\d+ rules, \d+ executions": "RULES",
    r"at schema \d+": "SCHEMA",
    # how it is while one waits: every change, or none if it was fast
    r"^order (is|waits for) .*\n": "",
    r"\n+$": "\n",
    r'"started_by": "[^"]+"': "BY",
    r"rhy_[0-9a-hjkmnp-tv-z]{12}_[0-9a-hjkmnp-tv-z]{52}": "SECRET",
    r"\b[0-9a-hjkmnp-tv-z]{12}\b": "TOKEN",
    r"\b\d+:[0-9a-f]{64}\b": "HEAD",
    r"\b[0-9a-hjkmnp-tv-z]{26}\b": "ID",
    r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d:\d\d CES?T": "SLOT",
    r"^\d\d:\d\d:\d\d\.\d{3} ": "CLOCK ",
    r'"position": \d+': "POSITION",
    r'"worker": "[^"]+"': "WORKER",
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
    files = re.findall(r"^`([\w.]+)`[^\n]*:\n\n```(?:python|js)\n(.*?)```", PAGE, re.M | re.S)
    assert [name for name, _ in files] == ["tasks.py", "order.flow", "shop.py"]
    for name, text in files:
        (tmp_path / name).write_text(text, encoding="utf-8")
    for command, shown in EXAMPLES:
        words = shlex.split(command)
        # tasks and workflows are registered once for each process
        if any(word.endswith(".py") for word in words):
            ran = forked.run(["-m", "rhythm", *words], tmp_path)
            err, out = ran.stderr, ran.stdout
        else:
            main(words)
            out, err = capsys.readouterr()
        assert plain(err + out) == plain(shown), command


def test_session_over_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("HOME", str(tmp_path))
    (flow,) = re.findall(r"^`order.flow`[^\n]*:\n\n```js\n(.*?)```", PAGE, re.M | re.S)
    (session,) = re.findall(r"```console\n(.*?)```", OVER_HTTP, re.DOTALL)
    named = re.findall(r"(RHYTHM_\w+)=(\S+)", session)
    assert [name for name, _ in named] == ["RHYTHM_SERVER", "RHYTHM_TOKEN_FILE"]
    with (
        Rhythm("sqlite:///served.db", (), environment={}) as app,
        serving(app.server()) as base,
    ):
        app.register(flow)
        file = tmp_path / ".rhythm-token"
        file.write_text(app.create_token("ann", roles=["operator"]).secret + "\n")
        file.chmod(0o600)
        monkeypatch.setenv("RHYTHM_SERVER", base)
        monkeypatch.setenv("RHYTHM_TOKEN_FILE", os.path.expanduser(named[1][1]))
        for command, shown in EXAMPLE.findall(session):
            main(shlex.split(command))
            out, err = capsys.readouterr()
            assert plain(err + out) == plain(shown), command


def test_page_says_which_commands_ask_a_server() -> None:
    rows = re.findall(r"^\| (work on a|need the|work on files)\w* .*?\| (.*) \|$", OVER_HTTP, re.M)
    asks, database, files = (set(re.findall(r"`([\w ]+)`", names)) for _, names in rows)
    assert database | files == WITHOUT_SERVER.keys() - {"help", "completion"}
    assert {name.split(" ")[0] for name in asks} == COMMANDS.keys() - {
        name for name in WITHOUT_SERVER if " " not in name
    }


def test_inputs_of_a_workflow_are_shown_as_on_the_page(tmp_path: Path) -> None:
    (text,) = re.findall(r"^`shop.py`[^\n]*:\n\n```python\n(.*?)```", PAGE, re.M | re.S)
    (tmp_path / "shop.py").write_text(text, encoding="utf-8")
    forked.run(["-m", "rhythm", "start", "shop.py", "-i", 'skus=["tea"]'], tmp_path)
    shown = forked.run(["-m", "rhythm", "workflows", "total"], tmp_path).stdout
    assert shown.partition("\n\n")[2] in re.findall(r"^```text\n(.*?)```", PAGE, re.M | re.S)


def test_dev_prints_what_is_shown(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```text\n\$ rhythm dev\n(.*?)```", PAGE, re.DOTALL)
    assert main(["new", str(tmp_path)]) == 0
    dev = Dev(tmp_path, "sqlite:///rhythm.db")
    try:
        process = dev.began()
        commands = re.findall(r"^  rhythm (.*)$", shown, re.MULTILINE)
        (signal_it,) = re.findall(r"\(rhythm (signal .*)\)", shown)
        for command in (commands[0], commands[1], commands[2], "", signal_it):
            if command:
                assert forked.run(["-m", "rhythm", *shlex.split(command)], tmp_path).returncode == 0
            else:
                dev.says("waits for signal approve")
                text = (tmp_path / "app.py").read_text().replace("is on its way", "flies")
                dev.reloaded(lambda text=text: dev.write("app.py", text))  # type: ignore[misc]  # mypy cannot infer a lambda's default
        dev.says("completed")
        process.send_signal(signal.SIGINT)
        process.wait()
    finally:
        dev.close()

    def same(text: str) -> str:
        text = re.sub(r"\d\d:\d\d:\d\d|\d+ ms|:\d+/api|pid \d+", "N", text)
        return text.replace("^C\n", "")

    assert same(dev.said) == same(shown)


def test_lines_for_the_shell_are_commands(tmp_path: Path) -> None:
    (lines,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    commands = re.findall(r"rhythm (completion \w+)", lines)
    assert len(commands) == len(lines.splitlines()) == 3
    for command in commands:
        ran = forked.run(["-m", "rhythm", *command.split()], tmp_path)
        assert (ran.returncode, "rhythm" in ran.stdout) == (0, True)


def sections() -> dict[str, str]:
    """The text of every section of the page, by its title. A title names the section's commands."""
    return dict(re.findall(r"^## (.*)\n((?:(?!## ).*\n?)*)", PAGE, re.MULTILINE))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_section_and_its_example(name: str) -> None:
    (text,) = [text for title, text in sections().items() if name in title.split(", ")]
    assert f"rhythm {name}" in text
    page = (DOCS / SHOWN_ELSEWHERE[name]).read_text("utf-8") if name in SHOWN_ELSEWHERE else text
    assert re.search(rf"^\$ rhythm {name}\b", page, re.MULTILINE) or name in WITHOUT_EXAMPLE


def test_every_command_is_in_a_table_of_the_page() -> None:
    tables = PAGE.split("**Which database.**")[0]
    linked = " ".join(re.findall(r"\[(`[^]]*`)\]\(#", tables))
    named = set(re.findall(r"`(?:rhythm )?(\w+)`", linked))
    assert named == COMMANDS.keys() - WITHOUT_ROW


def test_commands_of_the_table_lead_to_their_section() -> None:
    anchors = {title.lower().replace(",", "").replace(" ", "-") for title in sections()}
    assert set(re.findall(r"\]\(#([\w-]+)\)", PAGE)) <= anchors
