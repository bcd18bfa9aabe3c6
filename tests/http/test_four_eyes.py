"""Whoever had a hand in what is decided about does not decide, whichever way they took."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rhythm.app import Rhythm
from rhythm.app.approving import ApprovalView
from rhythm.http import Server
from tests.http.conftest import Client, MakeClient, until
from tests.support.serving import serving

ASK = 'return await approval({ role: "finance", reason: "over the limit", data: given, escalate: { role: "board" } })'
FLOWS = f"""
workflow order(given) {{ {ASK} }}
workflow signalled() {{
  let given = await signal("amount")
  {ASK}
}}
workflow twice() {{
  let given = await signal("amount")
  await signal("go")
  {ASK}
}}
workflow published() {{
  let given = await event("amount")
  {ASK}
}}
workflow leaf(ctx, inputs) {{
  await signal("go")
  return ctx.resume_data
}}
workflow below() {{ return await workflow("leaf") }}
workflow above() {{
  let given = await workflow("below")
  {ASK}
}}
""".replace("order(given) { ", "order(inputs) { let given = inputs\n ")


class Scene:
    """Eve, who may act and decide; Otto, who may act; and what waits for a decision."""

    def __init__(self, app: Rhythm, client: MakeClient) -> None:
        self.app = app
        app.register(FLOWS)
        self.eve = client("operator", "author", "approver", name="Eve", business=("finance", "board"))
        self.otto = client("operator", name="Otto")

    def asked(self) -> ApprovalView:
        self.comes(lambda: self.app.approvals().items)
        (asked,) = self.app.approvals()
        return asked

    def comes(self, what: Callable[[], object]) -> None:
        with self.app.worker():
            until(what)

    def leaf(self, id: str) -> str:
        """The execution two below this one."""
        self.comes(lambda: self.app.children(f"{id}.1").items if self.app.children(id).items else ())
        return f"{id}.1.1"

    def refused(self, asked: ApprovalView) -> bool:
        answer = self.eve.post(f"/api/v1/approvals/{asked.id}/approve")
        return (answer.status_code, answer.json().get("code")) == (403, "self_approval")


@pytest.fixture
def scene(app: Rhythm, client: MakeClient) -> Scene:
    return Scene(app, client)


def sends(client: Client, path: str, **body: object) -> dict[str, object]:
    answer = client.post(f"/api/v1/{path}", json=body)
    assert answer.is_success, answer.text
    return dict(answer.json())


def test_not_who_let_a_schedule_start_it_now(scene: Scene) -> None:
    sends(scene.otto, "schedules", name="nightly", workflow="order", every="10h", inputs={"amount": 9})
    sends(scene.eve, "schedules/nightly/run")
    asked = scene.asked()
    assert asked.requested_by == "Eve"
    assert scene.refused(asked)


def test_not_who_made_the_schedule_that_started_it(scene: Scene) -> None:
    sends(scene.eve, "schedules", name="nightly", workflow="order", every="10h", inputs={"amount": 9})
    sends(scene.otto, "schedules/nightly/run")
    assert scene.refused(scene.asked())


def test_not_who_sent_it_a_signal(scene: Scene) -> None:
    id = scene.otto.start("signalled")
    sends(scene.eve, f"executions/{id}/signals", name="amount", payload=9)
    assert scene.refused(scene.asked())


def test_not_who_published_the_event_that_it_took(scene: Scene) -> None:
    id = scene.otto.start("published")
    scene.comes(lambda: scene.app.get(id).status == "paused")
    sends(scene.eve, "events", type="amount", data=9)
    assert scene.refused(scene.asked())


def test_not_who_gave_data_to_a_child_far_below(scene: Scene) -> None:
    leaf = scene.leaf(scene.otto.start("above"))
    sends(scene.otto, f"executions/{leaf}/pause")
    sends(scene.eve, f"executions/{leaf}/resume", data={"amount": 9})
    sends(scene.otto, f"executions/{leaf}/signals", name="go")
    asked = scene.asked()
    assert asked.data == {"amount": 9}
    assert scene.refused(asked)


def test_not_who_gave_something_to_what_it_is_a_retry_of(scene: Scene) -> None:
    id = scene.otto.start("twice")
    sends(scene.eve, f"executions/{id}/signals", name="amount", payload=9)
    scene.comes(lambda: (scene.app.get(id).awaiting or {}).get("name") == "go")
    sends(scene.otto, f"executions/{id}/terminate")
    retry = sends(scene.otto, f"executions/{id}/retry")["id"]
    sends(scene.otto, f"executions/{retry}/signals", name="go")
    asked = scene.asked()
    assert (asked.execution_id, asked.data) == (retry, 9)
    assert scene.refused(asked)


def test_somebody_else_decides_whoever_had_a_hand_in_another_one(scene: Scene, client: MakeClient) -> None:
    grace = client("operator", "approver", name="Grace", business=("finance",))
    scene.otto.post("/api/v1/executions", json={"workflow": "wait", "id": "order-7-other"})
    sends(grace, "executions/order-7-other/signals", name="go")
    scene.otto.post("/api/v1/executions", json={"workflow": "order", "id": "order-7"})
    asked = scene.asked()
    assert grace.post(f"/api/v1/approvals/{asked.id}/approve").status_code == 200


def test_nobody_decides_on_an_open_server(scene: Scene) -> None:
    scene.otto.start("order")
    asked = scene.asked()
    with serving(Server(scene.app, tokens=False)) as base, Client(base) as me:
        for how in ("approve", "reject", "escalate"):
            answer = me.post(f"/api/v1/approvals/{asked.id}/{how}")
            assert (answer.status_code, answer.json()["code"]) == (403, "permission_missing")


def test_a_key_of_one_decision_is_not_that_of_another(scene: Scene, client: MakeClient) -> None:
    grace = client("approver", name="Grace", business=("finance",))
    scene.otto.start("order")
    asked = scene.asked()
    answers = [
        grace.post(f"/api/v1/approvals/{asked.id}/{how}", headers={"Idempotency-Key": "k"}) for how in ("approve", "approve", "reject")
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 409]
    assert answers[2].json()["code"] == "decision_repeated"
