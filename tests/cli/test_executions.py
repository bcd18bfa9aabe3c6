"""The commands on a database, on both databases: what they print, for people and for programs, and
their exit codes."""

from __future__ import annotations

import json
import re
import shlex
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rhythm as package
from rhythm.app import Rhythm
from rhythm.app.views import ExecutionView
from rhythm.cli import waiting
from rhythm.cli.hints import missing_tasks
from rhythm.cli.main import COMMANDS, main
from rhythm.store.interfaces.logs import RootLines
from rhythm.store.postgres import connecting
from tests.app import conftest as applications
from tests.app.conftest import MakeApp
from tests.cli.conftest import Shell
from tests.cli.places import There, on_database
from tests.support.stores import rob
from tests.test_layers import HEAVY, alone

url, make_app = applications.url, applications.make_app
NEW = (
    "start", "list", "show", "trace", "logs", "result", "signal", "cancel", "retry", "pause", "resume",
    "workflows", "workers", "queues", "queue",
)  # fmt: skip
READING = [
    "list", "workflows", "show x", "trace x", "logs x", "result x", "signal x go", "cancel x", "retry x",
    "pause x", "resume x", "workers", "queues",
    "queue pause x",
]  # fmt: skip
ORDER = """workflow order(inputs) {
  let receipt = await task("charge", { order: inputs.id })
  let answer = await signal("approve", { timeout: "2d" })
  return { receipt, answer }
}
"""
PARENT = """workflow parent(inputs) {
  let got = await all([task("charge", { order: "B" }), workflow("child", { n: inputs.n })])
  return got
}
workflow child(inputs) {
  return 1 / inputs.n
}
"""


class Ran:
    """What a command printed, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        assert "Traceback" not in err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Ran]


@pytest.fixture
def rhythm(
    there: There,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Command:
    """Runs a command in a folder of its own, on the database of the test or a server on it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "order.flow").write_text(ORDER)
    (tmp_path / "parent.flow").write_text(PARENT)

    def run(command: str, *more: str) -> Ran:
        capsys.readouterr()
        code = main(there.words([*shlex.split(command), *more]))
        return Ran(code, *capsys.readouterr())

    return run


def charge(order: str) -> str:
    package.current().log.info("charging", extra={"order": order})
    if order == "unpaid":
        raise ValueError("no money")
    return f"{order}/1"


@pytest.fixture
def app(rhythm: Command, make_app: MakeApp) -> Rhythm:
    """What else there is on the database: an application with the task that the workflows need."""
    return make_app(charge, flows=("order.flow", "parent.flow"))


def until(app: Rhythm, id: str, reached: Callable[[ExecutionView], bool]) -> ExecutionView:
    """Works until the execution is there."""
    with app.worker():
        for _ in range(12_000):
            if reached(seen := app.get(id)):
                return seen
            try:
                app.result(id, 0.01)
            except Exception:
                continue
    raise AssertionError(f"{seen} is not there")


def waits_for_signal(seen: ExecutionView) -> bool:
    return seen.status == "suspended" and seen.awaiting["op"] == "signal"


def ended(seen: ExecutionView) -> bool:
    return seen.ended


# start


def test_start_prints_the_id_alone_and_a_line_for_people(rhythm: Command, app: Rhythm) -> None:
    ran = rhythm(
        "start order.flow -i id=A17 -i count:=2 --attribute customer=Ada --attribute "
        "vip:=true --queue fast --priority 7"
    )
    seen = app.get(ran.out.strip())
    assert (ran.code, ran.out) == (0, f"{seen.id}\n")
    assert ran.err == f"started order (version {seen.version[:12]}, queue fast): {seen.id}\n"
    assert (seen.inputs, seen.attributes, seen.queue) == (
        {"id": "A17", "count": 2},
        {"customer": "Ada", "vip": True},
        "fast",
    )


def test_start_takes_inputs_from_a_file_and_from_standard_input(
    rhythm: Command, app: Rhythm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inputs.json").write_text('{"id": "from a file"}')
    assert app.get(rhythm("start order --inputs @inputs.json").out.strip()).inputs == {
        "id": "from a file"
    }
    with (tmp_path / "inputs.json").open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert app.get(rhythm("start order --inputs -").out.strip()).inputs == {"id": "from a file"}
    assert app.get(rhythm("start order --inputs", "[1, 2]").out.strip()).inputs == [1, 2]


def test_start_with_a_key_or_id_that_was_used_says_so_or_fails_or_replaces(
    rhythm: Command, app: Rhythm
) -> None:
    first = rhythm("start order --key K --id mine").out.strip()
    assert first == "mine"
    again = rhythm("start order --key K --output json")
    assert again.json == {"id": "mine", "created": False}
    assert "was started before, and is pending: mine" in again.err
    refused = rhythm("start order --key K --on-conflict fail")
    assert (refused.code, refused.out) == (1, "")
    assert "belongs to an execution that was started before: mine" in refused.err
    replaced = rhythm("start order --key K --on-conflict replace --output json").json
    assert replaced["created"]
    assert app.get("mine").cancel_requested_at is not None
    assert rhythm("start order --on-conflict replace").err.startswith(
        "rhythm: --on-conflict replace goes with --key"
    )


@on_database("a server takes one file at a time, and has its own folder of workflows")
def test_start_of_a_name_that_nobody_registered_looks_into_the_folder_of_workflows(
    rhythm: Command, tmp_path: Path
) -> None:
    assert (
        rhythm("start other").err
        == "rhythm: there is no workflow `other`; none is registered yet: "
        "`rhythm worker --app FILE` and `rhythm start FILE` register those of a file\n"
    )
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "other.flow").write_text("workflow other(inputs) {\n  return 1\n}\n")
    assert rhythm("start other").code == 0
    (tmp_path / "workflows" / "other.flow").write_text("workflow other(inputs) {\n  return 2\n}\n")
    versions = [item["version"] for item in rhythm("workflows --output json").json["items"]]
    # a name that is registered is started as it is: the folder may not be meant for this database
    assert rhythm("start other").code == 0
    assert [item["version"] for item in rhythm("workflows --output json").json["items"]] == versions
    assert rhythm("start other --workflows workflows").code == 0
    assert [item["version"] for item in rhythm("workflows --output json").json["items"]] != versions


@on_database("a server takes one file at a time, and has its own folder of workflows")
def test_start_of_a_file_that_its_folder_also_has_registers_it_once(rhythm: Command) -> None:
    assert rhythm("start order.flow --workflows .").code == 0


