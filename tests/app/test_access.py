"""Tokens and the audit as an application has them, on both databases."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

import rhythm
from rhythm.app import Rhythm, audit, tokens
from rhythm.app.audit import AuditCheck
from rhythm.app.tokens import SECRET, NewToken
from rhythm.store import doctor
from rhythm.store.access import MOST_PROBLEMS, Actor
from tests.app.conftest import MakeApp
from tests.store.test_audit import of_before, unguarded
from tests.support.stores import rows

WAIT = "120s"
FLOWS = """
workflow hold() { return await signal("go") }
workflow fails() { return await task("fail") }
"""


def fail() -> None:
    raise ValueError("no")


@pytest.fixture
def app(make_app: MakeApp) -> Rhythm:
    return make_app(fail, flows=(FLOWS,))


def shifted(secret: str) -> str:
    """Another secret of the same token."""
    return secret[:-1] + ("a" if secret[-1] != "a" else "b")


def acts(app: Rhythm) -> list[tuple[str, str, str]]:
    return [(row.action, row.object, row.actor) for row in reversed(app.audit().items)]


def test_only_the_secret_that_was_shown_opens_and_only_while_the_token_is_valid(
    app: Rhythm,
) -> None:
    made, other = app.create_token("ann", roles=["operator"], expires="1h"), app.create_token("bob")
    assert SECRET.fullmatch(made.secret)
    assert app.authenticate(made.secret) == made.view
    garbage: list[Any] = [
        "",
        "nothing",
        shifted(made.secret),
        made.secret[:-1],
        f"{made.secret}\n",
        f" {made.secret}",
        made.secret.upper(),
        None,
        5,
        b"x",
        made.view.id,
        f"rhy_{other.view.id}_{made.secret[17:]}",
        f"rhy_{'0' * 12}_{'0' * 52}",
        "rhy_\0" + made.secret[5:],
        "é" * 69,
    ]
    assert [app.authenticate(text) for text in garbage] == [None] * len(garbage)
    rows(app.store, "UPDATE api_tokens SET expires_at = created_at WHERE id = ?", [made.view.id])
    assert app.authenticate(made.secret) is None
    assert app.authenticate(other.secret) is not None
    assert app.revoke_token(other.view.id, by="root")
    assert not app.revoke_token(other.view.id)
    assert app.authenticate(other.secret) is None
    assert {token.name: (token.status, token.revoked_by) for token in app.tokens()} == {
        "ann": ("expired", ""),
        "bob": ("revoked", "root"),
    }


def test_use_is_noted_at_most_once_a_minute(app: Rhythm, monkeypatch: pytest.MonkeyPatch) -> None:
    made, noted = app.create_token("ann"), list[str]()
    touch = app.store.access.touch_tokens
    monkeypatch.setattr(
        app.store.access, "touch_tokens", lambda ids: (noted.extend(ids), touch(ids))
    )
    assert app.tokens()[0].last_used_at is None
    for _ in range(3):
        assert app.authenticate(made.secret)
    assert len(noted) == 1
    rows(app.store, "UPDATE api_tokens SET last_used_at = last_used_at - 61000000")
    before = app.tokens()[0].last_used_at
    assert app.authenticate(made.secret)
    after = app.tokens()[0].last_used_at
    assert before is not None
    assert after is not None
    assert (len(noted), after - before > timedelta(seconds=60)) == (2, True)


def test_nobody_is_refused_because_the_use_could_not_be_noted(
    app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = app.create_token("ann")

    def busy(ids: Sequence[str]) -> None:
        raise rhythm.StoreError("locked")

    monkeypatch.setattr(app.store.access, "touch_tokens", busy)
    assert app.authenticate(made.secret)


def test_what_a_token_may_do_changes_at_once(app: Rhythm) -> None:
    made = app.create_token("ann", roles="approver", business_roles=("finance", "finance", "sales"))
    assert (made.view.permissions, made.view.business_roles) == (
        ("execution:read", "approval:decide"),
        ("finance", "sales"),
    )
    changed = app.change_token(made.view.id, roles=["viewer"], by="root")
    assert (changed.roles, changed.business_roles) == (("viewer",), ("finance", "sales"))
    assert app.authenticate(made.secret) == changed.replace(last_used_at=None)
    assert app.change_token(made.view.id, business_roles=()).business_roles == ()
    app.revoke_token(made.view.id)
    with pytest.raises(rhythm.TokenRevoked, match="is revoked: make a new one"):
        app.change_token(made.view.id, roles=["admin"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": ""}, "the name of a token is a text of 1 to 200"),
        ({"name": "a\nb"}, "the name of a token is a text of 1 to 200"),
        ({"name": "a", "roles": ["boss"]}, "there is no role 'boss'"),
        ({"name": "a", "business_roles": [""]}, "a business role is a text of 1 to 200"),
        ({"name": "a", "business_roles": [f"r{i}" for i in range(101)]}, "at most 100 roles"),
        ({"name": "a", "expires": "soon"}, '"soon" is not a duration'),
        ({"name": "a", "expires": 0}, "expires at once"),
        ({"name": "a", "by": "x" * 201}, "the name of whoever acts is a text of 1 to 200"),
        ({"name": "a", "by": Actor("a\0")}, "the name of whoever acts is a text of 1 to 200"),
    ],
)
def test_what_cannot_be_a_token_is_refused(
    app: Rhythm, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        app.create_token(**given)
    assert (app.tokens(), acts(app)) == ([], [])


def test_a_token_that_does_not_exist_is_unknown_and_a_secret_is_not_repeated(app: Rhythm) -> None:
    made = app.create_token("ann")
    for id in ("none", "a\0b", made.secret, made.secret[:40], "x" * 500):
        for ask in (app.revoke_token, lambda id: app.change_token(id, roles=["admin"])):
            with pytest.raises(rhythm.UnknownToken) as refused:
                ask(id)
            assert made.secret[17:30] not in str(refused.value)
            assert refused.value.code == "unknown_token"


def test_the_secret_is_nowhere_but_in_the_answer(
    app: Rhythm, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    made = app.create_token("ann", roles=["admin"])
    app.authenticate(made.secret)
    app.authenticate(shifted(made.secret))
    app.change_token(made.view.id, business_roles=["finance"])
    app.revoke_token(made.view.id)
    tables = ["api_tokens", "audit", "audit_head"]
    stored = str([rows(app.store, f"SELECT * FROM {table}") for table in tables])
    seen = (
        stored,
        repr(made),
        str(made),
        f"{[made]}",
        repr(app.tokens()),
        repr(app.audit()),
        caplog.text,
        *capsys.readouterr(),
    )
    shown = made.secret[17:]
    for text in seen:
        assert not any(shown[i : i + 10] in text for i in range(len(shown) - 10))
    assert isinstance(made, NewToken)
    assert made.view.id in stored


def test_every_secret_is_new(app: Rhythm) -> None:
    made = [app.create_token("ann") for _ in range(20)]
    assert len({token.secret[17:] for token in made} | {token.view.id for token in made}) == 40


def test_an_id_that_is_taken_is_drawn_again(app: Rhythm, monkeypatch: pytest.MonkeyPatch) -> None:
    first = app.create_token("ann")
    drawn = iter([(first.view.id, "rhy_x"), tokens._drawn()])
    monkeypatch.setattr(tokens, "_drawn", lambda: next(drawn))
    second = app.create_token("bob")
    assert app.authenticate(second.secret) == second.view
    assert app.authenticate(first.secret) == first.view


def test_every_act_of_an_operator_is_recorded_with_its_actor(app: Rhythm) -> None:
    made = app.create_token("ann", roles=["admin"], by="root").view.id
    ann = Actor("ann", token=made, source="10.1.2.3")
    with app.worker():
        failed = app.start_workflow("fails", id="f")
        with pytest.raises(rhythm.ExecutionFailed):
            failed.result(WAIT)
    app.start_workflow("hold", id="h")
    app.signal("h", "note", {"secret": "payload"}, signal_id="s1", by=ann)
    app.publish("paid", {"secret": "payload"}, event_id="e1", by="bob")
    app.pause_queue("mail", "down", by=ann)
    app.resume_queue("mail", by="bob")
    assert app.cancel("h", by=ann)
    new = app.retry("f", by="bob")
    token = app.create_token("cy", by=ann).view.id
    app.change_token(token, roles=["admin"], by=ann)
    app.revoke_token(token, by=ann)
    assert acts(app)[1:] == [
        ("execution.signal", "h", "ann"),
        ("event.publish", "e1", "bob"),
        ("queue.pause", "mail", "ann"),
        ("queue.resume", "mail", "bob"),
        ("execution.cancel", "h", "ann"),
        ("execution.retry", "f", "bob"),
        ("token.create", token, "ann"),
        ("token.change", token, "ann"),
        ("token.revoke", token, "ann"),
    ]
    details = {row.action: row.detail for row in app.audit()}
    assert details["execution.signal"] == {"signal": "note", "id": "h#s1"}
    assert (details["event.publish"], details["queue.pause"]) == (
        {"type": "paid"},
        {"reason": "down"},
    )
    assert details["execution.retry"] == {"retry": new.id}
    assert {(row.token, row.source) for row in app.audit(actor="ann")} == {(made, "10.1.2.3")}
    assert "payload" not in repr(app.audit())
    assert app.verify_audit().intact


def test_what_changed_nothing_is_not_recorded_and_what_programs_send_neither(app: Rhythm) -> None:
    app.start_workflow("hold", id="h")
    app.signal("h", "note", signal_id="s1")
    app.signal("h", "note", signal_id="s1", by="ann")
    app.publish("paid", event_id="e1")
    app.publish("paid", event_id="e1", by="ann")
    app.resume_queue("mail", by="ann")
    with pytest.raises(rhythm.UnknownExecution):
        app.cancel("nobody", by="ann")
    with pytest.raises(rhythm.NotRetryable):
        app.retry("h", by="ann")
    assert acts(app) == []


def test_who_does_not_say_a_name_is_the_user_of_the_system(
    app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "grace")
    app.start_workflow("hold", id="h").cancel()
    (row,) = app.audit()
    assert (row.actor, row.source, row.token, row.action) == (
        "grace",
        "python",
        None,
        "execution.cancel",
    )


def test_the_audit_comes_in_pages_newest_first(app: Rhythm) -> None:
    for i in range(5):
        app.pause_queue(f"q{i}", by="ann" if i % 2 else "bob")
    first = app.audit(limit=2)
    second = app.audit(limit=2, cursor=first.cursor)
    last = app.audit(limit=2, cursor=second.cursor)
    assert [[row.object for row in page] for page in (first, second, last)] == [
        ["q4", "q3"],
        ["q2", "q1"],
        ["q0"],
    ]
    assert (last.cursor, len(first)) == (None, 2)
    assert [row.object for row in app.audit(actor="ann", action="queue.pause")] == ["q3", "q1"]
    assert [row.object for row in app.audit(object="q2")] == ["q2"]
    assert json.loads(json.dumps(first.items[0].as_json()))["n"] == 5
    for bad in (
        {"limit": 0},
        {"limit": True},
        {"cursor": "x"},
        {"cursor": "-1"},
        {"cursor": "1" * 30},
        {"actor": ""},
        {"object": "a\0"},
    ):
        with pytest.raises(ValueError, match=r"limit is|cursor of a page|is a text of 1 to 200"):
            app.audit(**bad)  # type: ignore[arg-type]  # on purpose


def test_a_head_that_was_kept_proves_what_came_before_it(app: Rhythm) -> None:
    app.pause_queue("a", by="ann")
    check = asyncio.run(app.aio.verify_audit())
    assert (check.intact, check.rows, check.problems) == (True, 1, ())
    assert re.fullmatch(r"1:[0-9a-f]{64}", check.head)
    app.pause_queue("b", by="ann")
    assert app.verify_audit(check.head).intact
    other = f"1:{'0' * 64}"
    found = app.verify_audit(other)
    assert found.as_json() == {
        "intact": False,
        "rows": 2,
        "head": found.head,
        "problems": ["row 1 is not the one that was the head: the chain was written anew"],
        "broken": 1,
        "next": None,
    }
    assert app.verify_audit(f"9:{'0' * 64}").problems == (
        "row 9, which was the head, is gone: the chain ends with row 2",
    )
    for bad in ("", "1", "1:abc", "x:" + "0" * 64, 5):
        with pytest.raises(ValueError, match="is not the head of an audit"):
            app.verify_audit(bad)  # type: ignore[arg-type]  # on purpose


def parts(
    app: Rhythm, limit: int, head: str | None = None, after: str | None = None
) -> list[AuditCheck]:
    """The audit, verified part by part."""
    found = [app.verify_audit(head, after=after, limit=limit)]
    while (next := found[-1].next) is not None:
        found.append(app.verify_audit(head, after=next, limit=limit))
        assert len(found) < 20
    return found


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 6])
def test_a_long_audit_is_verified_part_by_part(app: Rhythm, limit: int) -> None:
    for i in range(5):
        app.pause_queue(f"q{i}", by="ann")
    head, heads = app.verify_audit().head, {row.n: f"{row.n}:{row.hash}" for row in app.audit()}
    assert {part.intact for n in (1, 3, 5) for part in parts(app, limit, heads[n])} == {True}
    assert {part.intact for part in parts(app, limit, f"3:{'0' * 64}")} >= {False}
    found = parts(app, limit)
    assert ([part.intact for part in found], {part.head for part in found}) == (
        [True] * -(-5 // limit),
        {head},
    )
    assert (sum(part.rows for part in found), found[-1].next) == (5, None)
    assert all(
        part.next and part.next.startswith(f"{(i + 1) * limit}:")
        for i, part in enumerate(found[:-1])
    )
    with unguarded(app.store):
        rows(app.store, "UPDATE audit SET actor = 'bob' WHERE n = 4")
    assert [problem for part in parts(app, limit) for problem in part.problems].count(
        "row 4 was changed after it was written"
    ) >= 1


def test_what_follows_a_head_that_was_kept_is_verified_without_what_lies_before(
    app: Rhythm,
) -> None:
    for i in range(5):
        app.pause_queue(f"q{i}", by="ann")
    kept = {row.n: f"{row.n}:{row.hash}" for row in app.audit()}
    assert (app.verify_audit(after=kept[3]).rows, app.verify_audit(after=kept[5]).rows) == (2, 0)
    assert app.verify_audit(kept[4], after=kept[3]).intact
    # which is before that: its row is looked at all the same
    assert app.verify_audit(kept[2], after=kept[4]).intact
    anew = "row 2 is not the one that was the head: the chain was written anew"
    assert app.verify_audit(f"2:{'0' * 64}", after=kept[4]).problems == (anew,)
    assert app.verify_audit(after=f"3:{'0' * 64}").problems == (
        "row 3 is not the one that was the head: the chain was written anew",
    )
    gone = "row 9, which was the head, is gone: the chain ends with row 8"
    assert app.verify_audit(after=f"9:{'0' * 64}").problems[-1] == gone
    with unguarded(app.store):
        rows(app.store, "DELETE FROM audit WHERE n = 3")
    assert not app.verify_audit(after=kept[3]).intact
    assert app.verify_audit(after=kept[4]).intact
    assert [
        check.broken
        for check in (
            app.verify_audit(kept[3], after=kept[4]),
            app.verify_audit(kept[2], after=kept[4]),
        )
    ] == [1, 0]


def test_a_row_with_an_odd_time_or_detail_does_not_hide_the_others(app: Rhythm) -> None:
    app.pause_queue("q", by="ann")
    with of_before(app.store):
        for n, at, detail in ((-1, 2**62, "nonsense"), (-2, -(2**62), "[" * 5000)):
            rows(
                app.store,
                "INSERT INTO audit VALUES (?, ?, 'bob', NULL, '', 'a', 'b', ?, '', '')",
                [n, at, detail],
            )
    assert [(row.n, row.at.year, row.detail, row.at_us) for row in app.audit()][1:] == [
        (-1, 9999, None, 2**62),
        (-2, 1970, None, -(2**62)),
    ]


def test_of_many_problems_the_first_are_told_and_all_are_counted(app: Rhythm) -> None:
    with of_before(app.store):
        for n in range(1, MOST_PROBLEMS + 5):
            rows(
                app.store,
                "INSERT INTO audit VALUES (?, 1, 'bob', NULL, '', 'a', 'b', '{}', '', '')",
                [-n],
            )
    check = app.verify_audit()
    assert (len(check.problems), check.broken, check.rows, check.intact) == (
        MOST_PROBLEMS,
        MOST_PROBLEMS + 4,
        MOST_PROBLEMS + 4,
        False,
    )
    assert [(part.intact, part.rows, part.next) for part in parts(app, 50)] == [
        (False, 50, f"0:{'0' * 64}"),
        (True, 0, None),
    ]


def test_a_part_of_the_audit_ends_when_it_is_large(
    app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "CHECKED_SIZE", 1000)
    monkeypatch.setattr(doctor, "PAGE_SIZE", 700)
    for i in range(4):
        app.pause_queue(f"q{i}", "x" * 900, by="ann")
    assert [(part.intact, part.rows) for part in parts(app, 10_000)] == [(True, 2), (True, 2)]


APPROVAL = """
workflow pay() { return await approval({ role: "finance", reason: "pay", data: { amount: 5 } }) }
"""


def asked(app: Rhythm, id: str, by: str = "starter") -> str:
    """A workflow that waits for an approval; the approval's id."""
    with app.worker():
        app.start_workflow("pay", id=id, by=by)
        wait_until(lambda: app.approvals(execution=id).items)
    return app.approvals(execution=id).items[0].id


