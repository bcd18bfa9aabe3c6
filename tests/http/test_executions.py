"""Executions over HTTP: starting, looking, acting; on both databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from rhythm.app import Rhythm
from rhythm.ids import personal_key
from tests.http.conftest import Client, MakeClient, until
from tests.support.stores import rows


def test_an_execution_is_started_and_read(app: Rhythm, admin: Client) -> None:
    started = admin.post(
        "/api/v1/executions",
        json={"workflow": "add", "inputs": {"a": 1, "b": 2}, "attributes": {"team": "x"}},
    )
    assert (started.status_code, started.json()["created"]) == (201, True)
    with app.worker():
        assert app.result(started.json()["id"], "120s") == 3
    read = admin.get(started.headers["Location"])
    assert read.status_code == 200
    assert read.json() == app.get(started.json()["id"]).as_json()
    assert (read.json()["result"], read.json()["attributes"]) == (3, {"team": "x"})


def test_lists_come_in_pages_without_what_may_be_large(app: Rhythm, admin: Client) -> None:
    ids = [admin.start("wait", {"n": n}) for n in range(5)]
    seen, cursor = [], None
    for _ in range(3):
        page = admin.get(
            "/api/v1/executions", params={"limit": 2, **({"cursor": cursor} if cursor else {})}
        ).json()
        seen += [item["id"] for item in page["items"]]
        assert all("inputs" not in item for item in page["items"])
        cursor = page["cursor"]
    assert (seen, cursor) == (ids[::-1], None)


def test_a_key_starts_once_and_is_not_taken_with_other_inputs(admin: Client) -> None:
    body, key = {"workflow": "wait", "inputs": {"n": 1}}, {"Idempotency-Key": "order-7"}
    first = admin.post("/api/v1/executions", json=body, headers=key)
    again = admin.post("/api/v1/executions", json=body, headers=key)
    other = admin.post("/api/v1/executions", json={**body, "inputs": {"n": 2}}, headers=key)
    assert [answer.status_code for answer in (first, again, other)] == [201, 200, 422]
    assert again.json() == {"id": first.json()["id"], "created": False}
    assert other.json()["code"] == "idempotency_key_reused"
    assert other.json()["id"] == first.json()["id"]


def test_a_key_is_a_persons_own(app: Rhythm, client: MakeClient) -> None:
    """However the name is written, and with whichever token: a person is one. Another one with the
    same key is another."""
    app.schedule("nightly", "add", cron="0 3 * * *")
    id, key = client("operator").start("wait"), {"Idempotency-Key": "order-7"}
    ada, same, otto = (
        client("operator", name="Ada"),
        client("operator", name="ADA"),
        client("operator", name="Otto"),
    )
    calls: list[tuple[str, dict[str, Any], Callable[[httpx.Response], object]]] = [
        ("/executions", {"workflow": "wait", "inputs": 1}, lambda answer: answer.json()["created"]),
        (f"/executions/{id}/signals", {"name": "x"}, lambda answer: answer.json()["sent"]),
        ("/events", {"type": "x"}, lambda answer: answer.json()["published"]),
        ("/schedules/nightly/run", {}, lambda answer: answer.json()["created"]),
    ]
    for path, body, first in calls:
        answers = [
            who.post(f"/api/v1{path}", json=body, headers=key) for who in (ada, same, otto, otto)
        ]
        assert [bool(first(answer)) for answer in answers] == [True, False, True, False], path
    other = otto.post(
        "/api/v1/executions", json={"workflow": "wait", "inputs": 2}, headers=key
    ).json()
    assert other["code"] == "idempotency_key_reused"
    assert app.get(other["id"]).started_by == "Otto", "never somebody else's"
    failed = otto.post(
        "/api/v1/executions", json={"workflow": "wait", "on_conflict": "fail"}, headers=key
    )
    assert (failed.status_code, failed.json()["id"]) == (409, other["id"])
    assert "the idempotency key of `wait` belongs" in failed.json()["detail"]


def test_a_key_over_http_meets_none_from_python_and_nobody_can_choose_what_it_becomes(
    app: Rhythm, client: MakeClient
) -> None:
    ada, otto = client("operator"), client("operator", name="Otto")
    app.schedule("nightly", "add", cron="0 3 * * *")
    app.start_workflow("wait", idempotency_key="k")
    assert (
        ada.post(
            "/api/v1/executions", json={"workflow": "wait"}, headers={"Idempotency-Key": "k"}
        ).status_code
        == 201
    )
    [stored] = [
        key for (key,) in rows(app.store, "SELECT key FROM executions WHERE started_by = 'Ada'")
    ]
    for forged in (
        otto.post("/api/v1/events", json={"type": "x", "id": stored}),
        otto.post("/api/v1/events", json={"type": "x", "id": personal_key("ada", "e")}),
    ):
        assert (forged.status_code, forged.json()["code"]) == (422, "invalid_request")
    for call in (
        lambda: app.start_workflow("wait", idempotency_key=stored),
        lambda: app.signal("w", "x", signal_id=stored),
        lambda: app.publish("x", event_id=stored),
        lambda: app.run_schedule("nightly", key=stored),
    ):
        with pytest.raises(ValueError, match="choose another"):
            call()


def test_an_id_that_is_taken_is_told_as_the_id(client: MakeClient) -> None:
    body = {"workflow": "wait", "id": "order-7"}
    client("operator").post("/api/v1/executions", json={**body, "inputs": 1})
    again = client("operator", name="Otto").post(
        "/api/v1/executions", json={**body, "inputs": 2}, headers={"Idempotency-Key": "k"}
    )
    assert (again.status_code, again.json()["detail"]) == (
        422,
        "the id has started order-7 with other inputs",
    )


def test_a_signal_is_sent_once_for_each_key(app: Rhythm, admin: Client) -> None:
    id = admin.start("wait")
    sent = [
        admin.post(
            f"/api/v1/executions/{id}/signals",
            json={"name": "go", "payload": 7},
            headers={"Idempotency-Key": "s"},
        ).json()["sent"]
        for _ in range(2)
    ]
    assert sent == [True, False]
    with app.worker():
        assert app.result(id, "120s") == 7
    late = admin.post(f"/api/v1/executions/{id}/signals", json={"name": "go"})
    assert (late.status_code, late.json()["code"]) == (409, "execution_ended")


def test_cancel_and_retry(app: Rhythm, admin: Client) -> None:
    id = admin.start("wait")
    assert admin.post(f"/api/v1/executions/{id}/cancel").json() == {"id": id, "changed": True}
    early = admin.post(f"/api/v1/executions/{id}/retry")
    assert (early.status_code, early.json()["code"]) == (409, "not_retryable")
    with app.worker():
        until(lambda: app.get(id).ended)
    again = admin.post(f"/api/v1/executions/{id}/retry", json={"from_start": True})
    assert (again.status_code, again.json()["created"]) == (201, True)
    assert admin.post(f"/api/v1/executions/{id}/cancel").json()["changed"] is False


def test_children_and_trace_come_in_pages(app: Rhythm, admin: Client) -> None:
    id = admin.start("fan")
    with app.worker():
        until(lambda: len(app.store.reading.children(id)) == 5)
    first = admin.get(f"/api/v1/executions/{id}/children", params={"limit": 3}).json()
    rest = admin.get(
        f"/api/v1/executions/{id}/children", params={"limit": 3, "cursor": first["cursor"]}
    ).json()
    assert [item["id"] for item in first["items"] + rest["items"]] == [
        child.id for child in app.store.reading.children(id)
    ]
    assert rest["cursor"] is None
    path = f"/api/v1/executions/{id}/trace"
    whole, steps = admin.get(path).json()["items"], admin.get(path, params={"limit": 1}).json()
    assert steps["items"] == whole[:1]
    assert admin.get(path, params={"cursor": steps["cursor"]}).json()["items"] == whole[1:]


def test_the_snapshot_of_one_that_waits(app: Rhythm, admin: Client) -> None:
    id = admin.start("wait")
    missing = admin.get(f"/api/v1/executions/{id}/snapshot")
    assert (missing.status_code, missing.json()["code"]) == (404, "no_snapshot")
    with app.worker():
        until(lambda: app.get(id).status == "suspended")
    found = admin.get(f"/api/v1/executions/{id}/snapshot").json()
    assert found["id"] == id
    assert found["awaiting"] is not None


def test_workflows_are_registered_read_and_drawn(admin: Client) -> None:
    source = "workflow twice(inputs) {\n  return inputs.n * 2\n}"
    made = admin.post("/api/v1/workflows", json={"source": source})
    assert (made.status_code, [one["name"] for one in made.json()["workflows"]]) == (201, ["twice"])
    assert admin.get("/api/v1/workflows/twice").json()["source"] == source + "\n"
    assert admin.get("/api/v1/workflows/twice/graph").json()["mermaid"].startswith("flowchart")
    page = admin.get("/api/v1/workflows", params={"limit": 2}).json()
    assert ([item["name"] for item in page["items"]], page["cursor"]) == (["add", "fan"], "fan")
    wrong = admin.post("/api/v1/workflows", json={"source": "workflow ("})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_workflow")


def test_no_source_is_taken_for_the_name_of_a_file(admin: Client) -> None:
    answer = admin.post("/api/v1/workflows", json={"source": "/etc/passwd"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_workflow")
    assert "root:" not in answer.text


def test_queues_are_paused_and_resumed_also_with_slashes_in_their_names(
    app: Rhythm, admin: Client
) -> None:
    assert admin.post("/api/v1/queues/mail%2Fout/pause", json={"reason": "down"}).json() == {
        "name": "mail/out",
        "changed": True,
    }
    (queue,) = admin.get("/api/v1/queues").json()["items"]
    assert (queue["name"], queue["paused_by"], queue["paused_reason"]) == (
        "mail/out",
        "Root",
        "down",
    )
    assert admin.post("/api/v1/queues/mail/out/resume").json()["changed"] is True
    assert admin.post("/api/v1/queues/system/pause").status_code == 422
    assert [row["action"] for row in admin.get("/api/v1/audit").json()["items"][:2]] == [
        "queue.resume",
        "queue.pause",
    ]


def test_an_event_is_published_once_for_each_id(admin: Client) -> None:
    body = {"type": "order.created", "data": {"n": 1}}
    told = [admin.post("/api/v1/events", json={**body, "id": "e-1"}).json() for _ in range(2)]
    assert told == [{"published": 1, "repeated": 0}, {"published": 0, "repeated": 1}]
    keyed = [
        admin.post("/api/v1/events", json=body, headers={"Idempotency-Key": "e-2"}).json()[
            "published"
        ]
        for _ in range(2)
    ]
    assert keyed == [1, 0]
    assert admin.post("/api/v1/events", json={"data": 1}).json()["code"] == "invalid_request"


def test_cloud_events_are_published_structured_binary_and_in_batches(
    app: Rhythm, admin: Client
) -> None:
    app.register('workflow hears() {\n  return await event("paid")\n}')
    id = admin.start("hears")
    event = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "paid", "data": {"n": 1}}
    structured, batch = (
        {"Content-Type": "application/cloudevents+json"},
        {"Content-Type": "application/cloudevents-batch+json"},
    )
    binary = {f"ce-{name}": str(value) for name, value in event.items() if name != "data"}
    answers = [
        admin.post("/api/v1/events", json=event, headers=structured),
        admin.post("/api/v1/events", json=event["data"], headers=binary),  # the same event again
        admin.post("/api/v1/events", json=[event, {**event, "id": "2"}], headers=batch),
    ]
    assert [(answer.json()["published"], answer.json()["repeated"]) for answer in answers] == [
        (1, 0),
        (0, 1),
        (1, 1),
    ]
    with app.worker():
        assert app.result(id, "120s")["data"] == {"n": 1}
    wrong = admin.post("/api/v1/events", json={**event, "source": ""}, headers=structured)
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_event")
    # as the official SDK sends it
    untyped = admin.post("/api/v1/events", content=b'{"n": 1}', headers={**binary, "ce-id": "3"})
    assert (untyped.status_code, untyped.json()) == (200, {"published": 1, "repeated": 0})
    for twice in (b'{"id": "4", "id": "5"}', b'{"data": {"n": 1, "n": 2}}'):
        refused = admin.post("/api/v1/events", content=twice, headers=structured)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_event")
        assert "twice" in refused.json()["detail"]
    refused = admin.post("/api/v1/events", content=b"1", headers=[*binary.items(), ("ce-id", "6")])
    assert (refused.status_code, refused.json()["detail"]) == (
        422,
        "the event has the header 'ce-id' twice",
    )
    many = admin.post("/api/v1/events", json=[event] * 1001, headers=batch)
    assert (many.status_code, many.json()["code"]) == (422, "batch_too_large")


def test_terminate_and_why(app: Rhythm, admin: Client) -> None:
    id = admin.start("wait")
    why = admin.get(f"/api/v1/executions/{id}/why").json()
    assert (why["id"], why["status"], bool(why["reasons"])) == (id, "pending", True)
    assert admin.post(f"/api/v1/executions/{id}/terminate").json() == {"id": id, "changed": True}
    assert admin.get(f"/api/v1/executions/{id}").json()["status"] == "cancelled"


def test_many_are_changed_at_once_or_only_counted(app: Rhythm, admin: Client) -> None:
    for _ in range(3):
        admin.start("wait")
    admin.start("fan")
    counted = admin.post(
        "/api/v1/executions/pause", json={"workflow": "wait", "dry_run": True}
    ).json()
    assert (counted["matched"], counted["changed"]) == (3, 0)
    done = admin.post("/api/v1/executions/pause", json={"workflow": "wait", "reason": "x"}).json()
    assert (done["matched"], done["changed"], done["refused"]) == (3, 3, 0)
    assert len(admin.get("/api/v1/executions", params={"status": "paused"}).json()["items"]) == 3
    assert admin.post("/api/v1/executions/resume", json={"all": True}).json()["changed"] == 3
    assert (
        admin.post("/api/v1/executions/terminate", json={"status": "pending", "limit": 1}).json()[
            "changed"
        ]
        == 1
    )
    unsaid = admin.post("/api/v1/executions/cancel", json={})
    assert (unsaid.status_code, unsaid.json()["code"]) == (422, "selection_missing")
    assert admin.post("/api/v1/executions/cancel", json={"all": True}).json()["changed"] == 3


def test_many_are_retried_as_one_is(app: Rhythm, admin: Client) -> None:
    failing = admin.start("add", {"a": 1})
    with app.worker():
        until(lambda: admin.get(f"/api/v1/executions/{failing}").json()["status"] == "failed")
    at = "/api/v1/executions/retry"
    for dry_run in (True, False):
        refused = admin.post(at, json={"workflow": "add", "dry_run": dry_run}).json()
        assert (refused["matched"], refused["changed"], refused["refused"]) == (1, 0, 1)
        assert "from the start" in refused["reasons"][failing]
    anew = {"workflow": "add", "from_start": True}
    assert admin.post(at, json={**anew, "dry_run": True}).json()["refused"] == 0
    assert admin.post(at, json=anew).json()["changed"] == 1
    assert admin.post("/api/v1/executions/pause", json=anew).status_code == 422


def test_workers_are_told(app: Rhythm, admin: Client) -> None:
    with app.worker("one"):
        until(lambda: admin.get("/api/v1/workers").json()["items"])
        assert admin.get("/api/v1/workers").json()["items"][0]["name"].startswith("one-")


@pytest.mark.parametrize("id", ["\u6f22\u5b57", "a?b#c", "a%0d", '"<x>'])
def test_the_place_of_an_execution_is_a_url_whatever_its_id(admin: Client, id: str) -> None:
    started = admin.post("/api/v1/executions", json={"workflow": "wait", "id": id})
    assert started.status_code == 201, started.text
    assert admin.get(started.headers["Location"]).json()["id"] == id


def test_logs_come_in_pages_and_go_on_after_a_position(app: Rhythm, admin: Client) -> None:
    app.register("workflow says() {\n  for (i in range(5)) { log(`line ${i}`, { i }) }\n}")
    id = admin.start("says")
    with app.worker():
        app.result(id, 30)
    path = f"/api/v1/executions/{id}/logs"
    page = admin.get(path, params={"limit": 3}).json()
    assert [item["message"] for item in page["items"]] == ["line 0", "line 1", "line 2"]
    assert (page["items"][1]["fields"], page["dropped"]) == ({"i": 1}, 0)
    rest = admin.get(path, params={"cursor": page["cursor"]}).json()
    assert ([item["message"] for item in rest["items"]], rest["cursor"]) == (
        ["line 3", "line 4"],
        None,
    )
    last = rest["items"][-1]["position"]
    assert admin.get(path, params={"cursor": str(last)}).json()["items"] == []
    assert admin.get(path, params={"level": "warning"}).json()["items"] == []
    assert admin.get(path, params={"level": "loud"}).status_code == 422
    assert admin.get("/api/v1/executions/nobody/logs").status_code == 404


def test_pause_and_resume_take_the_body_of_the_sketch(app: Rhythm, admin: Client) -> None:
    """`{"reason", "metadata"}`: kept, shown and audited."""
    id = admin.start("wait", {})
    body = {"reason": "why", "metadata": {"ticket": "OPS-7", "by": {"team": [1]}}}
    paused = admin.post(f"/api/v1/executions/{id}/pause", json=body)
    assert (paused.status_code, paused.json()) == (200, {"id": id, "changed": True})
    for read in (f"/api/v1/executions/{id}", f"/api/v1/executions/{id}/status"):
        assert admin.get(read).json()["paused_metadata"] == body["metadata"]
    assert "paused_metadata" not in admin.get("/api/v1/executions").json()["items"][0]
    assert admin.post(f"/api/v1/executions/{id}/resume", json=body).json()["changed"]
    (request,) = admin.get(f"/api/v1/executions/{id}/resume-requests").json()["items"]
    assert (request["reason"], request["metadata"]) == ("why", body["metadata"])
    acts = admin.get("/api/v1/audit", params={"object": id}).json()["items"]
    noted = [act["detail"]["metadata"] for act in acts if "metadata" in act["detail"]]
    assert noted == [body["metadata"]] * 2
    large = {"metadata": {"x": "y" * 5000}}
    refused = admin.post(f"/api/v1/executions/{id}/pause", json=large)
    assert refused.status_code == 422
    assert "metadata has at most 4,096 bytes" in refused.text
    for wrong in ([1], "x", 1):
        assert (
            admin.post(f"/api/v1/executions/{id}/pause", json={"metadata": wrong}).status_code
            == 422
        )
