"""Whoever had a hand in what is decided about does not decide, whichever way they took."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rhythm.app import Rhythm
from rhythm.app.approvals import ApprovalView
from rhythm.http import Server
from tests.http.conftest import Client, MakeClient, until
from tests.support.serving import serving

ASK = (
    'return await approval({ role: "finance", reason: "over the limit", data: given, '
    'escalate: { role: "board" } })'
)
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
workflow relay(inputs) {{ publish("amount", inputs) }}
workflow sender(inputs) {{ send(inputs.to, "amount", inputs.payload) }}
@on("ordered") workflow triggered(inputs) {{
  let given = inputs
  {ASK}
}}
workflow shop(inputs) {{
  if (inputs?.schedule) {{
    set_attribute("schedule", inputs.schedule)
  }}
  publish("ordered", inputs)
}}
workflow passing(ctx, inputs) {{
  let given = await race({{ heard: signal("amount"), seen: event("amount"), paused: signal("go") }})
  publish("ordered", {{ given: given, resumed: ctx.resume_data }})
}}
""".replace("order(given) { ", "order(inputs) { let given = inputs\n ")


class Scene:
    """Eve, who may act and decide; Otto, who may act; and what waits for a decision."""

    def __init__(self, app: Rhythm, client: MakeClient) -> None:
        self.app = app
        app.register(FLOWS)
        self.eve = client(
            "operator", "author", "approver", name="Eve", business=("finance", "board")
        )
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
        self.comes(
            lambda: self.app.children(f"{id}.1").items if self.app.children(id).items else ()
        )
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
    sends(
        scene.otto, "schedules", name="nightly", workflow="order", every="10h", inputs={"amount": 9}
    )
    sends(scene.eve, "schedules/nightly/run")
    asked = scene.asked()
    assert asked.requested_by == "Eve"
    assert scene.refused(asked)


def test_not_who_made_the_schedule_that_started_it(scene: Scene) -> None:
    sends(
        scene.eve, "schedules", name="nightly", workflow="order", every="10h", inputs={"amount": 9}
    )
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


def test_not_who_started_the_workflow_that_published_the_event_it_took(scene: Scene) -> None:
    id = scene.otto.start("published")
    scene.comes(lambda: scene.app.get(id).status == "paused")
    scene.eve.start("relay", 9)
    assert scene.refused(scene.asked())


def test_not_who_started_the_workflow_that_sent_it_a_signal(scene: Scene) -> None:
    id = scene.otto.start("signalled")
    scene.eve.start("sender", {"to": id, "payload": 9})
    assert scene.refused(scene.asked())


@pytest.mark.parametrize("claimed", [None, "nobody"])
def test_not_who_made_the_schedule_whose_workflow_published_what_started_it(
    scene: Scene, claimed: str | None
) -> None:
    sends(
        scene.eve,
        "schedules",
        name="eves",
        workflow="shop",
        every="10h",
        inputs={"schedule": claimed},
    )
    sends(scene.otto, "schedules/eves/run")
    asked = scene.asked()
    assert asked.requested_by == "Otto"
    assert scene.refused(asked)


@pytest.mark.parametrize("how", ["signal", "publish", "resume"])
def test_not_who_gave_data_to_what_published_the_event_that_started_it(
    scene: Scene, how: str
) -> None:
    id = scene.otto.start("passing")
    scene.comes(lambda: scene.app.get(id).awaiting)
    if how == "signal":
        sends(scene.eve, f"executions/{id}/signals", name="amount", payload=9)
    elif how == "publish":
        sends(scene.eve, "events", type="amount", data=9)
    else:
        sends(scene.otto, f"executions/{id}/pause")
        sends(scene.eve, f"executions/{id}/resume", data={"amount": 9})
        sends(scene.otto, f"executions/{id}/signals", name="go")
    asked = scene.asked()
    assert asked.requested_by == "Otto"
    assert scene.refused(asked)


