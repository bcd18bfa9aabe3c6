"""Approvals, pauses and resumes over HTTP: who may, what is refused and with which code, and a
hundred decisions at once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import httpx

from rhythm.app import Rhythm
from tests.http.conftest import Client, MakeClient, until

FLOW = """
workflow order(inputs) {
  let decision = await approval({ role: "finance", reason: "over the limit", data: inputs, escalate: { role: "board" } })
  return decision
}
"""


def asked(app: Rhythm, by: Client, n: int = 1) -> list[str]:
    """The ids of approvals that wait, each of an execution of its own."""
    app.register(FLOW)
    for k in range(n):
        by.start("order", {"n": k})
    with app.worker():
        until(lambda: len(app.approvals(limit=1000).items) == n)
    return [view.id for view in app.approvals(limit=1000)]


def decide(client: Client, id: str, how: str = "approve", **body: object) -> httpx.Response:
    return client.post(f"/api/v1/approvals/{id}/{how}", json=body)


def test_an_approval_is_shown_decided_and_lets_its_execution_go_on(
    app: Rhythm, client: MakeClient
) -> None:
    operator, grace = (
        client("operator", name="Otto"),
        client("approver", name="Grace", business=("finance",)),
    )
    (id,) = asked(app, operator)
    shown = grace.get(f"/api/v1/approvals/{id}").json()
    assert (shown["status"], shown["role"], shown["data"], shown["requested_by"]) == (
        "open",
        "finance",
        {"n": 0},
        "Otto",
    )
    execution = f"/api/v1/executions/{shown['execution_id']}"
    assert grace.get(f"{execution}/resume-options").json() == {
        "actions": ["approve", "reject", "escalate"]
    }
    assert grace.get(f"{execution}/status").json()["status"] == "paused"
    decided = decide(grace, id, comment="fine", content_hash=shown["content_hash"])
    assert (decided.status_code, decided.json()["status"]) == (200, "approved")
    with app.worker():
        result = app.result(shown["execution_id"], "120s")
    assert (result["decision"], result["by"], result["comment"]) == ("approved", ["Grace"], "fine")
    (request,) = grace.get(f"{execution}/resume-requests").json()["items"]
    assert (request["triggered_by"], request["triggered_by_id"]) == ("approval", id)


def test_the_content_hash_is_also_taken_by_its_older_name(app: Rhythm, client: MakeClient) -> None:
    (id,) = asked(app, client("operator", name="Otto"))
    grace = client("approver", name="Grace", business=("finance",))
    known = grace.get(f"/api/v1/approvals/{id}").json()["shown"]
    refused = decide(grace, id, shown="another")
    assert (refused.status_code, refused.json()["code"]) == (409, "approval_changed")
    assert decide(grace, id, shown=known, content_hash="another").status_code == 422
    assert decide(grace, id, shown=known).json()["status"] == "approved"


def test_each_refusal_has_its_own_code(app: Rhythm, client: MakeClient) -> None:
    starter = client("operator", "approver", name="Otto", business=("finance",))
    (id,) = asked(app, starter)
    wrong = client("approver", name="Willy", business=("sales",))
    token = app.create_token("Rita", roles=["approver"], business_roles=["finance"])
    app.change_token(token.view.id, business_roles=[])
    grace, hopper = (
        client("approver", name=name, business=("finance",)) for name in ("Grace", "Hopper")
    )
    with Client(str(grace.base_url), token.secret) as rita:
        refusals = [
            decide(starter, id),
            decide(wrong, id),
            decide(rita, id),
            decide(grace, id, content_hash="another"),
        ]
    assert decide(grace, id).status_code == 200
    refusals += [decide(hopper, id), decide(grace, "nothing.1")]
    assert [(answer.status_code, answer.json()["code"]) for answer in refusals] == [
        (403, "self_approval"),
        (403, "wrong_role"),
        (403, "role_revoked"),
        (409, "approval_changed"),
        (409, "already_decided"),
        (404, "unknown_approval"),
    ]


def test_a_decision_that_is_sent_twice_with_its_key_is_one(app: Rhythm, client: MakeClient) -> None:
    (id,) = asked(app, client("operator", name="Otto"))
    grace = client("approver", name="Grace", business=("finance",))
    twice = [
        grace.post(f"/api/v1/approvals/{id}/approve", headers={"Idempotency-Key": "k"})
        for _ in range(2)
    ]
    assert [answer.status_code for answer in twice] == [200, 200]
    assert len(app.approval(id).decisions) == 1


def test_escalate_and_reject(app: Rhythm, client: MakeClient) -> None:
    (id,) = asked(app, client("operator", name="Otto"))
    grace, board = (
        client("approver", name="Grace", business=("finance",)),
        client("approver", name="Bea", business=("board",)),
    )
    assert decide(grace, id, "escalate", to="board").json()["role"] == "board"
    assert decide(grace, id, "reject").json()["code"] == "wrong_role"
    assert decide(board, id, "reject", comment="no").json()["status"] == "rejected"


def test_fifty_decisions_at_once_have_one_outcome(app: Rhythm, client: MakeClient) -> None:
    (id,) = asked(app, client("operator", name="Otto"))
    people = [client("approver", name=f"p{n}", business=("finance",)) for n in range(50)]
    with ThreadPoolExecutor(50) as pool:
        answers = list(
            pool.map(lambda n: decide(people[n], id, "approve" if n % 2 else "reject"), range(50))
        )
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 49
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} == {
        "already_decided"
    }
    assert len(app.approval(id).decisions) == 1
    assert app.verify_audit().intact


def test_a_hundred_approvals_that_are_decided_at_once_all_let_their_executions_go_on(
    app: Rhythm, client: MakeClient
) -> None:
    ids = asked(app, client("operator", name="Otto"), 100)
    grace = client("approver", name="Grace", business=("finance",))
    began = time.monotonic()
    with app.worker(), ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda id: decide(grace, id), ids))
        results = [
            app.result(view.execution_id, "120s")["decision"]
            for view in app.approvals(status="approved", limit=1000)
        ]
    print(f"{len(ids)} decided and gone on after {time.monotonic() - began:.2f} s")
    assert {answer.status_code for answer in answers} == {200}
    assert results == ["approved"] * 100
    assert app.verify_audit().intact


def test_pause_and_resume_with_reason_and_data(app: Rhythm, client: MakeClient) -> None:
    otto = client("operator", name="Otto")
    id = otto.start("wait")
    paused = otto.post(
        f"/api/v1/executions/{id}/pause",
        json={"reason": "hold on", "timeout": "2h", "then": "cancel"},
    )
    assert paused.json() == {"id": id, "changed": True}
    status = otto.get(f"/api/v1/executions/{id}/status").json()
    assert (status["status"], status["paused_reason"], status["paused_by"]) == (
        "paused",
        "hold on",
        "Otto",
    )
    assert status["paused_until"] is not None
    assert otto.get(f"/api/v1/executions/{id}/resume-options").json() == {"actions": ["resume"]}
    wrong = otto.post(f"/api/v1/executions/{id}/resume", json={"data": 7})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_request")
    assert (
        otto.post(
            f"/api/v1/executions/{id}/resume", json={"reason": "go", "data": {"x": 1}}
        ).json()["changed"]
        is True
    )
    assert otto.post(f"/api/v1/executions/{id}/resume").json()["changed"] is False
    (request,) = otto.get(f"/api/v1/executions/{id}/resume-requests").json()["items"]
    assert (request["triggered_by"], request["trigger_data"], request["reason"]) == (
        "manual",
        {"x": 1},
        "go",
    )