def wait_until(what: Callable[[], object]) -> None:
    last = time.monotonic() + 120
    while not what():
        assert time.monotonic() < last
        time.sleep(0.005)  # those who make it so need the processor


def refusal(app: Rhythm, id: str, by: Actor) -> str:
    with pytest.raises(rhythm.Denied) as refused:
        app.approve(id, by=by)
    return refused.value.code


def test_a_token_decides_with_the_roles_that_it_has_in_that_moment(make_app: MakeApp) -> None:
    app = make_app(flows=(APPROVAL,))
    id = asked(app, "p")
    tokens = {
        "ann": app.create_token("ann", roles=["approver"], business_roles=["finance"]).view,
        "bob": app.create_token("bob", roles=["approver"], business_roles=["sales"]).view,
        "cy": app.create_token("cy", roles=["operator"], business_roles=["finance"]).view,
        "dan": app.create_token("dan", roles=["admin"]).view,
        "eve": app.create_token(
            "eve", roles=["approver"], business_roles=["finance"], expires="1d"
        ).view,
        "starter": app.create_token("starter", roles=["approver"], business_roles=["finance"]).view,
    }
    rows(
        app.store, "UPDATE api_tokens SET expires_at = created_at WHERE id = ?", [tokens["eve"].id]
    )
    app.change_token(tokens["ann"].id, business_roles=["legal"])
    # what a caller says counts for nothing
    claims = tokens["bob"].actor("10.0.0.1").replace(roles=("finance",))
    assert {name: refusal(app, id, token.actor("10.0.0.1")) for name, token in tokens.items()} == {
        "ann": "role_revoked",
        "bob": "wrong_role",
        "cy": "role_revoked",
        "dan": "wrong_role",
        "eve": "role_revoked",
        "starter": "self_approval",
    }
    assert refusal(app, id, claims) == "wrong_role"
    app.change_token(tokens["ann"].id, business_roles=["finance"])
    app.revoke_token(tokens["ann"].id)
    assert refusal(app, id, tokens["ann"].actor()) == "role_revoked"
    assert refusal(app, id, Actor("ghost", ("finance",), token="none")) == "wrong_role"
    assert [row for row in app.audit() if row.action.startswith("approval.")] == []
    app.change_token(tokens["bob"].id, business_roles=["finance"])
    assert app.approve(id, by=tokens["bob"].actor("10.0.0.1")).status == "approved"
    # as it was made
    rows(
        app.store,
        "UPDATE api_tokens SET expires_at = created_at + 86400000000 WHERE id = ?",
        [tokens["eve"].id],
    )
    (row,) = app.audit(object=id)
    assert (row.action, row.actor, row.token, row.source) == (
        "approval.approve",
        "bob",
        tokens["bob"].id,
        "10.0.0.1",
    )
    assert (app.verify_audit().intact, app.store.operating.check(3600.0)) == (True, [])


def test_of_many_who_decide_at_once_one_is_recorded_and_the_chain_holds(make_app: MakeApp) -> None:
    app = make_app(flows=(APPROVAL,))
    ids = [asked(app, f"p{i}") for i in range(3)]
    told: list[str] = []

    def decide(n: int) -> None:
        for id in ids:
            try:
                app.approve(id, by=Actor(f"decider{n}", ("finance",)))
                told.append("approved")
            except rhythm.Undecidable as refused:
                told.append(refused.code)

    threads = [threading.Thread(target=decide, args=(n,)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == ["already_decided"] * 27 + ["approved"] * 3
    assert sorted(row.object for row in app.audit(action="approval.approve")) == ids
    assert (app.verify_audit().intact, app.store.operating.check(3600.0)) == (True, [])
