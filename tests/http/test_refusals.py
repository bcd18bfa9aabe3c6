"""Attempts that are refused leave a line in the log: who, from where, what and why; and never more
lines than somebody can read."""

from __future__ import annotations

import logging
from typing import Any

import httpx
import pytest

from rhythm.app import Rhythm
from rhythm.http import Server, refusals, server
from rhythm.http.api import api
from rhythm.http.refusals import LINES_AT_ONCE, RefusalLog
from rhythm.worker.logs import JsonFormatter, TextFormatter
from tests.app.conftest import MakeApp
from tests.http.conftest import FLOWS, Client, MakeClient, until
from tests.http.test_sharing import Clock
from tests.support.serving import serving


def told(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """The fields of each line, but for the addresses of tests."""
    lines = [
        record for record in caplog.records if getattr(record, "event", "") == "access_refused"
    ]
    assert all(line.levelno == logging.WARNING and line.name == "rhythm.http" for line in lines)
    return [{**line.fields} for line in lines]  # type: ignore[attr-defined]


def test_who_has_no_valid_token_is_told_with_what_they_wanted(
    app: Rhythm, base: str, caplog: pytest.LogCaptureFixture
) -> None:
    revoked = app.create_token("Ada", roles=["admin"])
    app.revoke_token(revoked.view.id)
    with Client(base, revoked.secret) as ada:
        ada.post("/api/v1/executions/order-7/cancel")
    httpx.get(f"{base}/api/v1/executions/secret-id?token=hidden")
    here = {"address": "127.0.0.1", "status": 401}
    assert told(caplog) == [
        {
            **here,
            "reason": "token_invalid",
            "method": "POST",
            "route": "/api/v1/executions/{id}/cancel",
            "claimed_token": revoked.view.id,
        },
        {**here, "reason": "token_missing", "method": "GET", "route": "/api/v1/executions/{id}"},
    ]
    assert revoked.secret not in caplog.text
    assert not any(word in caplog.text for word in ("order-7", "secret-id", "hidden"))


def test_who_may_not_is_told_by_name_and_token(
    app: Rhythm, client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    ada = client("viewer")
    assert ada.delete("/api/v1/schedules/nightly").status_code == 403
    token = app.tokens()[0].id
    who = {"address": "127.0.0.1", "status": 403, "actor": "Ada", "token": token}
    assert told(caplog) == [
        {
            **who,
            "reason": "permission_missing",
            "method": "DELETE",
            "route": "/api/v1/schedules/{name:path}",
        }
    ]
    caplog.clear()
    app.register('workflow asks() {\n  return await approval({ role: "finance", reason: "x" })\n}')
    app.start_workflow("asks", id="order-7", by="Otto")
    grace = client("approver", name="Grace", business=("board",))
    with app.worker():
        until(lambda: app.approvals().items)
    assert grace.post("/api/v1/approvals/order-7.1/approve").status_code == 403
    [line] = told(caplog)
    assert (line["reason"], line["actor"], line["route"]) == (
        "wrong_role",
        "Grace",
        "/api/v1/approvals/{id}/approve",
    )


def test_what_is_answered_leaves_no_line(
    client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    ada = client("viewer")
    for path in (
        "/healthz",
        "/api/v1/executions",
        "/api/v1/executions/nothing",
        "/nothing",
        "/api/v1/executions?limit=x",
    ):
        ada.get(path)
    assert told(caplog) == []


def test_who_asks_too_often_is_told(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PENALTY_S", 0.0)
    app = make_app(flows=(FLOWS,), server_requests_per_second=1)
    made, token = Server(app), app.create_token("Ada", roles=["viewer"])
    made.shares._requests.clock = Clock()
    with serving(made) as base, Client(base, token.secret) as ada:
        assert [ada.get("/api/v1/executions").status_code for _ in range(4)] == [200, 200, 429, 429]
    first, again = told(caplog)
    assert (first["reason"], first["claimed_token"]) == ("too_many_requests", token.view.id)
    assert again == {"address": "127.0.0.1", "reason": "too_many_requests", "repeated": 1}, (
        "told when the server stops"
    )


def scope(address: str, method: str = "GET", path: str = "/api/v1/executions") -> dict[str, Any]:
    return {"type": "http", "method": method, "path": path, "client": (address, 1), "headers": []}


def test_one_address_is_told_once_a_minute_for_each_reason_with_how_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    refused = RefusalLog(clock)
    for _ in range(500):
        for reason in ("token_missing", "token_invalid"):
            refused.note(scope("203.0.113.7"), api().router, 401, reason)
    assert [line["reason"] for line in told(caplog)] == ["token_missing", "token_invalid"]
    clock.now += refusals.WINDOW_S
    refused.note(scope("203.0.113.9"), api().router, 401, "token_missing")
    assert [
        (line["address"], line["reason"], line.get("repeated")) for line in told(caplog)[2:]
    ] == [
        ("203.0.113.7", "token_missing", 499),
        ("203.0.113.7", "token_invalid", 499),
        ("203.0.113.9", "token_missing", None),
    ]


def test_of_many_addresses_no_more_is_told_than_somebody_can_read_and_no_more_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    refused = RefusalLog(clock)
    for n in range(5000):
        refused.note(scope(f"10.{n // 256}.{n % 256}.1"), api().router, 401, "token_missing")
        assert len(refused._seen) <= refusals.KNOWN_REFUSALS
    assert len(told(caplog)) == LINES_AT_ONCE
    clock.now += 1
    refused.note(scope("203.0.113.7"), api().router, 401, "token_missing")
    assert told(caplog)[-1]["untold"] == 5000 - LINES_AT_ONCE


def test_a_line_obeys_nobody(caplog: pytest.LogCaptureFixture) -> None:
    asker: Any = type(
        "Asker",
        (),
        {
            "actor": type(
                "Actor", (), {"name": "e\x1b[2J\x9b\u202eve\nERROR all is lost", "token": "t"}
            )
        },
    )
    evil = {**scope("a\nb", "GE\rT", "/nothing\n"), "rhythm.asker": asker}
    RefusalLog().note(evil, api().router, 403, "permission_missing")
    (record,) = caplog.records
    for line in (
        TextFormatter().format(record),
        JsonFormatter().format(record),
        record.getMessage(),
    ):
        assert line.isprintable(), line