@on_database("a server takes one file at a time, and has its own folder of workflows")
def test_start_of_a_name_registers_the_files_that_are_named_first(rhythm: Command) -> None:
    assert rhythm("start child --workflows parent.flow --workflows order.flow").code == 0
    assert [item["name"] for item in rhythm("workflows --output json").json["items"]] == [
        "child",
        "order",
        "parent",
    ]


def test_file_is_never_taken_for_the_text_of_a_workflow(rhythm: Command, tmp_path: Path) -> None:
    (tmp_path / "{odd}.flow").write_text(ORDER)
    assert rhythm("start {odd}.flow").code == 0


def test_file_that_does_not_compile_is_shown_and_nothing_is_registered(
    rhythm: Command, make_app: MakeApp, tmp_path: Path
) -> None:
    make_app()
    (tmp_path / "bad.flow").write_text("workflow bad(inputs) {\n  retrun 1\n}\n")
    ran = rhythm("start bad.flow")
    assert (ran.code, ran.out) == (2, "")
    assert "bad.flow:2:3" in ran.err
    assert ran.err.endswith("rhythm: the workflow does not compile; nothing was registered\n")
    assert rhythm("workflows").out == "no workflows yet: `rhythm start FILE.flow` registers one\n"


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("start ordre", 2, "there is no workflow `ordre`; did you mean `order`?"),
        ("start nothing.flow", 2, "there is no file or folder nothing.flow to read workflows from"),
        ("start a/b", 2, "a/b is neither the name of a workflow nor a .flow or .json file"),
        ("start order --id a.b", 2,
            "'a.b' cannot be an id: an id contains no dot, slash, space or control character"),
        ("start order --priority high", 2, "--priority is a whole number, not high"),
        ("start order --priority 9999999999", 2,
            "priority is a whole number from -2,147,483,648 on"),
        ("start order --delay soon", 2, '--delay: "soon" is not a duration'),
        ("start order --timeout 1s", 2, "--timeout goes with --wait"),
        ("start order --wait --timeout soon", 2, '--timeout: "soon" is not a duration'),
        ("start order -i n:=x", 2, "n is not JSON"),
        ("start order -i n", 2, "-i n: write KEY=TEXT, or KEY:=JSON"),
        ("start order --attribute n", 2, "--attribute n: write KEY=TEXT, or KEY:=JSON"),
        ("start order --inputs @nothing.json", 2, "cannot read nothing.json"),
        ("start order --database sqlite://:memory:", 2,
            "a database in memory ends with this command"),
        ("list --limit many", 2, "--limit is a whole number, not many"),
        ("list --limit 0", 2, "limit is a whole number from 1 on, not 0"),
        ("list --status done", 2, "status is one of pending, running,"),
        ("list --cursor x", 2, "'x' is not the cursor of a page"),
        ("workflows ordre", 1, "there is no workflow `ordre`; did you mean `order`?"),
        ("show nobody", 1,
            "there is no execution 'nobody'; `rhythm list` shows those that there are"),
        ("result nobody", 1, "there is no execution 'nobody'"),
        ("result mine --timeout soon", 2, '--timeout: "soon" is not a duration'),
        ("trace nobody", 1, "there is no execution 'nobody'"),
        ("signal nobody go", 1, "there is no execution 'nobody'"),
        ("signal mine go {", 2, "payload is not JSON"),
        ("signal mine go 1 -i a=b", 2, "give the payload as JSON or with -i, not with both"),
        ("retry nobody", 1, "there is no execution 'nobody'"),
        ("retry mine", 1, "mine has not ended: cancel it, or wait"),
        ("pause nobody", 1, "there is no execution 'nobody'"),
        ("resume nobody", 1, "there is no execution 'nobody'"),
        ("resume mine", 1, "nobody has paused mine: it is pending"),
        ("cancel nobody", 1, "there is no execution 'nobody'"),
        ("cancel", 2, "ID is missing: name an execution, or give --all"),
        ("pause a-task", 2, "a-task is a task, and this is for workflows"),
        ("resume a-task", 2, "a-task is a task, and this is for workflows"),
        ("signal a-task go", 2, "a-task is a task, and this is for workflows"),
        ("show mime", 1, "there is no execution 'mime'"),
        ("show mine more", 2, "`more` is one argument too many"),
    ],
)  # fmt: skip
def test_mistake_is_one_line_that_says_what_to_do(
    rhythm: Command, app: Rhythm, command: str, code: int, message: str
) -> None:
    app.start_workflow("order", id="mine")
    app.queue_task("charge", {"order": "A"}, id="a-task")
    ran = rhythm(command)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("rhythm: ")
    assert message in ran.err
    assert len(app.list()) == 2


@on_database("a server runs no tasks of this process")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("start order --app tasks.py", "--app goes with --wait"),
        ("start order --wait --app nothing.py", "there is no file nothing.py"),
    ],
)
def test_app_that_cannot_be_is_one_line_that_says_what_to_do(
    rhythm: Command, app: Rhythm, command: str, message: str
) -> None:
    ran = rhythm(command)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("rhythm: ")
    assert message in ran.err


@on_database("a server has its own settings")
def test_setting_that_cannot_be_is_wrong_usage(
    rhythm: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RHYTHM_CONCURRENCY", "many")
    for command in ("start order.flow", "list"):
        ran = rhythm(command)
        assert (ran.code, ran.out) == (2, "")
        assert "concurrency" in ran.err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("start ordre", "there is no workflow `ordre`; none is registered yet"),
        (
            "start ordre --workflows order.flow",
            "there is no workflow `ordre`; did you mean `order`?",
        ),
        ("start bad.flow", "bad.flow:2:3"),
        ("start order.flow --id a.b", "'a.b' cannot be an id"),
        ("start order.flow -i n", "write KEY=TEXT"),
    ],
)
def test_start_that_is_refused_leaves_no_new_database(
    rhythm: Command, tmp_path: Path, command: str, message: str
) -> None:
    (tmp_path / "bad.flow").write_text("workflow bad(inputs) {\n  retrun 1\n}\n")
    ran = rhythm(f"{command} --database sqlite:///new.db")
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("text", ["a\0b", "a\udcffb"])
@pytest.mark.parametrize(
    "command",
    [
        "show",
        "list --workflow",
        "cancel",
        "start",
        "start order --id",
        "signal x",
    ],
)
def test_text_that_no_database_takes_is_refused(
    rhythm: Command, app: Rhythm, command: str, text: str
) -> None:
    ran = rhythm(command, text)
    assert (ran.code, ran.out) == (2, "")
    assert "is not a text that can be stored" in ran.err


