"""Schedules over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from rhythm.app import Rhythm, schedules
from tests.http.conftest import Client


def test_a_schedule_is_made_changed_paused_run_and_deleted(app: Rhythm, admin: Client) -> None:
    body = {
        "name": "nightly/sums",
        "workflow": "add",
        "cron": "0 3 * * *",
        "tz": "Europe/Berlin",
        "inputs": {"a": 1, "b": 2},
    }
    made, again = (
        admin.post("/api/v1/schedules", json=body),
        admin.post("/api/v1/schedules", json=body),
    )
    assert [made.status_code, again.status_code] == [201, 200]
    assert (made.json()["cron"], made.json()["created_by"], made.json()["status"]) == (
        "0 3 * * *",
        "Root",
        "active",
    )
    path = "/api/v1/schedules/nightly%2Fsums"
    changed = admin.patch(path, json={"overlap": "allow"}).json()
    assert (changed["overlap"], changed["cron"], changed["inputs"]) == (
        "allow",
        "0 3 * * *",
        {"a": 1, "b": 2},
    )
    changed = admin.patch(path, json={"every": "90m"}).json()
    assert (changed["every_s"], changed["cron"], changed["overlap"]) == (5400, None, "allow")
    assert len(admin.get(f"{path}/times", params={"count": 3}).json()["times"]) == 3
    assert [
        admin.post(f"{path}/pause", json={"reason": "x"}).json()["changed"] for _ in range(2)
    ] == [True, False]
    run = [admin.post(f"{path}/run", headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert ([answer.status_code for answer in run], run[0].json()["id"]) == (
        [201, 200],
        run[1].json()["id"],
    )
    assert admin.get(path).json()["fires"][0]["execution_id"] == run[0].json()["id"]
    assert admin.post(f"{path}/resume").json() == {"name": "nightly/sums", "changed": True}
    (item,) = admin.get("/api/v1/schedules").json()["items"]
    assert (item["name"], "inputs" in item) == ("nightly/sums", False)
    assert admin.delete(path).status_code == 204
    assert admin.get(path).json()["code"] == "unknown_schedule"
    done = {row.action for row in app.audit(object="nightly/sums")}
    assert done >= {
        "schedule.create",
        "schedule.change",
        "schedule.pause",
        "schedule.run",
        "schedule.resume",
        "schedule.delete",
    }


@pytest.mark.parametrize(
    ("meanwhile", "answered"),
    [("gone", (404, "unknown_schedule")), ("other", (409, "schedule_changed")), ("", (200, None))],
)
def test_a_change_of_what_is_no_longer_there_does_nothing(
    app: Rhythm,
    admin: Client,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: str,
    answered: tuple[int, str | None],
) -> None:
    """Else it would come back with the inputs of whoever made it, and without their name."""
    app.schedule("s", "add", every="1h", inputs={"a": 1, "b": 2}, by="ann")
    wanted = schedules.wanted_schedule

    def between(*args: Any) -> Any:
        monkeypatch.setattr(schedules, "wanted_schedule", wanted)
        if meanwhile == "gone":
            app.delete_schedule("s")
        elif meanwhile:
            app.schedule("s", "add", every="1h", inputs={"a": 1, "b": 3}, by="bob")
        return wanted(*args)

    monkeypatch.setattr(schedules, "wanted_schedule", between)
    answer = admin.patch("/api/v1/schedules/s", json={"every": "2h"})
    assert (answer.status_code, answer.json().get("code")) == answered
    assert [(each.every_s, each.inputs["b"]) for each in app.schedules()] == {
        "gone": [],
        "other": [(3600, 3)],
        "": [(7200, 2)],
    }[meanwhile]


def test_what_cannot_be_a_schedule_is_refused(app: Rhythm, admin: Client) -> None:
    for wrong in (
        {"cron": "x"},
        {},
        {"cron": "0 3 * * *", "every": 5},
        {"cron": "0 3 * * *", "tz": "Nowhere"},
        {"at": "soon"},
    ):
        answer = admin.post("/api/v1/schedules", json={"name": "s", "workflow": "add", **wrong})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_schedule"), wrong
    assert (
        admin.post(
            "/api/v1/schedules", json={"name": "s", "workflow": "nothing", "every": 5}
        ).json()["code"]
        == "unknown_workflow"
    )
    app.register('@schedule("0 9 * * *")\nworkflow mornings() {\n  return 1\n}')
    (own,) = admin.get("/api/v1/schedules").json()["items"]
    answer = admin.delete(f"/api/v1/schedules/{own['name']}")
    assert (answer.status_code, answer.json()["code"]) == (409, "schedule_of_workflow")
