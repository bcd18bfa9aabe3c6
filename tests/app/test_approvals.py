"""Approvals, pauses and resumes, as people and operators meet them: on both databases, with a real
worker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

import rhythm
from rhythm.app.approvals import ApprovalView
from rhythm.store.access import Actor
from rhythm.store.approvals import Decision, Verdict
from tests.app.conftest import MakeApp

WAIT = "120s"
ORDER = """workflow order(inputs) {
  let answer = await approval({ role: "manager", reason: `Order ${inputs.id}`, data: inputs%s })
  return { answer, id: inputs.id }
}"""


def order(more: str = "") -> str:
    return ORDER % more


def asked(app: rhythm.Rhythm, id: str) -> ApprovalView:
    """What an execution asks for, as soon as it does."""
    for _ in range(12_000):
        if items := app.approvals(execution=id).items:
            return items[0]
        threading.Event().wait(0.01)
    raise AssertionError(f"{id} asks for nothing: {app.get(id)}")


def ann(*roles: str) -> Actor:
    return Actor("ann", roles)


@pytest.fixture
def working(make_app: MakeApp) -> Callable[..., rhythm.Rhythm]:
    """An application with a worker, whose workflow is given."""

    def make(text: str = order(), **settings: Any) -> rhythm.Rhythm:
        app = make_app(**settings)
        app.register(text)
        app.worker().start()
        return app

    return make


Working = Callable[..., rhythm.Rhythm]


def test_an_approval_lets_the_execution_go_on_with_who_decided_and_why(working: Working) -> None:
    app = working()
    handle = app.start_workflow("order", {"id": 7}, by="sue")
    approval = asked(app, handle.id)
    assert (approval.role, approval.reason, approval.data, approval.status) == (
        "manager",
        "Order 7",
        {"id": 7},
        "open",
    )
    assert (approval.requested_by, approval.workflow, approval.quorum, approval.four_eyes) == (
        "sue",
        "order",
        1,
        True,
    )
    decided = app.approve(
        approval.id, by=ann("manager"), comment="fine", content_hash=approval.content_hash
    )
    assert (decided.status, [d.actor for d in decided.decisions]) == ("approved", ["ann"])
    answer = handle.result(WAIT)["answer"]
    assert (answer["decision"], answer["by"], answer["comment"]) == ("approved", ["ann"], "fine")


def test_the_content_hash_is_also_taken_and_given_by_its_older_name(working: Working) -> None:
    app = working(order(", quorum: 2"))
    approval = asked(app, app.start_workflow("order", {"id": 7}).id)
    assert approval.shown == approval.content_hash
    for act in (app.approve, app.reject, app.escalate):
        changed = partial(act, approval.id, by=ann("manager"), shown="0" * 64)
        assert refused(changed) == "approval_changed"
        with pytest.raises(ValueError, match="shown is its older name"):
            act(
                approval.id,
                by=ann("manager"),
                content_hash=approval.content_hash,
                shown="0" * 64,
            )
    decided = app.approve(approval.id, by=ann("manager"), shown=approval.shown)
    assert [d.actor for d in decided.decisions] == ["ann"]


def test_a_rejection_is_an_answer_too(working: Working) -> None:
    app = working(order(", quorum: 3"))
    handle = app.start_workflow("order", {"id": 7})
    app.reject(asked(app, handle.id).id, by=ann("manager"), comment="too much")
    assert handle.result(WAIT)["answer"]["decision"] == "rejected"


def refused(act: Callable[[], Any]) -> str:
    with pytest.raises((rhythm.Denied, rhythm.Undecidable)) as raised:
        act()
    return str(raised.value.code)


def test_each_decision_that_cannot_be_has_its_own_code_and_changes_nothing(
    working: Working,
) -> None:
    app = working(order(", quorum: 2"))
    handle = app.start_workflow("order", {"id": 7}, by="sue")
    approval = asked(app, handle.id)
    sue = Actor("sue", ("manager",))
    assert refused(lambda: app.approve(approval.id, by=sue)) == "self_approval"
    assert refused(lambda: app.reject(approval.id, by=sue)) == "self_approval"
    assert refused(lambda: app.approve(approval.id, by=ann("clerk"))) == "wrong_role"
    assert refused(lambda: app.approve(approval.id, by=ann())) == "wrong_role"
    assert (
        refused(lambda: app.approve(approval.id, by=ann("manager"), content_hash="0" * 64))
        == "approval_changed"
    )
    assert refused(lambda: app.escalate(approval.id, by=ann("manager"))) == "no_escalation"
    assert app.approval(approval.id) == approval
    app.approve(approval.id, by=ann("manager"), key="k")
    again = app.approve(approval.id, by=ann("manager"), key="k")
    assert (again.status, len(again.decisions)) == ("open", 1), "the same call again"
    assert refused(lambda: app.approve(approval.id, by=ann("manager"))) == "decision_repeated"
    assert refused(lambda: app.reject(approval.id, by=ann("manager"))) == "decision_repeated"
    app.approve(approval.id, by=Actor("bob", ("manager",)))
    assert (
        refused(lambda: app.approve(approval.id, by=Actor("cee", ("manager",))))
        == "already_decided"
    )
    assert handle.result(WAIT)["answer"]["by"] == ["ann", "bob"]
    with pytest.raises(rhythm.UnknownApproval):
        app.approve("nobody.1", by="ann")


def test_a_token_decides_with_the_roles_it_has_at_that_moment(working: Working) -> None:
    app = working()
    approval = asked(app, app.start_workflow("order", {"id": 7}).id)
    token = app.create_token("ann", roles=("approver",), business_roles=("manager",)).view
    actor = Actor("ann", ("manager",), token=token.id)
    app.change_token(token.id, business_roles=())
    assert refused(lambda: app.approve(approval.id, by=actor)) == "role_revoked"
    app.change_token(token.id, business_roles=("manager",))
    app.revoke_token(token.id)
    assert refused(lambda: app.approve(approval.id, by=actor)) in ("role_revoked", "wrong_role")
    assert app.approval(approval.id).status == "open"


def test_what_is_decided_about_gets_no_other_data_meanwhile(working: Working) -> None:
    app = working()
    handle = app.start_workflow("order", {"id": 7}, by="sue")
    approval = asked(app, handle.id)
    app.pause(handle, by="ann")
    assert refused(lambda: app.resume(handle, by="ann", data={"limit": 9})) == "approval_open"
    assert app.resume(handle, by="ann")
    app.approve(approval.id, by="bob")
    assert handle.result(WAIT)["answer"]["by"] == ["bob"]


def test_of_fifty_who_decide_at_once_one_wins_and_the_others_are_told(working: Working) -> None:
    app = working()
    handle = app.start_workflow("order", {"id": 7})
    approval, said, all_there = asked(app, handle.id), list[str](), threading.Barrier(50)

    def decide(n: int) -> None:
        act = app.approve if n % 2 else app.reject
        all_there.wait()
        try:
            said.append(act(approval.id, by=f"person {n}").status)
        except rhythm.Undecidable as problem:
            said.append(problem.code)

    threads = [threading.Thread(target=decide, args=(n,)) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said)[:49] == ["already_decided"] * 49
    assert handle.result(WAIT)["answer"]["decision"] == sorted(said)[49]
    assert len(app.approval(approval.id).decisions) == 1
    assert app.store.operating.check(0.0) == []


def test_an_approval_that_nobody_decides_expires(working: Working) -> None:
    app = working(order(', timeout: "50ms"'))
    handle = app.start_workflow("order", {"id": 7})
    answer = handle.result(WAIT)["answer"]
    assert (answer["decision"], answer["by"]) == ("expired", [])
    (approval,) = app.approvals(status="expired")
    assert refused(lambda: app.approve(approval.id, by="ann")) == "approval_expired"


def test_an_escalation_asks_the_next_role_and_forgets_what_the_first_has_said(
    working: Working,
) -> None:
    app = working(order(', quorum: 2, escalate: ["director", "board"]'))
    handle = app.start_workflow("order", {"id": 7})
    approval = asked(app, handle.id)
    assert (approval.escalations, app.resume_options(handle)) == (
        ("director", "board"),
        ("approve", "reject", "escalate"),
    )
    app.approve(approval.id, by=ann("manager"))
    higher = app.escalate(approval.id, by=ann("manager"), comment="not mine")
    assert (higher.role, higher.escalations, higher.status) == ("director", ("board",), "open")
    assert higher.content_hash != approval.content_hash
    assert (
        refused(
            lambda: app.approve(
                approval.id, by=Actor("bob", ("director",)), content_hash=approval.content_hash
            )
        )
        == "approval_changed"
    )
    assert refused(lambda: app.approve(approval.id, by=Actor("bob", ("manager",)))) == "wrong_role"
    app.approve(approval.id, by=Actor("bob", ("director",)))
    assert app.approval(approval.id).status == "open", "the quorum begins anew"
    app.approve(approval.id, by=Actor("cee", ("director",)))
    assert handle.result(WAIT)["answer"]["by"] == ["bob", "cee"]


def test_a_refusal_is_about_the_row_that_was_judged_whatever_happened_since(
    working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = working(order(', escalate: "director"'))
    approval = asked(app, app.start_workflow("order", {"id": 7}).id)
    decide = app.store.people.decide_all

    def overtaken(wanted: Sequence[tuple[str, Decision]], *, patient: bool) -> list[Verdict | None]:
        verdicts = decide(wanted, patient=patient)
        # somebody acts before the first one is answered
        decide([(wanted[0][0], Decision(ann("manager"), "escalate"))])
        return verdicts

    monkeypatch.setattr(app.store.people, "decide_all", overtaken)
    with pytest.raises(rhythm.Denied, match="does not hold the role `manager`"):
        app.approve(approval.id, by=Actor("bob", ("clerk",)))
    assert app.approval(approval.id).role == "director"


def test_with_after_it_goes_to_the_next_role_by_itself(working: Working) -> None:
    app = working(order(', escalate: { role: "director", after: "50ms" }'))
    handle = app.start_workflow("order", {"id": 7})
    approval = asked(app, handle.id)
    while app.approval(approval.id).role != "director":
        threading.Event().wait(0.01)
    app.approve(approval.id, by=Actor("bob", ("director",)))
    assert handle.result(WAIT)["answer"]["by"] == ["bob"]


@pytest.mark.parametrize(("auto", "decision"), [(True, "approved"), (False, "expired")])
def test_what_follows_a_deadline_is_a_setting(working: Working, auto: bool, decision: str) -> None:
    app = working(
        order(', timeout: "80ms", escalate: { role: "director", timeout: "1h" }'),
        resume_auto_escalate=auto,
    )
    handle = app.start_workflow("order", {"id": 7})
    approval = asked(app, handle.id)
    while auto and app.approval(approval.id).role != "director":
        threading.Event().wait(0.01)
    if auto:
        app.approve(approval.id, by=Actor("bob", ("director",)))
    assert handle.result(WAIT)["answer"]["decision"] == decision


def test_the_default_deadline_is_a_setting(working: Working) -> None:
    app = working(resume_timeout="2h")
    approval = asked(app, app.start_workflow("order", {"id": 7}).id)
    assert approval.deadline_at is not None
    assert (approval.deadline_at - approval.created_at).total_seconds() == 7200


def test_without_auto_resume_what_was_decided_waits_for_a_resume(working: Working) -> None:
    app = working(auto_resume_after_approval=False)
    handle = app.start_workflow("order", {"id": 7})
    app.approve(asked(app, handle.id).id, by="ann")
    status = app.status(handle)
    assert (status.status, status.paused_reason, status.paused_by) == (
        "paused",
        "approval_decided",
        "ann",
    )
    assert app.resume_options(handle) == ("resume",)
    with pytest.raises(rhythm.ResultTimeout):
        handle.result("0.3s")
    assert app.resume(handle, by="bob")
    assert handle.result(WAIT)["answer"]["decision"] == "approved"
    assert [request.triggered_by for request in app.resume_requests(handle)] == [
        "approval",
        "manual",
    ]


def test_people_are_told_by_a_task_of_the_users(make_app: MakeApp) -> None:
    told: list[tuple[str, str, Any]] = []

    def tell(event: str, role: str, data: Any, **more: Any) -> None:
        told.append((event, role, data))

    app = make_app(tell)
    app.register(order(', notify: "tell", escalate: "director"'))
    with app.worker():
        handle = app.start_workflow("order", {"id": 7})
        approval = asked(app, handle.id)
        app.escalate(approval.id, by="ann")
        app.approve(approval.id, by="bob")
        handle.result(WAIT)
        while len(told) < 2:
            threading.Event().wait(0.01)
    assert told == [("requested", "manager", {"id": 7}), ("escalated", "director", {"id": 7})]


def test_a_cancelled_execution_takes_its_approval_with_it(working: Working) -> None:
    app = working()
    handle = app.start_workflow("order", {"id": 7})
    approval = asked(app, handle.id)
    handle.cancel()
    with pytest.raises(rhythm.ExecutionFailed):
        handle.result(WAIT)
    assert app.approval(approval.id).status == "cancelled"
    assert refused(lambda: app.approve(approval.id, by="ann")) == "approval_cancelled"


def test_approvals_are_found_by_role_and_status_page_by_page(working: Working) -> None:
    app = working(order(", four_eyes: false"))
    ids = [handle.id for handle in app.start_many("order", [{"id": n} for n in range(5)])]
    approvals = [asked(app, id) for id in ids]
    app.approve(approvals[0].id, by="ann")
    assert {each.execution_id for each in app.approvals(role="manager")} == set(ids[1:])
    assert app.approvals(role="clerk").items == ()
    assert [each.execution_id for each in app.approvals(status="approved")] == ids[:1]
    first = app.approvals(limit=3)
    rest = app.approvals(limit=3, cursor=first.cursor)
    assert (len(first.items), len(rest.items), rest.cursor) == (3, 1, None)
    assert {each.id for each in (*first, *rest)} == {each.id for each in approvals[1:]}
    with pytest.raises(ValueError, match="status is one of"):
        app.approvals(status="done")


def test_what_a_branch_asks_for_is_found_with_its_execution(working: Working) -> None:
    app = working("""workflow order(inputs) {
      let both = await all([branch { let x = await approval({ role: role })
        return x.decision } for role in ["manager", "legal"]])
      return both
    }""")
    handle = app.start_workflow("order", {"id": 7})
    while len(app.approvals(execution=handle).items) < 2:
        threading.Event().wait(0.01)
    for each in app.approvals(execution=handle):
        app.approve(each.id, by="ann")
    assert handle.result(WAIT) == ["approved", "approved"]


def test_who_decides_must_be_said_and_roles_are_several(working: Working) -> None:
    app = working()
    approval = asked(app, app.start_workflow("order", {"id": 7}).id)
    for nobody in ("", None):
        with pytest.raises(ValueError, match="say who decides"):
            app.approve(approval.id, by=nobody)  # type: ignore[arg-type]  # what a careless caller does
    with pytest.raises(ValueError, match="several texts, not one"):
        app.approve(approval.id, by=Actor("bob", "managers"))  # type: ignore[arg-type]  # likewise
    assert app.approval(approval.id).status == "open"
