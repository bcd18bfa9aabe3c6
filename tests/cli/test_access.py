"""`rhythm token` and `rhythm audit`, and `--by`, on both databases."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rhythm.app.tokens import SECRET
from tests.app import conftest as applications
from tests.app.conftest import MakeApp
from tests.cli import test_executions as executions
from tests.cli.places import on_database
from tests.cli.test_executions import Command
from tests.cli.test_queues import lines

url, make_app, rhythm = applications.url, applications.make_app, executions.rhythm


def test_a_new_token_is_printed_alone_and_never_again(rhythm: Command, make_app: MakeApp) -> None:
    app = make_app()
    ran = rhythm(
        "token create ann --role approver --role viewer --business-role finance --expires "
        "90d --by Ada"
    )
    secret = ran.out.strip()
    form = SECRET.fullmatch(secret)
    assert form is not None
    assert re.fullmatch(
        (
            rf"made token {form[1]} of ann \(approver, viewer for finance\), until [-\d]+ "
            rf"[:\d]+ UTC; its secret is shown only now:\n"
        ),
        ran.err,
    )
    seen = app.authenticate(secret)
    assert seen is not None
    assert (seen.name, seen.created_by, seen.business_roles) == ("ann", "Ada", ("finance",))
    others = [
        rhythm(command)
        for command in (
            "token list",
            "token list --output json",
            "audit list",
            "audit export",
            f"token revoke {form[1]}",
        )
    ]
    assert all(secret[17:] not in ran.out + ran.err for ran in others)


def test_tokens_are_listed_changed_and_revoked(rhythm: Command, make_app: MakeApp) -> None:
    make_app()
    assert (
        rhythm("token list").out == "no tokens: `rhythm token create NAME --role ROLE` makes one\n"
    )
    made = rhythm("token create ann --output json").json
    id = made["token"]["id"]
    assert (SECRET.fullmatch(made["secret"]) is not None, made["token"]["roles"]) == (
        True,
        ["viewer"],
    )
    assert (
        rhythm(f"token change {id} --role approver --business-role legal").out
        == f"changed token {id} of ann (approver for legal)\n"
    )
    assert lines(rhythm("token list").out) == [
        ["ID", "NAME", "STATUS", "ROLES", "BUSINESS ROLES", "AGE", "USED", "EXPIRES"],
        [id, "ann", "active", "approver", "legal", "now", "never", "never"],
    ]
    assert (
        rhythm(f"token change {id} --no-business-roles").out
        == f"changed token {id} of ann (approver)\n"
    )
    assert rhythm(f"token revoke {id}").out == f"revoked token {id}: it is valid no more\n"
    assert rhythm(f"token revoke {id}").out == f"token {id} was revoked before\n"
    ran = rhythm(f"token change {id} --role admin")
    assert (ran.code, ran.err) == (
        1,
        f"rhythm: the token {id} is revoked: make a new one with `rhythm token create`\n",
    )
    (seen,) = rhythm("token list --output json").json["items"]
    assert (seen["status"], seen["business_roles"], "secret" in seen, "hash" in seen) == (
        "revoked",
        [],
        False,
        False,
    )


def test_roles_for_some_names_are_told_and_listed(rhythm: Command, make_app: MakeApp) -> None:
    make_app()
    made = rhythm("token create ann --role viewer:order* --role operator:refund --output json")
    id = made.json["token"]["id"]
    assert f"{id} of ann (viewer:order*, operator:refund)" in made.err
    assert lines(rhythm("token list").out)[1][:4] == [
        id,
        "ann",
        "active",
        "viewer:order*,operator:refund",
    ]
    assert (
        rhythm(f"token change {id} --role approver:order*").out
        == f"changed token {id} of ann (approver:order*)\n"
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("token", "say what to do: create, list, change or revoke"),
        ("token create", "NAME is missing: the person or program that the token is for"),
        ("token list ann", "`ann` is one argument too many"),
        ("token revoke", "ID is missing: the id of the token; `rhythm token list` shows it"),
        (
            "token create ann --role boss",
            (
                "there is no role 'boss': the roles are viewer, operator, approver, author, "
                "auditor, admin"
            ),
        ),
        (
            "token create ann --role viewer:",
            "give viewer for everything, or a pattern such as viewer:order*",
        ),
        (
            "token create ann --role admin:order*",
            "the role admin is for everything: give admin, or one of viewer, operator",
        ),
        ("token create ann --expires never", '"never" is not a duration'),
        ("token revoke x --role admin", "--role is for create or change"),
        ("token change x", "say what it gets: --role, --business-role or --no-business-roles"),
        (
            "token change x --no-business-roles --business-role a",
            "give --business-role or --no-business-roles, not both",
        ),
        ("audit", "say what to do: list, verify or export"),
        ("audit export --actor ann", "--actor is for list"),
        ("audit list --limit many", "--limit is a whole number, not many"),
        ("audit verify --head 5", "'5' is not the head of an audit"),
        ("audit verify --file nowhere.ndjson", "nowhere.ndjson"),
        ("audit verify --file order.flow", "line 1 is no row of an audit: it is not JSON"),
    ],
)
def test_wrong_words_are_refused(
    rhythm: Command, make_app: MakeApp, command: str, message: str
) -> None:
    make_app()
    ran = rhythm(command)
    assert (ran.code, message in ran.err) == (2, True), ran.err


@on_database("to make tokens is in the audit, too")
def test_acts_are_recorded_with_whoever_is_named(
    rhythm: Command, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "grace")
    make_app(flows=('workflow hold() { return await signal("go") }',)).start_workflow(
        "hold", id="h"
    )
    assert rhythm("audit list").out == "nothing like that in the audit\n"
    for command in (
        "queue pause mail --reason down --by Ada",
        "queue resume mail",
        "signal h note --by Ada",
        "cancel h --by Ada",
    ):
        assert rhythm(command).code == 0
    heads, *found = lines(rhythm("audit list").out)
    assert heads == ["N", "TIME (UTC)", "ACTOR", "FROM", "ACTION", "OBJECT", "DETAIL"]
    assert [[row[0], *row[2:6]] for row in found] == [
        ["4", "Ada", "cli", "execution.cancel", "h"],
        ["3", "Ada", "cli", "execution.signal", "h"],
        ["2", "grace", "cli", "queue.resume", "mail"],
        ["1", "Ada", "cli", "queue.pause", "mail"],
    ]
    assert found[3][6] == '{"reason": "down"}'
    assert [
        json.loads(line)["n"]
        for line in rhythm("audit list --actor Ada --limit 2 --output ndjson").out.splitlines()
    ] == [4, 3]
    assert (
        rhythm("audit list --actor Ada --limit 2").err
        == "there are more: the same with --cursor 3\n"
    )
    assert [
        row["n"] for row in rhythm("audit list --actor Ada --cursor 3 --output json").json["items"]
    ] == [1]


@on_database("to make tokens is in the audit, too")
def test_an_export_is_verified_without_the_database(
    rhythm: Command, make_app: MakeApp, tmp_path: Path
) -> None:
    app = make_app()
    for i in range(3):
        app.pause_queue(f"q{i}", by="änn")
    ran = rhythm("audit verify")
    assert (ran.code, ran.out.splitlines()[0]) == (
        0,
        "the audit is intact: 3 rows; keep its head elsewhere",
    )
    head = ran.out.split()[-1]
    first, rest = rhythm("audit export").out, rhythm("audit export --after 2").out
    assert first.endswith(rest)
    (tmp_path / "a.ndjson").write_text(first, encoding="utf-8")
    assert rhythm(f"audit verify --file a.ndjson --head {head}").out == ran.out
    (tmp_path / "b.ndjson").write_text(
        "".join(first.splitlines(keepends=True)[:2]), encoding="utf-8"
    )
    assert rhythm("audit verify --file b.ndjson").code == 0
    cut = rhythm(f"audit verify --file b.ndjson --head {head}")
    assert (cut.code, cut.out.splitlines()[0]) == (
        1,
        "broken: row 3, which was the head, is gone: the chain ends with row 2",
    )
    (tmp_path / "c.ndjson").write_text(first.replace('"q1"', '"q9"'), encoding="utf-8")
    changed = rhythm("audit verify --file c.ndjson")
    assert changed.out.splitlines()[:2] == [
        "broken: row 2 was changed after it was written",
        "the audit is not what it was: 3 rows",
    ]
    assert rhythm("audit verify --file c.ndjson --output json").json["problems"] == [
        "row 2 was changed after it was written"
    ]


ROW = (
    f'{{"n": 2, "at": 5, "actor": "u0", "token": null, "source": "", "action": "a", "object": '
    f'"b", "detail": "{{}}", "prev": "{"0" * 64}", "hash": "{"0" * 64}"}}'
)
NO_ROWS: dict[str, tuple[str | bytes, str]] = {
    "a key twice": (ROW.replace('"actor"', '"actor": "eve", "actor"'),
        'it has the key "actor" twice'),
    "a key twice, escaped": (ROW.replace('"actor"', '"\\u0061ctor": "eve", "actor"'),
        'it has the key "actor" twice'),
    "number as text": (ROW.replace('"n": 2', '"n": "2"'), "n is a whole number, not '2'"),
    "number as truth": (ROW.replace('"n": 2', '"n": true'), "n is a whole number, not True"),
    "number with a point": (ROW.replace('"n": 2', '"n": 2.0'), "n is a whole number, not 2.0"),
    "no number": (ROW.replace('"n": 2', '"n": NaN'), "it.n is NaN"),
    "far too large": (ROW.replace('"n": 2', f'"n": {"9" * 5000}'),
        "it.n is an integer over 64 bits"),
    "too large": (ROW.replace('"at": 5', f'"at": {2**64}'), "it.at is an integer over 64 bits"),
    "larger than any": (ROW.replace('"at": 5', '"at": 1e999'), "it.at is 1e999"),
    "an object as text": (ROW.replace('"detail": "{}"', '"detail": {}'),
        "detail is a text, not {}"),
    "null as text": (ROW.replace('"actor": "u0"', '"actor": null'), "actor is a text, not None"),
    "nested": (ROW.replace('"detail": "{}"', f'"detail": {"[" * 100_000}{"]" * 100_000}'),
        "it is nested more than"),
    "nested without end": ("[" * 100_000, "it is nested more than"),
    "a list": ("[1, 2]", "it is no object"),
    "a number": ("5", "it is no object"),
    "nothing": ("", "it is not JSON"),
    "half a line": (ROW[:50], "it is not JSON"),
    "two in a line": (ROW + ROW, "it is not JSON"),
    "a key too few": (ROW.replace('"token": null, ', ""), "token is missing"),
    "a key too many": (ROW.replace('"at"', '"by": "eve", "at"'), "'by' is none of its keys"),
    "half a pair": (ROW.replace("u0", "\\ud800"), "it.actor has half of a surrogate pair"),
    "no UTF-8": (ROW.encode().replace(b"u0", b"\xff"), "it is not UTF-8"),
    "no hash": (ROW.replace('"prev": "0', '"prev": "x'), "prev is a hash of 64 digits, not 'x0"),
    "very long": (ROW.replace("u0", "x" * 16_000_000), "it is longer than 16,000,000 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("what", NO_ROWS)
def test_a_line_that_is_no_row_is_refused_with_its_number(
    rhythm: Command, make_app: MakeApp, tmp_path: Path, what: str
) -> None:
    make_app().pause_queue("q", by="ann")
    line, why = NO_ROWS[what]
    first = rhythm("audit export").out.encode()
    (tmp_path / "a.ndjson").write_bytes(
        first + (line if isinstance(line, bytes) else line.encode()) + b"\n" + first
    )
    ran = rhythm("audit verify --file a.ndjson")
    assert ran.code == 2, ran.err
    assert f"rhythm: line 2 is no row of an audit: {why}" in ran.err
    assert (len(ran.err.splitlines()), len(ran.err) < 300, ran.out) == (1, True, "")
