"""What is sent is limited and checked before anything is done with it; what is wrong is told as a
problem."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest

from rhythm import errors
from rhythm.app import Rhythm
from rhythm.http import bodies, problems
from tests.http.conftest import Client

JSON = {"Content-Type": "application/json"}


def test_a_body_that_is_too_large_is_refused_before_it_is_read(base: str, admin: Client) -> None:
    """Only the head of the request is sent."""
    place = urlsplit(base)
    with socket.create_connection((place.hostname, place.port), 20) as raw:
        token = admin.headers["Authorization"]
        head = (
            f"POST /api/v1/executions HTTP/1.1\r\nHost: x\r\nAuthorization: "
            f"{token}\r\nContent-Type: application/json\r\n"
        )
        raw.sendall(f"{head}Content-Length: {bodies.MAX_BODY_BYTES + 1}\r\n\r\n".encode())
        assert b" 413 " in raw.recv(10_000)


def test_a_body_of_unknown_length_is_cut_off_at_the_limit(admin: Client) -> None:
    chunks = (b"x" * 65536 for _ in range(bodies.MAX_BODY_BYTES // 65536 + 2))
    answer = admin.post("/api/v1/executions", content=chunks, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_the_largest_inputs_fit(admin: Client) -> None:
    assert admin.start("wait", "x" * (1024 * 1024 - 2))
    over = admin.post(
        "/api/v1/executions", json={"workflow": "wait", "inputs": "x" * (1024 * 1024 - 1)}
    )
    assert (over.status_code, over.json()["code"]) == (422, "invalid_payload")


def test_a_body_that_does_not_come_is_not_waited_for(
    base: str, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "READ_S", 0.05)
    place = urlsplit(base)
    with socket.create_connection((place.hostname, place.port), 20) as raw:
        token = admin.headers["Authorization"]
        head = (
            f"POST /api/v1/executions HTTP/1.1\r\nHost: x\r\nAuthorization: "
            f"{token}\r\nContent-Type: application/json\r\n"
        )
        raw.sendall(f"{head}Content-Length: 5\r\n\r\n".encode())
        assert b" 408 " in raw.recv(10_000)


WRONG = {
    b"": "invalid_request", b"{": "invalid_payload", b"[]": "invalid_request",
    b"null": "invalid_request", b"\xff": "invalid_payload",
    b'{"workflow": "wait", "inputs": NaN}': "invalid_payload",
    b'{"workflow": "wait", "workflow": "add"}': "invalid_payload",
    b'{"workflow": "wait", "inputs": 99999999999999999999999}': "invalid_payload",
    b'{"workflow": "wait", "inputs": "\\u0000"}': "invalid_payload",
    b'{"workflow": "wait", "inputs": ' + b"[" * 5000 + b"]" * 5000 + b"}": "invalid_payload",
    b'{"workflow": 7}': "invalid_request",
    b'{"workflow": "wait", "priority": "1"}': "invalid_request",
    b'{"workflow": "wait", "unknown": 1}': "invalid_request",
    b'{"workflow": "wait", "id": "a/b"}': "invalid_id",
    b'{"workflow": "wait", "delay": "soon"}': "invalid_request",
    b'{"workflow": "wait", "queue": "\\n"}': "invalid_request",
}  # fmt: skip


def test_what_cannot_be_is_refused_with_its_code(admin: Client) -> None:
    for body, code in WRONG.items():
        answer = admin.post("/api/v1/executions", content=body, headers=JSON)
        assert (answer.status_code, answer.json()["code"]) == (422, code), body[:80]
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json().keys() >= {"type", "title", "status", "code", "detail"}


def test_a_refusal_does_not_repeat_a_key_of_any_length(admin: Client) -> None:
    for key in ("k" * 100_000, "\x80" * 100_000):
        answer = admin.post(
            "/api/v1/executions", json={"workflow": "wait", key: 1, "attributes": {key: 1}}
        )
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
        assert len(answer.content) < 2000
        assert key[:80] + "…" in answer.json()["problems"][0]["at"]


def test_only_json_is_taken(admin: Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = admin.post(
            "/api/v1/executions",
            content=b'{"workflow": "wait"}',
            headers={"Content-Type": kind} if kind else None,
        )
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type"), kind


def test_what_does_not_exist_is_a_problem_with_what_may_have_been_meant(admin: Client) -> None:
    answer = admin.post("/api/v1/executions", json={"workflow": "wiat"})
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_workflow")
    assert "did you mean `wait`?" in answer.json()["detail"]
    assert admin.get("/api/v1/executions/nothing").json()["code"] == "unknown_execution"
    assert admin.get("/api/v1/nothing").json()["code"] == "no_such_path"
    assert admin.delete("/api/v1/executions").json()["code"] == "method_not_allowed"


def test_an_id_that_is_taken_is_a_conflict_that_names_it(admin: Client) -> None:
    body = {"workflow": "wait", "id": "mine", "on_conflict": "fail"}
    assert admin.post("/api/v1/executions", json=body).status_code == 201
    answer = admin.post("/api/v1/executions", json=body)
    assert (answer.status_code, answer.json()["code"], answer.json()["id"]) == (
        409,
        "conflict",
        "mine",
    )


def test_pages_have_limits_and_cursors_that_are_theirs(admin: Client) -> None:
    for query in (
        "limit=0",
        "limit=1001",
        "limit=x",
        "cursor=x",
        "cursor=%00",
        "status=late",
        "workflow=%0a",
    ):
        answer = admin.get(f"/api/v1/executions?{query}")
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request"), query


def test_what_a_caller_cannot_mend_is_told_without_details(
    app: Rhythm, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **named: object) -> None:
        raise errors.Unavailable("connection to server at 10.1.2.3 failed: password wrong")

    monkeypatch.setattr(app, "queues", refuse)
    answer = admin.get("/api/v1/queues")
    assert (answer.status_code, answer.json()["code"], answer.headers["Retry-After"]) == (
        503,
        "database_unavailable",
        "1",
    )
    assert "10.1.2.3" not in answer.text


def test_every_error_has_a_code_of_its_own() -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.RhythmError)
    ]
    codes = [kind.code for kind in kinds if "code" in vars(kind)]
    assert len(codes) == len(set(codes))
    assert {
        problems.status_of(errors.NotDelivered("", code))
        for code in ("execution_ended", "mailbox_full")
    } == {409, 429}
