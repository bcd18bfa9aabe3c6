"""Commands on a server: which of them ask one, where they find it, and what they say if it is not
as it should be. What they print otherwise is tested with the database (`places`)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from rhythm.app import Rhythm
from rhythm.cli.main import COMMANDS, ROOT, main
from rhythm.cli.remote import WITHOUT_SERVER, without_server
from rhythm.http import Server
from rhythm.http.answers import document
from tests.app import conftest as applications
from tests.app.conftest import MakeApp
from tests.cli.test_hostile import EVIL
from tests.support.serving import serving
from tests.test_layers import alone

url, make_app = applications.url, applications.make_app
HOLD = 'workflow hold(inputs) {\n  return await signal("go")\n}'
ASKS = 'workflow asks(inputs) {\n  return await approval({ role: "boss" })\n}'


def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """A command, or the commands of a group, each with its whole name."""
    if isinstance(command, click.Group):
        for each in command.commands:
            yield from leaves(command.commands[each], f"{name} {each}")
    else:
        yield name, command


ALL = dict(
    pair
    for name in COMMANDS
    for pair in leaves(ROOT.get_command(click.Context(ROOT), name), name)  # type: ignore[arg-type]  # it is there
)


@pytest.mark.parametrize("name", ALL)
def test_every_command_asks_a_server_or_says_why_it_asks_none(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {each for param in ALL[name].params for each in param.opts}
    why = without_server(f"rhythm {name}", "--server")
    assert ("--server" in options) == ("--token-file" in options) == (not why), name
    if why:
        assert main([*name.split(" "), "--server", "https://a.example"]) == 2
        assert capsys.readouterr().err.startswith(f"rhythm: {why}\n")


def test_everything_that_asks_no_server_is_a_command() -> None:
    assert {key.partition(" ")[0] for key in WITHOUT_SERVER} <= COMMANDS.keys()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("--server x list", "write --server after the command"),
        ("audit --server x list", "write --server after list or verify"),
        ("list --server x --database y", "give --server or --database, not both"),
        ("list --token-file x", "--token-file goes with --server, or with the variable RHYTHM_S"),
        ("list --server ftp://x", "'ftp://x' is not the URL of a server: it begins with https://"),
        ("list --server http://x --token-file none", "cannot read the token in none: No such file"),
        ("cancel a --by ann --server http://x", "--by is for a database: on a server the owner"),
        ("start a --app b.py --wait --server http://x", "--app needs the database: a worker of"),
        ("start a --workflows b --server http://x", "--workflows needs the database: register"),
        ("start a.py --server http://x", "a server takes no Python files: whoever runs a worker"),
        ("list --server", "--server needs a value: --server URL"),
    ],
)
def test_what_is_not_clear_is_refused(
    command: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.split()) == 2
    assert capsys.readouterr().err.startswith(f"rhythm: {message}")


class Ran:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


Command = Callable[..., Ran]


@pytest.fixture
def app(make_app: MakeApp) -> Rhythm:
    return make_app(flows=(HOLD, ASKS))


@pytest.fixture
def base(app: Rhythm) -> Iterator[str]:
    with serving(Server(app)) as base:
        yield base


@pytest.fixture
def rhythm(
    app: Rhythm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Command:
    """Runs a command in a folder with a token of an operator."""
    monkeypatch.chdir(tmp_path)
    secret = app.create_token("ann", roles=["operator"]).secret
    (tmp_path / "token").write_text(f"{secret}\n")
    (tmp_path / "token").chmod(0o600)

    def run(*words: str) -> Ran:
        capsys.readouterr()
        return Ran(main([*words]), *capsys.readouterr())

    return run


def test_server_is_that_of_the_option_else_the_variable_which_must_be_the_only_one(
    rhythm: Command, base: str, url: str, app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.start_workflow("hold", id="held")
    token = ("--token-file", "token")
    assert "held" in rhythm("list", "--server", f"{base}/api/v1/", *token).out
    monkeypatch.setenv("RHYTHM_SERVER", base)
    assert "held" in rhythm("list", *token).out
    monkeypatch.setenv("RHYTHM_TOKEN_FILE", "token")
    assert "held" in rhythm("list").out
    assert "held" in rhythm("list", "--database", url).out
    monkeypatch.setenv("RHYTHM_DATABASE_URL", url)
    ran = rhythm("list")
    assert (ran.code, ran.err) == (
        2,
        "rhythm: the variables RHYTHM_SERVER and RHYTHM_DATABASE_URL are both set: say which is "
        "meant, with --server or --database\n",
    )
    assert "held" in rhythm("list", "--server", base).out
    assert rhythm("token", "list").code == 0  # it reads no variable of a server


def test_next_page_is_named_as_it_was_asked_for(rhythm: Command, base: str, app: Rhythm) -> None:
    for _ in range(3):
        app.start_workflow("hold")
    ran = rhythm("list", "--limit", "2", "--server", base, "--token-file", "token")
    following = re.fullmatch(r"there are more: rhythm (.*)\n", ran.err)
    assert following
    assert len(rhythm(*following[1].split()).out.splitlines()) == 2


def test_refusals_say_what_to_do_and_never_show_the_token(
    rhythm: Command, base: str, app: Rhythm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = (tmp_path / "token").read_text().strip()
    on = ("--server", base)
    ran = rhythm("list", *on)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"rhythm: {base} refuses whoever asks: send a token")
    assert "give a token with --token-file FILE" in ran.err
    monkeypatch.setenv("RHYTHM_TOKEN", secret[:-1] + ("0" if secret[-1] != "0" else "1"))
    ran = rhythm("list", *on)
    assert (ran.code, "is not known, has expired or was revoked" in ran.err) == (1, True)
    monkeypatch.setenv("RHYTHM_TOKEN", secret)
    ran = rhythm("audit", "list", *on)
    assert (ran.code, ran.err) == (
        1,
        f"rhythm: {base} refuses this: this needs the permission audit:read, which the token "
        f"does not have\n",
    )
    (tmp_path / "token").chmod(0o644)
    ran = rhythm("list", *on, "--token-file", "token")
    assert (ran.code, "others can read or change token" in ran.err) == (2, True)
    monkeypatch.setenv("RHYTHM_TOKEN", secret)
    ran = rhythm("list", "--server", "http://rhythm.invalid")
    assert (ran.code, "would get the token in the clear" in ran.err) == (2, True)
    monkeypatch.setenv("RHYTHM_PLAIN_HTTP", "1")
    ran = rhythm("list", "--server", "http://rhythm.invalid")
    assert (ran.code, "there is no host 'rhythm.invalid'" in ran.err) == (1, True)


def test_owner_of_the_token_acts_and_decides(rhythm: Command, base: str, app: Rhythm) -> None:
    on = ("--server", base, "--token-file", "token")
    id = rhythm("start", "hold", *on).out.strip()
    assert rhythm("pause", id, "--reason", "why", *on).code == 0
    assert (app.get(id).started_by, app.get(id).paused_by) == ("ann", "ann")
    ran = rhythm("approve", "none", *on)
    assert (ran.code, "there is no approval 'none'" in ran.err) == (1, True)


def test_key_that_comes_again_with_other_inputs_is_refused(rhythm: Command, base: str) -> None:
    on = ("--server", base, "--token-file", "token")
    assert rhythm("start", "hold", "-i", "n:=1", "--key", "k", *on).code == 0
    assert rhythm("start", "hold", "-i", "n:=1", "--key", "k", *on).code == 0
    ran = rhythm("start", "hold", "-i", "n:=2", "--key", "k", *on)
    assert (ran.code, "with other inputs" in ran.err) == (2, True)


def test_command_that_asks_a_server_imports_no_driver_and_no_server() -> None:
    code = (
        "import sys; from rhythm.cli.main import main; "
        "main(['list', '--server', 'http://127.0.0.1:1']); "
        "print(sorted({'sqlite3', 'psycopg', 'fastapi', 'uvicorn', 'asyncio', 'rich'} & "
        "set(sys.modules)))"
    )
    assert alone(code)[-1] == "[]"


# a server that is not what it seems


EVILS: dict[str, Any] = {
    "text": {"status": 500, "code": "x", "detail": EVIL},
    "refused": {"status": 401, "code": "x", "detail": EVIL},
    "conflict": {"status": 409, "code": "not_retryable", "detail": EVIL},
}


def answering(status: int, kind: str, body: bytes) -> Callable[..., Any]:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        headers = [(b"content-type", kind.encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


def view(**changes: Any) -> dict[str, Any]:
    """An execution as a server sends it."""
    times = dict.fromkeys(("created_at",), "2026-01-01T00:00:00Z")
    empty = dict.fromkeys(
        (
            "inputs", "result", "error", "parent_id", "retry_of", "started_at", "finished_at",
            "cancel_requested_at", "paused_at", "awaiting",
        )
    )  # fmt: skip
    words = dict.fromkeys(("id", "type", "name", "version", "queue", "root_id"), "task")
    return {
        **words, **empty, **times, "status": "pending", "attempt": 0, "max_attempts": 1,
        "attributes": {}, **changes,
    }  # fmt: skip


@pytest.mark.parametrize(
    "command", [["list"], ["show", "a"], ["trace", "a"], ["workers"], ["why", "a"]]
)
@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        *[(value["status"], "application/problem+json", document(value)) for value in EVILS.values()],
        (200, "text/html", EVIL.encode()),
        (200, EVIL.encode().decode("latin-1").replace("\r", "").replace("\n", ""), b"{}"),
        (200, "application/json", EVIL.encode()),
        (200, "application/json", b"[" * 200 + b"]" * 200),
        (200, "application/json", document({"items": [view(id=EVIL, name=EVIL)], "cursor": None})),
        (200, "application/json", document({"items": [{"name": EVIL}], "cursor": EVIL})),
        (200, "application/json", document(view(error={"code": 1}))),
        (200, "application/json", document(view(awaiting={"op": EVIL, "n": 1}))),
    ],
)  # fmt: skip
def test_whatever_a_server_sends_is_text_and_ends_in_a_message(
    command: list[str],
    status: int,
    kind: str,
    body: bytes,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serving(answering(status, kind, body)) as base:
        code = main([*command, "--server", base])
    out, err = capsys.readouterr()
    assert code in (0, 1, 2)
    assert code == 0 or err.startswith("rhythm: ")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2066\u200f]", out + err)
    assert "\nFAKE" not in out + err
    json.dumps(out)