@pytest.mark.parametrize("text", ["a=\0", "a=\udcff", "\udcff=a"])
def test_input_that_no_database_takes_is_refused(rhythm: Command, app: Rhythm, text: str) -> None:
    ran = rhythm("start order -i", text)
    assert (ran.code, ran.out) == (2, "")


def test_id_that_is_nearly_that_of_an_execution_is_suggested(rhythm: Command, app: Rhythm) -> None:
    id = app.start_workflow("order").id
    typo = id[:-1] + ("0" if id[-1] != "0" else "1")
    assert (
        rhythm(f"show {typo}").err
        == f"rhythm: there is no execution '{typo}'; did you mean {id}?\n"
    )


# the database


@pytest.mark.parametrize("command", READING)
def test_command_on_what_is_there_makes_no_database(
    rhythm: Command, tmp_path: Path, command: str
) -> None:
    ran = rhythm(f"{command} --database sqlite:///none.db")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "rhythm: there is no database none.db here; `rhythm dev` or `rhythm start` "
        "makes one, or give --database\n"
    )
    assert not (tmp_path / "none.db").exists()


@on_database("it is about databases")
def test_database_is_that_of_the_flag_else_the_variable_else_the_file_else_the_default(
    rhythm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rhythm.toml").write_text('database_url = "sqlite:///of-the-file.db"\n')
    rhythm("start order.flow --database sqlite:///of-the-flag.db")
    assert (tmp_path / "of-the-flag.db").exists()
    monkeypatch.delenv("RHYTHM_DATABASE_URL")
    rhythm("start order.flow")
    assert (tmp_path / "of-the-file.db").exists()
    assert len(rhythm("list --output json").json["items"]) == 1
    (tmp_path / "rhythm.toml").unlink()
    assert not (tmp_path / "rhythm.db").exists()
    rhythm("start order.flow")
    assert (tmp_path / "rhythm.db").exists()


def test_start_where_there_is_no_database_asks_whether_it_is_the_right_folder(
    rhythm: Command,
) -> None:
    ran = rhythm("start order --database sqlite:///nowhere.db --workflows .")
    assert ran.code == 0
    err = rhythm("start other --database sqlite:///new.db").err
    assert err.endswith("There is no database new.db here, either: is this the right folder?\n")


def test_database_without_tables_is_left_as_it_is(rhythm: Command, tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    ran = rhythm("list --database sqlite:///empty.db")
    assert (ran.code, ran.err) == (
        1,
        (
            "rhythm: the database has no tables of Rhythm yet: run `rhythm migrate`, "
            "or give another --database\n"
        ),
    )


def test_schema_of_a_newer_rhythm_is_refused(rhythm: Command, tmp_path: Path) -> None:
    import sqlite3

    rhythm("start order.flow --database sqlite:///newer.db")
    db = sqlite3.connect(tmp_path / "newer.db")
    db.execute("INSERT INTO schema_version VALUES (99, 'later', 0)")
    db.commit()
    db.close()
    for command in ("list", "start order"):
        ran = rhythm(f"{command} --database sqlite:///newer.db")
        assert (ran.code, ran.out) == (1, "")
        assert "the database has 99; upgrade Rhythm" in ran.err


def test_database_may_be_named_as_sqlalchemy_does(rhythm: Rhythm) -> None:
    ran = rhythm("list --database sqlite+aiosqlite:///none.db")
    assert (ran.code, ran.err.split(";")[0]) == (1, "rhythm: there is no database none.db here")
    assert rhythm("migrate --database sqlite+pysqlite:///mine.db").code == 0
    assert rhythm("list --database sqlite:///mine.db").code == 0


@pytest.mark.parametrize(
    ("url_given", "message"),
    [
        ("mysql://x", "no database can be opened with `mysql://x`"),
        ("sqlite:///", "names no file"),
        ("sqlite:///no/folder/x.db", "there is no folder no/folder"),
        (
            "sqlite:///order.flow",
            "cannot open the SQLite database order.flow: file is not a database",
        ),
        ("postgresql://nobody@127.0.0.1:1/none", "the PostgreSQL database did not answer"),
        ("postgresql://a b", "cannot be used"),
    ],
)
@pytest.mark.parametrize("command", ["list", "start order.flow"])
def test_database_that_cannot_be_used_is_one_line(
    rhythm: Command, command: str, url_given: str, message: str
) -> None:
    ran = rhythm(command, "--database", url_given)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert message in ran.err


# the server is one that never answers, whatever else there is
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_server_that_never_answers_is_not_waited_for_without_end(
    rhythm: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connecting.DEFAULTS, "connect_timeout", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for command, code in (("list", 1), ("migrate", 2)):
            ran = rhythm(
                f"{command} --database postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/none"
            )
            assert (ran.code, ran.out) == (code, "")
            assert "did not answer" in ran.err


# asking


def test_list_is_a_table_that_fits_and_says_how_to_go_on(rhythm: Command, app: Rhythm) -> None:
    assert rhythm("list").out == "no executions yet: `rhythm start` starts one\n"
    assert rhythm("list --status failed").out == "no executions like that\n"
    failed = app.start_workflow("order", {"id": "unpaid"}).id
    until(app, failed, ended)
    waits = app.start_workflow("order", {"id": "A17"}).id
    until(app, waits, waits_for_signal)
    ran = rhythm("list")
    head, *rows = ran.out.splitlines()
    assert re.split(r"  +", head) == ["ID", "WORKFLOW", "STATUS", "AGE", "WAITS FOR / ERROR"]
    assert re.fullmatch(rf"{waits}  order     suspended  (now|\d+s)  +signal approve", rows[0])
    assert re.fullmatch(rf"{failed}  order     failed     (now|\d+s)  +TaskFailed: .*…", rows[1])
    assert max(map(len, rows)) == 100
    assert (len(rows), ran.err) == (2, "")
    assert rhythm("list status:failed workflow:order").out.splitlines()[1].startswith(failed)
    assert rhythm("list status:blocked").out == "no executions like that\n"
    assert (rhythm("count").out, rhythm("count status:failed").out) == ("2\n", "1\n")
    wrong = rhythm("list stauts:failed")
    assert (wrong.code, wrong.out) == (2, "")
    assert "did you mean `status`, as in status:failed?" in wrong.err
    more = rhythm("list --limit 1 workflow:order age<1h")
    assert f"-- {shlex.quote('workflow:order age<1h')}" in more.err
    page = rhythm("list --limit 1 --workflow order")
    assert page.out.splitlines()[1].startswith(waits)
    assert page.err.startswith("there are more: rhythm list --workflow order --cursor ")
    following = rhythm(page.err.removeprefix("there are more: rhythm "))
    assert following.out.splitlines()[1].startswith(failed)
    assert following.err == ""
    assert [line.split()[0] for line in rhythm("list --status failed").out.splitlines()[1:]] == [
        failed
    ]


EXECUTION = [
    "id", "type", "name", "status", "inputs", "result", "error", "version", "queue", "parent_id",
    "root_id", "retry_of", "attempt",
    "max_attempts", "created_at", "started_at", "finished_at", "cancel_requested_at", "paused_at",
    "awaiting", "attributes",
    "paused_reason", "paused_by", "paused_until", "paused_manually", "started_by",
    "paused_metadata",
]  # fmt: skip


def test_json_documents_keep_their_fields(rhythm: Command, app: Rhythm) -> None:
    """Programs read these: a field may be added, none may go or change its kind."""
    id = app.start_workflow("parent", {"n": 2}, attributes={"a": [1]}).id
    until(app, id, ended)
    shown = rhythm(f"show {id} --output json").json
    assert (shown.pop("step_id"), shown.pop("retried_as")) == (None, None)
    assert list(shown) == EXECUTION
    assert (shown["inputs"], shown["result"], shown["attributes"]) == (
        {"n": 2},
        ["B/1", 0.5],
        {"a": [1]},
    )
    assert all(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", shown[name])
        for name in ("created_at", "started_at", "finished_at")
    )
    assert rhythm("list --output json").json == {"items": [shown], "cursor": None}
    assert [json.loads(line) for line in rhythm("list --output ndjson").out.splitlines()] == [shown]
    assert json.loads(rhythm(f"show {id} --output ndjson").out) == shown | {
        "step_id": None,
        "retried_as": None,
    }
    steps = rhythm(f"trace {id} --output json").json["items"]
    assert all(
        " ".join(step) == "at execution_id what name line detail worker attempt took_s step"
        for step in steps
    )
    assert [
        json.loads(line) for line in rhythm(f"trace {id} --output ndjson").out.splitlines()
    ] == steps
    (child, _, parent) = rhythm("workflows --output json").json["items"]
    assert list(child) == ["name", "version", "language", "file", "registered_at", "inputs"]
    assert rhythm("workflows parent --output json").json == parent | {
        "on": [],
        "newest": {"completed": 1},
    }


def test_next_page_of_json_is_asked_for_with_its_cursor(rhythm: Command, app: Rhythm) -> None:
    ids = [app.start_workflow("order").id for _ in range(3)]
    first = rhythm("list --output json --limit 2")
    assert (first.err, [item["id"] for item in first.json["items"]]) == ("", [ids[2], ids[1]])
    assert [
        item["id"]
        for item in rhythm("list --output json --cursor", first.json["cursor"]).json["items"]
    ] == [ids[0]]
    lines = rhythm("list --output ndjson --limit 2")
    assert lines.err == (
        f"there are more: rhythm list --cursor {first.json['cursor']} --limit 2 --output ndjson\n"
    )


def test_command_for_the_next_page_repeats_the_database_but_no_password(
    rhythm: Command, app: Rhythm, url: str
) -> None:
    for _ in range(2):
        app.start_workflow("order")
    assert f" --database {shlex.quote(url)} " in rhythm("list --limit 1 --database", url).err
    if url.startswith("postgresql://"):
        secret = url.replace("rhythm@", "rhythm:geheim@", 1)
        said = rhythm("list --limit 1 --database", secret).err
        assert " --database URL " in said
        assert "geheim" not in said


def test_show_tells_what_an_execution_waits_for_and_until_when(
    rhythm: Command, app: Rhythm
) -> None:
    delayed = rhythm("start order --delay 3h").out.strip()
    assert re.search(r"\nwaits for   its time: .* UTC, in 2h59m\n", rhythm(f"show {delayed}").out)
    id = app.start_workflow("order", {"id": "A17"}, attributes={"customer": "Ada"}).id
    assert "\nwaits for   a worker that serves the queue default\n" in rhythm(f"show {id}").out
    until(app, id, waits_for_signal)
    shown = rhythm(f"show {id}").out
    assert re.search(
        r"\nwaits for   signal approve \(line 3\)\n            next due .* UTC, in 1d23h\n", shown
    )
    assert (
        '\nchildren    1: 1 completed\nattributes  {"customer": "Ada"}\ninputs      {"id": "A17"}\n'
        in shown
    )
    assert re.search(
        r"^workflow    order, version [0-9a-f]{12} of order.flow$", shown, re.MULTILINE
    )
    rhythm(f"pause {id} --reason 'the bank is down' --by Ada")
    assert re.search(
        r"^status      paused since .* UTC, .* by Ada: the bank is down$",
        rhythm(f"show {id}").out,
        re.MULTILINE,
    )
    rhythm(f"cancel {id}")
    assert re.search(
        r"^status      paused .*, asked to end .* UTC, ", rhythm(f"show {id}").out, re.MULTILINE
    )


def test_show_leaves_out_of_a_group_what_has_ended(rhythm: Command, app: Rhythm) -> None:
    app.register(
        'workflow group(inputs) {\n  let a = await all([task("charge", { order: "A" }), '
        'sleep("1h")])\n  return a\n}'
    )
    id = app.start_workflow("group").id
    until(
        app,
        id,
        lambda seen: any(child.finished_at for child in app.store.reading.children(seen.id)),
    )
    assert "\nwaits for   a timer (line 2)\n            next due " in rhythm(f"show {id}").out


def test_show_puts_a_failure_under_its_line_down_to_the_child_that_began_it(
    rhythm: Command, app: Rhythm
) -> None:
    id = app.start_workflow("parent", {"n": 0}).id
    until(app, id, ended)
    shown = rhythm(f"show {id}").out
    first, second = (
        shown.index("failed[ChildFailed]: `child` failed: division by zero"),
        shown.index("failed[DivisionByZero]"),
    )
    assert first < second
    assert (
        '2 │   let got = await all([task("charge", { order: "B" }), workflow("child", { '
        "n: inputs.n })])\n  │                   ^"
    ) in shown
    assert "6 │   return 1 / inputs.n\n  │            ^" in shown
    assert shown.endswith(f"\n`rhythm retry {id}` goes on from there\n")
    child = rhythm(f"show {id}.3").out
    assert f"\nparent      {id}\n" in child
    assert "ChildFailed" not in child
    task = app.start_workflow("order", {"id": "unpaid"}).id
    until(app, task, ended)
    assert "\nattempt     1 of 1\n" in rhythm(f"show {task}.1").out
    assert (
        "failed[TaskFailed]: task `charge` failed: ValueError: no money"
        in rhythm(f"show {task}.1").out
    )


def test_show_tells_of_an_attempt_that_a_dead_worker_has_cost(rhythm: Command, app: Rhythm) -> None:
    id = app.queue_task("charge", {"order": "A"}).id
    for attempt, said in ((1, "1 of 1"), (2, "2, since a worker died with an earlier one")):
        (claim,) = app.store.claims.claim(f"worker {attempt}", ["default"], 1, 60.0)
        assert claim.id == id
        assert f"\nattempt     {said}\n" in rhythm(f"show {id}").out
        assert rob(app.store, f"worker {attempt}", crash_limit=3) == [id]


def test_trace_tells_it_in_the_order_of_time_with_children_indented(
    rhythm: Command, app: Rhythm
) -> None:
    id = app.start_workflow("parent", {"n": 0}).id
    until(app, id, ended)
    lines = [
        re.sub(r"^ *[\d.]+s  |\d+(\.\d+)?m?s", "", line)
        for line in rhythm(f"trace {id}").out.splitlines()
    ]
    assert lines[:2] == [
        "▶ parent(n=0)",
        '… line 2: let got = await all([task("charge", { order: "B" }), workflow("child", { n: in…',
    ]
    assert '  → charge(order="B")' in lines
    assert lines.index("  ▶ workflow child(n=0)") < lines.index(
        "  ■ failed child after : DivisionByZero: division by zero"
    )
    assert lines[-1] == "■ failed parent after : ChildFailed: `child` failed: division by zero"
    waits = app.start_workflow("order", {"id": "A17"}).id
    until(app, waits, waits_for_signal)
    assert rhythm(f"trace {waits}").out.endswith(
        f"it is suspended; `rhythm show {waits}` tells what it waits for\n"
    )


def test_trace_has_signals_and_what_was_logged(rhythm: Command, app: Rhythm) -> None:
    id = app.start_workflow("order", {"id": "A17"}).id
    app.signal(id, "approve", {"ok": True})
    until(app, id, ended)
    out = rhythm(f"trace {id}").out
    lines = [re.sub(r"^ *[\d.]+s  | in [\d.]+m?s", "", line) for line in out.splitlines()]
    assert '✉ signal approve = {"ok": true}' in lines
    done = '  ✓ charge = "A17/1"'
    assert lines.index("  · charge: charging order=A17") < lines.index(done)
    assert rhythm(f"trace {id} --follow").out == out
    for how in ("--no-logs", "--level error"):
        shown = rhythm(f"trace {id} {how}").out
        assert shown.splitlines() == [line for line in out.splitlines() if "charging" not in line]
    assert "--output out" in rhythm(f"trace {id} --follow --output json").err


def test_trace_follows_until_the_end(rhythm: Command, app: Rhythm) -> None:
    id = app.start_workflow("order", {"id": "A"}).id
    with app.worker():
        timer = threading.Timer(1.0, lambda: app.signal(id, "approve", 1))
        timer.start()
        followed = rhythm(f"trace {id} --follow").out
        timer.join()
    # a line of a log is stored a moment later than what it was said in
    assert sorted(followed.splitlines()) == sorted(rhythm(f"trace {id}").out.splitlines())
    assert "■ completed order" in followed


def test_trace_tells_what_there_is_many_times_in_one_line(
    rhythm: Command, app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rhythm.cli.commands.trace.MOST_ALIKE", 5)
    app.register("workflow many() {\n  for (r in completed([task(\"charge\", { order: x }) for x in "
        "[\"a\", \"b\", \"c\", \"unpaid\", \"d\", \"e\"]])) { log(\"one\", { level: \"debug\" }) }\n}")  # fmt: skip
    id = app.start_workflow("many").id
    until(app, id, ended)
    out = rhythm(f"trace {id}").out
    (line,) = [line for line in out.splitlines() if "charge" in line and "×" in line]
    words = r"✗ 6 × charge: 5 completed, 1 failed \(first …\.\d+\); slowest \S+ \(…\.\d+\)$"
    assert re.search(words, line)
    assert "charging" not in out
    full = rhythm(f"trace {id} --all").out
    assert (full.count("→ charge"), full.count("charging")) == (6, 6)


def test_logs_are_lines_of_the_root_and_of_everything_below_it(
    rhythm: Command, app: Rhythm
) -> None:
    app.register("workflow says(inputs) {\n  log(\"one two\", { a: 1, b: \"c d\" })\n  progress(0.25, "
        "\"a quarter\")\n  await task(\"charge\", { order: \"A\" })\n  log(\"end\", { level: "
        "\"error\" })\n}")  # fmt: skip
    id = app.start_workflow("says").id
    until(app, id, ended)
    out = rhythm(f"logs {id}").out
    lines = [re.sub(r"^\d\d:\d\d:\d\d\.\d{3} ", "", line) for line in out.splitlines()]
    assert lines == [
        'info     says  one two a=1 b="c d"',
        "info     says  % 25% a quarter",
        "info     charge  charging order=A",
        "error    says  end",
    ]
    assert rhythm(f"logs {id} --level error").out.endswith(" error    says  end\n")
    assert rhythm(f"logs {id} --since 1h").out == out == rhythm(f"logs {id} --follow").out
    assert rhythm(f"logs {id} --since 0.0001s").out == ""
    assert rhythm(f"logs {id}.1 --output json").json["items"][0]["fields"] == {"order": "A"}
    assert rhythm(f"logs {id} --output json").json["dropped"] == 0
    many = [json.loads(line) for line in rhythm(f"logs {id} --output ndjson").out.splitlines()]
    assert [line["message"] for line in many] == ["one two", "a quarter", "charging", "end"]
    assert "\nprogress    % 25% a quarter, " in rhythm(f"show {id}").out


def test_logs_tell_how_many_lines_were_not_kept(rhythm: Command, app: Rhythm) -> None:
    id = app.start_workflow("order", {"id": "A"}).id
    app.store.logs.write([RootLines(id, (), 1204)])
    assert rhythm(f"logs {id}").out == "(1,204 more lines were not kept)\n"


def test_logs_follow_until_the_end(rhythm: Command, app: Rhythm) -> None:
    id = app.start_workflow("order", {"id": "A"}).id
    with app.worker():
        timer = threading.Timer(0.5, lambda: app.signal(id, "approve", 1))
        timer.start()
        assert "charging order=A" in rhythm(f"logs {id} --follow").out
        timer.join()
    assert app.get(id).ended


def test_trace_of_a_retry_begins_with_what_it_kept(rhythm: Command, app: Rhythm) -> None:
    app.register(
        'workflow twice(inputs) {\n  await task("charge", { order: "A" })\n  return await '
        'task("charge", { order: "unpaid" })\n}'
    )
    old = app.start_workflow("twice").id
    until(app, old, ended)
    new = app.retry(old).id
    until(app, new, ended)
    lines = [re.sub(r" in \S+$", "", line) for line in rhythm(f"trace {new}").out.splitlines()]
    assert lines[:3] == [
        '     kept    ✓ charge = "A/1"',
        "    0.00s  ▶ twice(null)",
        f"    0.00s  ▶ goes on where {old} ended",
    ]


def test_what_a_terminal_would_obey_is_not_shown(rhythm: Command, app: Rhythm) -> None:
    app.register('workflow evil(inputs) {\n  let x = await signal("a\\u009b2Jb")\n  return x\n}')
    id = app.start_workflow("evil", {"x": "\x9b2J\x1b[2J"}, queue="q").id
    until(app, id, lambda seen: True)
    app.register('workflow loud(inputs) {\n  throw "a\u009b2Jb"\n}')
    loud = app.start_workflow("loud").id
    assert until(app, loud, ended).error["message"] == "a\x9b2Jb"
    for command in (f"show {id}", "list", f"trace {id}", f"show {loud}", f"trace {loud}"):
        assert not [c for c in rhythm(command).out if not c.isprintable() and c != "\n"]


def test_result_is_the_value_alone(rhythm: Command, app: Rhythm) -> None:
    id = app.start_workflow("parent", {"n": 2}).id
    assert rhythm(f"result {id} --timeout 0s").code == 3
    until(app, id, ended)
    ran = rhythm(f"result {id}")
    assert (ran.code, ran.json, ran.err) == (0, ["B/1", 0.5], "")
    failed = app.start_workflow("parent", {"n": 0}).id
    until(app, failed, ended)
    ran = rhythm(f"result {failed} --timeout 1m")
    assert (ran.code, ran.out) == (1, "")
    assert "failed[DivisionByZero]: division by zero" in ran.err


def test_workflows_are_listed_with_version_and_file(rhythm: Command, app: Rhythm) -> None:
    rhythm("start order.flow")
    lines = rhythm("workflows").out.splitlines()
    version = app.workflows()[1].version
    assert re.fullmatch(
        rf"order     {version[:12]}  \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC  order.flow", lines[2]
    )
    shown = rhythm("workflows order").out
    assert f"\nversion     {version}\nfile        order.flow\n" in shown
    assert shown.endswith("\nexecutions  1: 1 pending\n")


# changing


def test_signal_says_whether_it_is_waited_for(rhythm: Command, app: Rhythm) -> None:
    id = app.start_workflow("order", {"id": "A17"}).id
    assert (
        rhythm(f"signal {id} later").out
        == f"sent later to {id}: it stays in the mailbox until the workflow asks for it\n"
    )
    until(app, id, waits_for_signal)
    stays = "it stays in the mailbox until the workflow asks for it; it waits for `approve` now"
    assert rhythm(f"signal {id} other").out == f"sent other to {id}: {stays}\n"
    assert (
        rhythm(f"signal {id} aprove").out == f"sent aprove to {id}: {stays}; did you mean that?\n"
    )
    assert (
        rhythm(f"signal {id} approve -i ok:=true -i by=Ada --signal-id one").out
        == f"sent approve to {id}: it waits for it\n"
    )
    assert (
        rhythm(f"signal {id} approve --signal-id one").out
        == f"the signal one was sent to {id} before; nothing was sent now\n"
    )
    assert until(app, id, ended).result["answer"] == {"ok": True, "by": "Ada"}
    late = rhythm(f"signal {id} approve 1")
    assert (late.code, late.err) == (
        1,
        f"rhythm: the signal `approve` was not delivered to {id}: it has ended\n",
    )


def test_payload_of_a_signal_is_json(rhythm: Command, app: Rhythm) -> None:
    for given, payload in (("[1]", [1]), ('"text"', "text"), (None, None)):
        id = app.start_workflow("order", {"id": "A17"}).id
        assert rhythm(f"signal {id} approve", *([given] if given else [])).code == 0
        assert until(app, id, ended).result["answer"] == payload
    assert "; for the text write '\"yes\"'\n" in rhythm(f"signal {id} approve yes").err


def test_cancel_tells_of_each_what_follows(rhythm: Command, app: Rhythm) -> None:
    ids = [app.start_workflow("order", {"id": "A17"}).id for _ in range(2)]
    until(app, ids[0], waits_for_signal)
    ran = rhythm(f"cancel {ids[0]} nobody {ids[1]}")
    assert ran.code == 1
    assert ran.out.startswith(
        f"asked {ids[0]} to end: it is cancelled as soon as a worker has run its `finally` blocks\n"
    )
    assert "there is no execution 'nobody'" in ran.err
    assert rhythm("list").out.count("asked to end") == 2
    for id in ids:
        assert until(app, id, ended).status == "cancelled"
    again = rhythm(f"cancel {ids[0]}")
    assert (again.code, again.out, again.err) == (
        1,
        "",
        f"rhythm: {ids[0]} has ended already: it was cancelled\n",
    )


def test_pause_and_resume(rhythm: Command, app: Rhythm) -> None:
    id = app.start_workflow("order", {"id": "A17"}).id
    until(app, id, waits_for_signal)
    assert (
        rhythm(f"pause {id} --reason why").out
        == f"paused {id}; `rhythm resume {id}` lets it go on\n"
    )
    assert (
        rhythm(f"pause {id}").out == f"{id} is paused already; `rhythm resume {id}` lets it go on\n"
    )
    assert app.get(id).paused_reason == "why"
    assert rhythm(f"resume {id}").out == f"resumed {id}: it waits for the signal `approve`\n"
    assert app.get(id).status == "suspended"
    new = app.start_workflow("order", {"id": "A18"}, delay="1h").id
    app.pause(new)
    assert rhythm(f"resume {new}").out == f"resumed {new}: it is to begin later\n"
    app.cancel(id)
    until(app, id, ended)
    for command in ("pause", "resume"):
        ran = rhythm(f"{command} {id}")
        assert (ran.code, ran.err) == (
            1,
            f"rhythm: {id} has ended already; `rhythm show {id}` tells how\n",
        )


def test_graph_marks_where_an_execution_is(rhythm: Command, app: Rhythm) -> None:
    id = app.start_workflow("order", {"id": "A17"}).id
    until(app, id, waits_for_signal)
    lines = rhythm(f"graph --id {id}").out.splitlines()
    assert [line for line in lines if "▶" in line] == [line for line in lines if "signal(" in line]
    chart = rhythm(f"graph --id {id} --format mermaid").out
    assert chart.startswith("flowchart")
    assert "class n" in chart
    new = app.start_workflow("order", {"id": "A18"}, delay="1h").id
    assert rhythm(f"graph --id {new}").out.splitlines()[0] == "order ▶"
    app.signal(id, "approve", {"ok": True})
    until(app, id, ended)
    lines = rhythm(f"graph --id {id}").out.splitlines()
    assert [("✓" in line, "▶" in line) for line in lines if "signal(" in line] == [(True, False)]
    (task,) = [child.id for child in app.children(id) if child.type == "task"][:1]
    for call, says in (
        ("graph", "give a file, or an execution with --id"),
        (f"graph x.flow --id {id}", "give a file, or an execution with --id"),
        (
            f"graph --id {id} --workflow x",
            "--workflow is for a file: an execution has one workflow",
        ),
        (
            f"graph --id {task}",
            f"{task} is a task, and this is for workflows; {id} is its workflow",
        ),
    ):
        ran = rhythm(call)
        assert (ran.code, ran.err.splitlines()[0]) == (2, f"rhythm: {says}")
    assert rhythm("graph --id nothing").code != 0


def test_metadata_of_a_pause_are_shown_and_audited(rhythm: Command, app: Rhythm) -> None:
    id = app.start_workflow("order", {"id": "A17"}).id
    until(app, id, waits_for_signal)
    assert rhythm(f"pause {id} --metadata ticket=OPS-7 --metadata n:=3").code == 0
    assert app.get(id).paused_metadata == {"ticket": "OPS-7", "n": 3}
    assert "metadata" in rhythm(f"show {id}").out
    assert "OPS-7" in rhythm(f"show {id}").out
    assert rhythm(f"resume {id} --metadata done:=true").code == 0
    assert "metadata" not in rhythm(f"show {id}").out
    assert app.resume_requests(id)[-1].metadata == {"done": True}
    shown = json.loads(rhythm(f"show {id} --output json").out)
    assert (shown["paused_metadata"], shown["step_id"]) == (None, "signal:3")
    for command in ("pause", "resume"):
        ran = rhythm(f"{command} --all --metadata a=1")
        assert (ran.code, ran.err.splitlines()[0]) == (
            2,
            "rhythm: --metadata is for one execution: leave out --all",
        )


def test_resume_of_what_waits_for_an_approval_says_so(rhythm: Command, app: Rhythm) -> None:
    app.register('workflow asks() { await approval({ role: "boss" }) }')
    id = app.start_workflow("asks").id
    until(app, id, lambda seen: seen.paused_reason == "approval_required")
    app.pause(id)
    waits = "it waits for somebody with the role `boss` to decide"
    assert rhythm(f"resume {id}").out == f"resumed {id}: {waits}\n"


def test_retry_prints_the_new_id_alone(rhythm: Command, app: Rhythm) -> None:
    id = app.start_workflow("parent", {"n": 0}).id
    until(app, id, ended)
    ran = rhythm(f"retry {id}")
    new = ran.out.strip()
    assert (ran.code, ran.err) == (
        0,
        f"a new execution of parent goes on where it failed, with workflow child: {new}\n",
    )
    assert f"\nretry of    {id}\n" in rhythm(f"show {new}").out
    assert f"\nretried as  {new} (pending)\n" in rhythm(f"show {id}").out.replace(
        "suspended", "pending"
    )
    again = rhythm(f"retry {id}")
    assert (again.out, again.err) == (
        f"{new}\n",
        f"a retry of this execution of parent is under way already: {new}\n",
    )
    both = rhythm(f"retry {id} --from-start")
    assert (both.code, both.out) == (1, "")
    assert f"a retry of {id} is under way: {new}; cancel that one first" in both.err
    until(app, new, ended)
    shown = rhythm(f"show {id}").out
    assert f"\nretried as  {new} (failed)\n" in shown
    assert "`rhythm retry" not in shown
    assert rhythm(f"show {id} --output json").json["retried_as"] == {"id": new, "status": "failed"}
    assert rhythm(f"show {new}").out.endswith(f"\n`rhythm retry {new}` goes on from there\n")
    assert (
        rhythm(f"retry {id}").err
        == f"rhythm: {id} was retried as {new}, which failed in turn: retry {new} instead\n"
    )
    assert "begins at the beginning: " in rhythm(f"retry {id} --from-start").err
    done = app.start_workflow("parent", {"n": 1}).id
    until(app, done, ended)
    assert rhythm(f"retry {done}").code == 1


def test_show_and_retry_say_what_to_do_where_going_on_would_fail_again(
    rhythm: Command, app: Rhythm
) -> None:
    app.register(
        'workflow odd(inputs) {\n  let a = await task("charge", { order: "A" })\n  throw '
        '{ code: "Odd", message: a }\n}'
    )
    id = app.start_workflow("odd").id
    until(app, id, ended)
    advice = (
        f"{id} failed when what it had waited for was done, so going on from there would fail "
        f"again: retry it from the start "
    )
    advice += f"(`rhythm retry {id} --from-start`; in Python `retry(id, from_start=True)`)\n"
    assert rhythm(f"show {id}").out.endswith(f"\n\n{advice}")
    ran = rhythm(f"retry {id}")
    assert (ran.code, ran.out, ran.err) == (1, "", f"rhythm: {advice}")


def test_retry_waits_for_the_result_of_the_new_one(rhythm: Command, app: Rhythm) -> None:
    id = app.start_workflow("parent", {"n": 0}).id
    until(app, id, ended)
    assert rhythm(f"retry {id} --timeout 1m").err == "rhythm: --timeout goes with --wait\n"
    with app.worker():
        failed = rhythm(f"retry {id} --wait --timeout 1m")
        assert (failed.code, failed.out) == (1, "")
        assert "6 │   return 1 / inputs.n" in failed.err
        app.register("workflow parent(inputs) {\n  return 7\n}")
        assert rhythm(f"retry {id} --from-start --wait").json == 7
        again = rhythm(f"retry {id} --from-start --output json").json
    assert (app.get(again["id"]).retry_of, again["created"]) == (id, True)
    assert rhythm(f"show {id} --output json").json["retried_as"]["id"] == again["id"]


# waiting


def test_wait_prints_the_result_in_place_of_the_id(rhythm: Command, app: Rhythm) -> None:
    with app.worker():
        ran = rhythm("start parent -i n:=2 --wait --timeout 1m")
        assert (ran.code, ran.json) == (0, ["B/1", 0.5])
        assert ran.err.startswith("started parent ")
        assert rhythm("start parent -i n:=2 --wait --output json").json["result"] == ["B/1", 0.5]
        failed = rhythm("start parent -i n:=0 --wait")
        assert (failed.code, failed.out) == (1, "")
        assert "6 │   return 1 / inputs.n" in failed.err


def test_start_that_was_made_before_says_if_its_inputs_were_others(
    rhythm: Command, app: Rhythm
) -> None:
    says_if_its_inputs_were_others(rhythm, "--id A17")


@on_database("a server refuses a key that comes again with other inputs")
def test_start_with_a_key_that_was_used_before_says_if_its_inputs_were_others(
    rhythm: Command, app: Rhythm
) -> None:
    says_if_its_inputs_were_others(rhythm, "--key k")


def says_if_its_inputs_were_others(rhythm: Command, way: str) -> None:
    assert rhythm(f"start order -i id=A -i n:=1 {way}").code == 0
    note = "note: it has other inputs than you gave, which are not used; `rhythm show"
    same, other = (rhythm(f"start order -i n:={n} -i id=A {way}") for n in (1, 2))
    assert (same.code, same.out, note in same.err) == (0, other.out, False)
    assert (other.code, note in other.err) == (0, True)
    assert note not in rhythm(f"start order {way}").err  # none were given


def test_wait_says_when_nobody_serves_the_queue(
    rhythm: Command, app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "PATIENCE_S", 0.01)
    ran = rhythm("start order --queue lonely --wait --timeout 100ms")
    assert (ran.code, ran.out) == (3, "")
    assert (
        "order is pending\nnote: nobody seems to serve the queue `lonely`: run a worker for it"
        in ran.err
    )
    assert "had not ended after 100ms: it is pending" in ran.err
    id = app.list().items[0].id
    app.pause(id)
    assert (
        f"note: it is paused; `rhythm resume {id}` lets it go on"
        in rhythm(f"result {id} --timeout 100ms").err
    )


def test_wait_says_nothing_of_a_queue_whose_worker_is_busy(
    rhythm: Command, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some tasks are ready for long, since all slots of the worker are taken."""
    monkeypatch.setattr(waiting, "PATIENCE_S", 0.01)
    free = threading.Event()

    def hold(n: int) -> int:
        free.wait()
        return n

    many = """workflow many(inputs) {
  return await all([task("hold", { n }) for n in range(20)])
}"""
    app = make_app(hold, flows=(many,), concurrency=1)
    with app.worker():
        try:
            id = app.start_workflow("many").id
            while "pending" not in {child.status for child in app.children(id)}:
                app.get(id)
            ran = rhythm(f"result {id} --timeout 200ms")
        finally:
            free.set()
    assert (ran.code, ran.out) == (3, "")
    assert "note:" not in ran.err


def test_wait_says_when_the_queue_is_paused(
    rhythm: Command, app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "PATIENCE_S", 0.01)
    app.pause_queue("slow")
    ran = rhythm("start order --queue slow --wait --timeout 100ms")
    assert "note: the queue `slow` is paused; `rhythm queue resume slow` lets it go on" in ran.err


def test_hint_about_a_missing_task_says_how_many_others_there_are() -> None:
    app: Any = SimpleNamespace(tasks={f"task_{n:02}": None for n in range(13)})
    waits: Any = SimpleNamespace(awaiting={"op": "task", "name": "else", "n": 1})
    assert missing_tasks(app, waits).endswith(
        "those registered are task_00, "
        + ", ".join(f"task_{n:02}" for n in range(1, 10))
        + " and 3 more"
    )


def test_process_with_tasks_does_the_work_itself(shell: Shell, url: str) -> None:
    """A newcomer needs a file of tasks, a workflow and this command."""
    options = ("--queue", "mine", "--app", "tasks.py", "--wait", "--database", url, "--timeout")
    shell.write(
        "hello.flow",
        'workflow hello(inputs) {\n  return await task("greet", { name: inputs.name })\n}\n',
    )
    ran = shell.rhythm("start", "hello.flow", "-i", "name=Ada", *options, "1m")
    assert (ran.returncode, ran.stdout) == (0, '"Hello, Ada!"\n')
    assert "printed by a task" in ran.stderr
    assert "printed by a program" in ran.stderr
    shell.write(
        "typo.flow", 'workflow typo(inputs) {\n  return await task("gret", { name: "x" })\n}\n'
    )
    ran = shell.rhythm("start", "typo.flow", *options, "5s")
    assert ran.returncode == 3
    assert "note: --app registers no task `gret`; did you mean `greet`?\n" in ran.stderr


def test_process_with_tasks_does_the_work_of_a_retry_itself(shell: Shell, url: str) -> None:
    task = (
        "import os\nimport rhythm\n\n@rhythm.task\ndef open_file() -> str:\n    return "
        'os.path.basename(open("here").name)\n'
    )
    shell.write("files.py", task)
    shell.write("late.flow", 'workflow late(inputs) {\n  return await task("open_file")\n}\n')
    options = ("--app", "files.py", "--wait", "--timeout", "1m", "--database", url)
    ran = shell.rhythm("start", "late.flow", "--id", "first", "--queue", "mine", *options)
    assert (ran.returncode, ran.stdout) == (1, "")
    shell.write("here", "")
    again = shell.rhythm("retry", "first", *options)
    assert (again.returncode, again.stdout) == (0, '"here"\n')
    assert again.stderr.startswith(
        "a new execution of late goes on where it failed, with task open_file: "
    )


# starting up


def test_help_of_every_command_imports_no_database() -> None:
    code = f"""
import sys
from rhythm.cli.main import main
for name in {NEW!r}:
    assert main([name, "--help"]) == 0
print(sorted({{*{HEAVY!r}, "rhythm.app", "rhythm.store"}} & set(sys.modules)))
"""
    printed = alone(code)
    assert printed[-1] == "[]"
    assert set(NEW) <= COMMANDS.keys()
    assert "\n\n  rhythm " in "\n".join(printed)  # examples keep their indentation
