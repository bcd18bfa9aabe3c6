"""What a shell is offered while somebody types, asked as the scripts of `rhythm completion` ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rhythm.app import Rhythm
from rhythm.cli.main import COMMANDS, COMPLETING, main
from rhythm.http import Server
from tests.app import conftest as applications
from tests.app.conftest import MakeApp
from tests.support.serving import serving

url, make_app = applications.url, applications.make_app
Offered = Callable[..., list[str]]
FLOW = "workflow order(inputs) {\n  return 1\n}\n"


@pytest.fixture
def offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Offered:
    """What bash is answered: `plain,VALUE` for every offer, `file,…` if it is to offer files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(COMPLETING, "bash_complete")
    monkeypatch.delenv("RHYTHM_DATABASE_URL", raising=False)

    def ask(words: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", f"rhythm {words}")
        monkeypatch.setenv("COMP_CWORD", str(len(f"rhythm {words}x".split()) - 1))
        assert main([]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out.split()

    return ask


def plain(*values: str) -> list[str]:
    return [f"plain,{value}" for value in values]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", plain(*COMMANDS)),
        ("sch", plain("schedules")),
        ("--v", plain("--version")),
        ("schedules ", plain("list", "show", "create", "pause", "resume", "run", "delete", "next")),
        ("schedules --output json sh", plain("show")),
        ("token cr", plain("create")),
        ("token create ann --role vi", plain("viewer")),
        ("check --format ", plain("text", "json")),
        ("check --fo", plain("--format")),
        ("list --status s", plain("suspended")),
        ("pause --then ", plain("resume", "cancel")),
        ("run a.flow --inputs - --out", plain("--output")),
        ("run a.flow -i a:=broken --sig", plain("--signal")),
        ("check --bogus --fo", plain("--format")),
        ("help tok", plain("token")),
        ("help token r", plain("revoke")),
        ("help nobody ", []),
        ("completion ", plain("bash", "zsh", "fish")),
        ("nobody ", plain(*COMMANDS)),
        ("check or", ["file,or"]),
        ("run a.flow --app ta", ["file,ta"]),
        ("start or", ["file,or"]),
        ("show ", []),
        ("queue pause ", []),
        ("token revoke ", []),
    ],
)
def test_words_are_offered(offered: Offered, words: str, expected: list[str]) -> None:
    assert offered(words) == expected


def test_options_that_do_nothing_are_not_offered(offered: Offered) -> None:
    assert offered("schedules pause x --o") == []
    assert offered("schedules show x --o") == plain("--output")


@pytest.fixture
def app(make_app: MakeApp) -> Rhythm:
    made = make_app(flows=(FLOW,))
    made.start_workflow("order", id="A17")
    made.start_workflow("order", id="B1")
    made.schedule("nightly", "order", every="1h")
    made.pause_queue("mail")
    return made


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("show A", plain("A17")),
        ("cancel A17 B", plain("B1")),
        ("start ", plain("order", "other.flow")),
        ("list --workflow or", plain("order")),
        ("schedules show ", plain("nightly")),
        ("schedules create new o", plain("order")),
        ("queue pause m", plain("mail")),
        ("approve ", []),
        ("list stat", plain("status:")),
        ("list status:fa", plain("status:failed")),
        ("list status:failed workflow:o", plain("workflow:order")),
        ("count -- -stat", plain("-status:")),
        ("list status : fa", plain("failed")),  # as bash takes words apart
        (
            "list status :",
            plain(
                "pending",
                "running",
                "suspended",
                "paused",
                "completed",
                "failed",
                "cancelled",
                "blocked",
            ),
        ),
        ("cancel --all work", plain("workflow:")),
        ("pause --all workflow:o", plain("workflow:order")),
        ("list queue:m", plain("queue:mail")),
    ],
)
def test_ids_and_names_come_from_the_database(
    offered: Offered,
    app: Rhythm,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: str,
    expected: list[str],
) -> None:
    (tmp_path / "other.flow").touch()
    monkeypatch.setenv("RHYTHM_DATABASE_URL", url)
    assert offered(words) == expected


@pytest.mark.parametrize(
    "database", ["sqlite:///nowhere.db", "postgresql://127.0.0.1:1/x", "nonsense", "sqlite:///a.db"]
)
def test_database_that_does_not_answer_offers_nothing_and_says_nothing(
    offered: Offered, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database: str
) -> None:
    (tmp_path / "a.db").write_text("no database")
    monkeypatch.setenv("RHYTHM_DATABASE_URL", database)
    assert offered("show ") == []


def test_database_that_is_named_is_asked(offered: Offered, app: Rhythm, url: str) -> None:
    assert offered(f"show --database {url} A") == plain("A17")


def test_server_that_is_named_is_asked(
    offered: Offered, app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RHYTHM_TOKEN", app.create_token("ann", roles=["viewer"]).secret)
    with serving(Server(app)) as base:
        assert offered(f"show --server {base} A") == plain("A17")
        monkeypatch.setenv("RHYTHM_SERVER", base)
        assert offered("show A") == plain("A17")
        assert offered("token revoke ") == []
    assert offered("show A") == []  # nobody listens there any more


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_asks_with_the_variable(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"{COMPLETING}={shell}_complete" in script
    assert "_rhythm_completion" in script


def test_fish_is_told_the_whole_line_about_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "fish"]) == 0
    assert 'string split -m 1 ","' in capsys.readouterr().out
    for name, value in {
        COMPLETING: "fish_complete",
        "COMP_WORDS": "rhythm toke",
        "COMP_CWORD": "toke",
    }.items():
        monkeypatch.setenv(name, value)
    assert main([]) == 0
    assert capsys.readouterr().out == f"plain,token\t{COMMANDS['token']}\n"


def test_shell_that_nobody_knows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "SHELL is bash, zsh or fish, not tcsh" in capsys.readouterr().err