def test_not_who_registered_the_schedule_that_gave_it_its_inputs(scene: Scene) -> None:
    text = (
        (
            '@schedule("0 0 1 1 *", { inputs: { amount: 9 } }) workflow yearly(inputs) { let '
            "given = inputs\n "
        )
        + ASK
        + " }"
    )
    sends(scene.eve, "workflows", source=text)
    sends(scene.otto, "schedules/@yearly/run")
    asked = scene.asked()
    assert asked.data == {"amount": 9}
    assert scene.refused(asked)


def test_the_starter_cannot_choose_who_is_excluded(scene: Scene, client: MakeClient) -> None:
    grace = client("operator", "approver", name="Grace", business=("finance",))
    sends(grace, "schedules", name="graces", workflow="wait", every="10h")
    sends(scene.otto, "executions", workflow="order", attributes={"schedule": "graces"})
    asked = scene.asked()
    assert grace.post(f"/api/v1/approvals/{asked.id}/approve").status_code == 200


def test_who_had_a_hand_in_it_cannot_escalate_it_either(scene: Scene, client: MakeClient) -> None:
    scene.eve.start("order")
    asked = scene.asked()
    answer = scene.eve.post(f"/api/v1/approvals/{asked.id}/escalate")
    assert (answer.status_code, answer.json()["code"]) == (403, "self_approval")
    grace = client("approver", name="Grace", business=("finance",))
    assert grace.post(f"/api/v1/approvals/{asked.id}/escalate").status_code == 200


def test_a_workflow_reaches_others_only_with_the_permission_of_whoever_started_it(
    scene: Scene, client: MakeClient
) -> None:
    author = client("author", name="Ada")
    id = scene.otto.start("signalled")
    sent, published = author.start("sender", {"to": id, "payload": 666}), author.start("relay", 666)
    scene.comes(lambda: all(scene.app.get(id).finished_at is not None for id in (sent, published)))
    assert [scene.app.get(id).status for id in (sent, published)] == ["failed", "failed"]
    error = scene.app.get(sent).error
    assert error is not None
    assert error["code"] == "Forbidden"
    assert "permission" in error["message"]
    scene.otto.start("sender", {"to": id, "payload": 9})
    assert scene.asked().data == 9


def test_what_a_workflow_sends_and_publishes_is_recorded(scene: Scene) -> None:
    id = scene.otto.start("signalled")
    sender, relay = scene.eve.start("sender", {"to": id, "payload": 9}), scene.eve.start("relay", 9)
    scene.asked()
    scene.comes(lambda: scene.app.get(relay).status == "completed")
    rows = [
        (row.actor, row.action, row.object, row.source)
        for row in scene.app.audit(limit=200)
        if row.source.startswith("execution:")
    ]
    assert ("Eve", "execution.signal", id, f"execution:{sender}") in rows
    assert [row[:2] for row in rows if row[3] == f"execution:{relay}"] == [("Eve", "event.publish")]


def test_somebody_else_decides_whoever_had_a_hand_in_another_one(
    scene: Scene, client: MakeClient
) -> None:
    grace = client("operator", "approver", name="Grace", business=("finance",))
    scene.otto.post("/api/v1/executions", json={"workflow": "wait", "id": "order-7-other"})
    sends(grace, "executions/order-7-other/signals", name="go")
    scene.otto.post("/api/v1/executions", json={"workflow": "order", "id": "order-7"})
    asked = scene.asked()
    assert grace.post(f"/api/v1/approvals/{asked.id}/approve").status_code == 200


@pytest.mark.parametrize("name", ["eve", "EVE", " Eve", "\uff25ve"])
def test_not_with_another_token_of_almost_the_same_name(
    scene: Scene, client: MakeClient, name: str
) -> None:
    scene.eve.start("order")
    asked = scene.asked()
    other = client("approver", name=name, business=("finance",))
    assert other.post(f"/api/v1/approvals/{asked.id}/approve").json()["code"] == "self_approval"


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
        grace.post(f"/api/v1/approvals/{asked.id}/{how}", headers={"Idempotency-Key": "k"})
        for how in ("approve", "approve", "reject")
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 409]
    assert answers[2].json()["code"] == "decision_repeated"
