"""A token that is revoked, or loses a role, after the guard has let its owner in, does nothing: not
by a body that comes late, either."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import pytest

from rhythm.app import Rhythm
from rhythm.app.tokens import TokenView
from rhythm.http.routes import ROUTES
from tests.http.conftest import Client, until
from tests.store.test_acting import contents
from tests.support.stores import rows

FLOWS = """
workflow asks() { return await approval({ role: "finance", reason: "why", escalate: { role: "board" } }) }
"""
ALL = {"all": True}
# what would be done, by route: the name of what it is done to, and the body
CASES: dict[str, Any] = {
    "POST /api/v1/workflows": ("", {"source": "workflow new() { return 1 }"}),
    "POST /api/v1/executions": ("", {"workflow": "wait"}),
    "POST /api/v1/executions/{id}/pause": ("live", {}),
    "POST /api/v1/executions/{id}/resume": ("held", {}),
    "POST /api/v1/executions/{id}/cancel": ("live", None),
    "POST /api/v1/executions/{id}/terminate": ("live", None),
    "POST /api/v1/executions/{id}/retry": ("over", {}),
    "POST /api/v1/executions/{id}/signals": ("live", {"name": "go"}),
    "POST /api/v1/executions/pause": ("", ALL),
    "POST /api/v1/executions/resume": ("", ALL),
    "POST /api/v1/executions/cancel": ("", ALL),
    "POST /api/v1/executions/terminate": ("", ALL),
    "POST /api/v1/executions/retry": ("", ALL),
    "POST /api/v1/approvals/{id}/approve": ("asks.1", {}),
    "POST /api/v1/approvals/{id}/reject": ("asks.1", {}),
    "POST /api/v1/approvals/{id}/escalate": ("asks.1", {}),
    "POST /api/v1/events": ("", {"type": "paid"}),
    "POST /api/v1/queues/{name:path}/pause": ("mail", {}),
    "POST /api/v1/queues/{name:path}/resume": ("stopped", None),
    "POST /api/v1/schedules": ("", {"name": "new", "workflow": "wait", "every": "1h"}),
    "PATCH /api/v1/schedules/{name:path}": ("daily", {"every": "2h"}),
    "DELETE /api/v1/schedules/{name:path}": ("daily", None),
    "POST /api/v1/schedules/{name:path}/pause": ("daily", {}),
    "POST /api/v1/schedules/{name:path}/resume": ("stopped", None),
    "POST /api/v1/schedules/{name:path}/run": ("daily", None),
}
ROLES = ("admin",)


def test_every_route_that_acts_has_a_case() -> None:
    assert CASES.keys() == {
        f"{route.method} {route.path}" for route in ROUTES if route.method != "GET"
    }


@pytest.fixture
def prepared(app: Rhythm) -> Rhythm:
    """With something for every case."""
    app.register(FLOWS)
    with app.worker():
        for id, name in (("live", "wait"), ("held", "wait"), ("over", "wait"), ("asks", "asks")):
            app.start_workflow(name, id=id, by="starter")
        until(
            lambda: (
                app.approvals().items
                and all(app.get(id).status == "suspended" for id in ("live", "held", "over"))
            )
        )
    app.pause("held")
    app.terminate("over")
    app.pause_queue("stopped")
    for name in ("daily", "stopped"):
        app.schedule(name, "wait", every="1d")
    app.pause_schedule("stopped")
    return app


def revoked(app: Rhythm, token: TokenView) -> None:
    app.revoke_token(token.id)


def expired(app: Rhythm, token: TokenView) -> None:
    rows(app.store, "UPDATE api_tokens SET expires_at = created_at WHERE id = ?", [token.id])


def robbed(app: Rhythm, token: TokenView) -> None:
    app.change_token(token.id, roles=["viewer"])


HOW: dict[Callable[[Rhythm, TokenView], None], tuple[int, str]] = {
    revoked: (401, "token_revoked"),
    expired: (401, "token_revoked"),
    robbed: (403, "permission_missing"),
}


def once_let_in(app: Rhythm, then: Callable[[TokenView], object]) -> None:
    """What happens right after the guard has found a token valid."""
    authenticate = app.tokens.authenticate_all

    def found(secrets: Sequence[str]) -> list[TokenView | None]:
        tokens = authenticate(secrets)
        for token in filter(None, tokens):
            then(token)
        return tokens

    app.tokens.authenticate_all = found  # type: ignore[method-assign]  # for the guard


def done(app: Rhythm) -> Any:
    """All that is stored, but for tokens and what is told of them."""
    stored = contents(app.store)
    return {
        **stored,
        "audit": [row for row in stored["audit"] if "'token." not in row],
        "audit_head": None,
    }


@pytest.mark.parametrize("how", HOW)
def test_nothing_is_done_once_the_token_does_not_allow_it(
    prepared: Rhythm, base: str, how: Callable[[Rhythm, TokenView], None]
) -> None:
    app, found = prepared, dict[str, tuple[int, str]]()
    once_let_in(app, lambda token: how(app, token))
    before = done(app)
    for case, (name, body) in CASES.items():
        method, path = case.replace("{id}", name).replace("{name:path}", name).split()
        with Client(
            base, app.create_token("Ann", roles=ROLES, business_roles=["finance"]).secret
        ) as ann:
            answer = ann.request(method, path, json=body)
        found[case] = (answer.status_code, answer.json().get("code", ""))
        assert (answer.status_code != 401) or answer.headers["WWW-Authenticate"].startswith(
            "Bearer"
        )
    assert found == {
        case: (403, "role_revoked") if "/approvals/" in case else HOW[how] for case in CASES
    }
    assert done(app) == before


def test_an_execution_is_replaced_only_while_that_is_allowed(app: Rhythm, base: str) -> None:
    app.start_workflow("wait", id="first", idempotency_key="k")
    once_let_in(app, lambda token: app.change_token(token.id, roles=["author"]))
    with Client(base, app.create_token("Ann", roles=["operator"]).secret) as ann:
        answer = ann.post(
            "/api/v1/executions",
            json={"workflow": "wait", "on_conflict": "replace"},
            headers={"Idempotency-Key": "k"},
        )
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_missing")
    assert [execution.id for execution in app.list()] == ["first"]


def test_a_body_that_comes_after_the_revocation_does_nothing(app: Rhythm, base: str) -> None:
    made, let_in = app.create_token("Ann", roles=["operator"]), threading.Event()
    once_let_in(app, lambda token: let_in.set())
    host, port = base.removeprefix("http://").split(":")
    body = json.dumps({"workflow": "wait"}).encode()
    head = (
        f"POST /api/v1/executions HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: "
        f"Bearer {made.secret}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: "
        f"close\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), 20) as sent:
        sent.sendall(head.encode())
        assert let_in.wait(20)
        app.revoke_token(made.view.id)
        sent.sendall(body)
        answer = b"".join(iter(lambda: sent.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 401"), answer
    assert (b'"code":"token_revoked"' in answer, app.list().items) == (True, ())


def test_of_many_that_are_meant_those_stay_whose_turn_comes_after_the_revocation(
    app: Rhythm, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rhythm.app import bulk

    monkeypatch.setattr(bulk, "AT_ONCE", 2)
    ids = [app.start_workflow("wait", id=f"w{i}").id for i in range(5)]
    made, cancel = app.create_token("Ann", roles=["operator"]), app.store.executions.cancel

    def then_revoked(*args: Any) -> Any:
        answer = cancel(*args)
        app.revoke_token(made.view.id)
        return answer

    app.store.executions.cancel = then_revoked  # type: ignore[method-assign]
    with Client(base, made.secret) as ann:
        answer = ann.post("/api/v1/executions/cancel", json=ALL)
    assert (answer.status_code, answer.json()["code"]) == (401, "token_revoked")
    assert sorted(act.object for act in app.audit(action="execution.cancel")) == ids[:2]


def test_whoever_is_let_in_acts_as_ever(prepared: Rhythm, base: str) -> None:
    with Client(
        base, prepared.create_token("Ann", roles=ROLES, business_roles=["finance"]).secret
    ) as ann:
        answers: list[httpx.Response] = []
        for case, (name, body) in CASES.items():
            method, path = case.replace("{id}", name).replace("{name:path}", name).split()
            answers.append(ann.request(method, path, json=body))
    assert {answer.status_code for answer in answers} <= {200, 201, 204, 404, 409}
