"""Who is let in: every route for every role, and whatever else somebody may try."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from rhythm.app import Rhythm
from rhythm.app.tokens import TokenView
from rhythm.errors import Unavailable
from rhythm.http import Server, server
from rhythm.http.guard import PUBLIC, host_of
from rhythm.http.routes import ROUTES
from rhythm.permissions import PERMISSIONS, ROLES
from tests.app.conftest import MakeApp
from tests.http.conftest import FLOWS, Client, MakeClient, until
from tests.http.scoped import ALL, World, ask, refused
from tests.support.serving import serving
from tests.support.stores import rows

MATRIX = Path(__file__).parent / "matrix.txt"
WHO = ("nobody", "garbage", "expired", "revoked", *ROLES)
TOO_MANY = ("too_many_requests", "too_many_failures")


def table() -> dict[str, dict[str, str]]:
    """What is checked in: for each route, how each who is answered. `in` is past the guard,
    whatever comes then."""
    head, *lines = [
        line.split()
        for line in MATRIX.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    return {
        f"{method} {path}": dict(zip(head[2:], verdicts, strict=True))
        for method, path, *verdicts in lines
    }


@pytest.fixture
def secrets(app: Rhythm) -> dict[str, str | None]:
    made: dict[str, str | None] = {
        role: app.create_token(role, roles=[role]).secret for role in ROLES
    }
    expired, revoked = (
        app.create_token("old", roles=ROLES, expires="1h"),
        app.create_token("gone", roles=ROLES),
    )
    rows(app.store, "UPDATE api_tokens SET expires_at = 1 WHERE id = ?", [expired.view.id])
    app.revoke_token(revoked.view.id)
    garbage = made["admin"][:-1] + ("0" if made["admin"][-1] != "0" else "1")  # type: ignore[index]
    return {
        "nobody": None,
        "garbage": garbage,
        "expired": expired.secret,
        "revoked": revoked.secret,
        **made,
    }


def verdict(answer: httpx.Response) -> str:
    refused = answer.status_code in (401, 403, 429) and answer.json()["code"] in (
        "token_missing",
        "token_invalid",
        "permission_missing",
        *TOO_MANY,
    )
    return str(answer.status_code) if refused else "in"


class Frozen:
    """A clock that stands still: what is used up stays so."""

    def __call__(self) -> float:
        return 0.0


def test_every_route_lets_in_whom_the_table_says(
    make_app: MakeApp, secrets: dict[str, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PENALTY_S", 0.0)
    app = make_app(flows=(FLOWS,), server_failures_per_minute=100_000)
    hasty, made, expected, found = (
        app.create_token("hasty", roles=ROLES),
        Server(app),
        table(),
        dict[str, dict[str, str]](),
    )
    made.shares._requests.clock = Frozen()
    while not made.shares._requests.take(hasty.view.id):
        pass
    with serving(made) as base, ExitStack() as stack:
        clients = {
            who: stack.enter_context(Client(base, secret))
            for who, secret in {**secrets, "hasty": hasty.secret}.items()
        }
        for route in ROUTES:
            path = (
                route.path.replace("{id}", "nothing")
                .replace("{name}", "nothing")
                .replace("{name:path}", "nothing")
            )
            body = {} if route.method != "GET" else None
            answers = {
                who: client.request(route.method, path, json=body)
                for who, client in clients.items()
            }
            with monkeypatch.context() as patch:
                patch.setattr(made.shares._failures, "left", lambda who: 0.0)
                answers["failing"] = clients["garbage"].request(route.method, path, json=body)
            assert not [answer.text for answer in answers.values() if answer.status_code >= 500]
            assert all(
                "Retry-After" in answer.headers
                for answer in answers.values()
                if answer.status_code == 429
            )
            # ask too often; come from where too many have no token
            hasty = {verdict(answers.pop(who)) for who in ("hasty", "failing")}
            assert hasty == ({"429"} if route.permission else {"in"}), route
            found[f"{route.method} {route.path.replace(':path', '')}"] = {
                who: verdict(answer) for who, answer in answers.items()
            }
    assert found == {
        route: {who: verdicts[who] for who in WHO} for route, verdicts in expected.items()
    }, "a route and its line differ"


def test_every_route_is_about_what_the_table_says(app: Rhythm, client: MakeClient) -> None:
    """Whoever has every role that can be limited, for `order*`: asked about an order, and about a
    payment."""
    world, found = World(app), dict[str, dict[str, str]]()
    somebody = client(*(f"{role}:order*" for role in ALL), business=("finance",))
    things = {"own": world.things["order"], "other's": world.things["payment"]}
    for route in ROUTES:
        for thing in things.values():
            world.mend(thing)
        answers = {
            whose: ask(somebody, route, world.path(route, thing), world.body(route, thing))
            for whose, thing in things.items()
        }
        found[f"{route.method} {route.path.replace(':path', '')}"] = {
            whose: refused(answer) for whose, answer in answers.items()
        }
    assert found == {
        route: {whose: verdicts[whose] for whose in things} for route, verdicts in table().items()
    }


def test_public_is_what_the_list_says_and_nothing_else() -> None:
    public = {(route.method, route.path) for route in ROUTES if route.permission is None}
    assert public | {("GET", "/api/v1/openapi.json")} == PUBLIC
    assert {route.permission for route in ROUTES} - {None} <= PERMISSIONS.keys()


TRICKS = [
    "/api/v1/executions/healthz", "/api/v1/executions/health", "/api/v1/executions/readyz",
    "/api/v1/executions/x%2Fhealthz",
    "/healthz/", "/healthz/..%2fapi/v1/executions", "/healthz;x", "/healthz%00", "/HEALTHZ",
    "//healthz", "/healthz//", "/healthz.",
    "/api/v1/executions?x=/healthz", "/api/v1//executions", "/api/v1/../../healthz/",
    "/metrics/healthz", "/api/v1/openapi.json/",
    "/api/v1/executions/openapi.json", "/nothing", "/api/v2/executions", "/docs", "/redoc",
    "/openapi.json", "/",
]  # fmt: skip


def test_what_only_looks_public_needs_a_token(base: str) -> None:
    with httpx.Client() as nobody:
        for path in TRICKS:
            answer = nobody.send(
                httpx.Request("GET", httpx.URL(base).copy_with(raw_path=path.encode()))
            )
            assert (answer.status_code, answer.json()["code"]) == (401, "token_missing"), path
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        for method in ("HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
            assert nobody.request(method, f"{base}/healthz").status_code == 401, method


def test_no_header_but_a_token_lets_in(base: str) -> None:
    for given in (
        "",
        "Bearer",
        "Basic Zm9v",
        "Bearer nothing",
        "Bearer rhy_",
        "token x",
        "Bearer \u00e9",
    ):
        answer = httpx.get(f"{base}/api/v1/executions", headers={"Authorization": given.encode()})
        assert (answer.status_code, answer.json()["code"]) == (401, "token_invalid"), given


def test_a_token_in_the_url_is_not_looked_at(app: Rhythm, base: str) -> None:
    secret = app.create_token("Ada", roles=["admin"]).secret
    assert (
        httpx.get(
            f"{base}/api/v1/executions", params={"token": secret, "access_token": secret}
        ).status_code
        == 401
    )


def test_a_revoked_token_is_refused_from_the_next_request_on(app: Rhythm, base: str) -> None:
    made = app.create_token("Ada", roles=["viewer"])
    with Client(base, made.secret) as ada:
        assert ada.get("/api/v1/executions").status_code == 200
        app.revoke_token(made.view.id)
        assert ada.get("/api/v1/executions").status_code == 401


def test_a_body_is_not_read_for_those_who_may_not(client: MakeClient) -> None:
    answer = client("viewer").post(
        "/api/v1/executions", content=b"{", headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_missing")


def test_who_acts_is_the_owner_of_the_token_whatever_the_body_says(
    app: Rhythm, admin: Client
) -> None:
    answer = admin.post("/api/v1/queues/mail/pause", json={"reason": "x", "by": "Eve"})
    assert answer.status_code == 422
    admin.post("/api/v1/queues/mail/pause")
    (row,) = app.audit(action="queue.pause").items
    assert (row.actor, row.source) == ("Root", "127.0.0.1")
    assert row.token is not None


def test_every_answer_has_the_headers_of_safety_and_none_opens_it_to_other_sites(
    base: str, admin: Client
) -> None:
    origin = {"Origin": "https://evil.example"}
    for answer in (
        admin.get("/healthz"),
        admin.get("/api/v1/executions", headers=origin),
        httpx.get(f"{base}/x"),
        admin.get("/nothing"),
    ):
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "no-store"
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
    wanted = {**origin, "Access-Control-Request-Method": "POST"}
    assert httpx.options(f"{base}/api/v1/executions", headers=wanted).status_code == 401


def test_pages_of_other_sites_change_nothing(admin: Client) -> None:
    answer = admin.post("/api/v1/queues/mail/pause", headers={"Origin": "https://evil.example"})
    assert (answer.status_code, answer.json()["code"]) == (403, "cross_origin")
    here = str(admin.base_url).rstrip("/")
    assert admin.post("/api/v1/queues/mail/pause", headers={"Origin": here}).status_code == 200


@pytest.fixture
def open_base(app: Rhythm) -> Iterator[str]:
    with serving(Server(app, tokens=False)) as base:
        yield base


def test_an_open_server_takes_whoever_asks_for_its_own_user_and_still_refuses_wrong_tokens(
    app: Rhythm, open_base: str
) -> None:
    with Client(open_base) as me, Client(open_base, "garbage") as other:
        assert me.post("/api/v1/queues/mail/pause").status_code == 200
        assert other.post("/api/v1/queues/mail/resume").status_code == 401
    (row,) = app.audit(action="queue.pause").items
    assert (row.token, row.source) == (None, "127.0.0.1")


@pytest.fixture
def local_base(app: Rhythm) -> Iterator[str]:
    """Of a server that is open because there is no token yet."""
    with serving(Server(app, tokens=None)) as base:
        yield base


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost", "localhost"), ("LocalHost:80", "localhost"), ("127.0.0.1:8000", "127.0.0.1"),
        ("[::1]", "::1"), ("[::1]:80", "::1"),
        ("[::1].evil.com", None), ("[::1]:80.evil.com", None), ("[::1", None), ("[::1]x:80", None),
        ("[]", None), ("::1", None),
        ("localhost:80@evil.example", None), ("evil@localhost", None), ("localhost:", None),
        ("localhost:80:80", None),
        ("localhost:123456", None), ("localhost ", None), ("localhost\t", None),
        ("localhost/", None), ("localhost,evil", None),
        ("", None), ("localhost\n", None), ("localhost.", "localhost."),
        ("127.0.0.1.evil.example", "127.0.0.1.evil.example"),
    ],
)  # fmt: skip
def test_a_host_is_a_name_and_a_port_and_nothing_around(host: str, name: str | None) -> None:
    assert host_of([host]) == name


def test_a_host_that_is_not_given_once_is_none() -> None:
    assert host_of([]) is host_of(["localhost", "localhost"]) is None


def test_a_server_without_tokens_answers_to_the_names_of_this_machine_only(local_base: str) -> None:
    port = local_base.rpartition(":")[2]
    for host, status in {
        f"localhost:{port}": 200,
        f"[::1]:{port}": 200,
        f"evil.example:{port}": 403,
        "127.0.0.1.evil.example": 403,
        "[::1].evil.com": 403,
        "localhost:80@evil.example": 403,
        "": 403,
    }.items():
        assert (
            httpx.get(f"{local_base}/api/v1/executions", headers={"Host": host}).status_code
            == status
        ), host


def test_pages_of_other_sites_do_not_even_look_at_a_server_without_tokens(local_base: str) -> None:
    for site, status in {
        "cross-site": 403,
        "same-site": 403,
        "same-origin": 200,
        "none": 200,
    }.items():
        answer = httpx.get(f"{local_base}/api/v1/executions", headers={"Sec-Fetch-Site": site})
        assert answer.status_code == status, site


def test_whoever_leaves_it_to_their_own_application_who_comes_in_decides_from_where(
    open_base: str,
) -> None:
    for headers in (
        {"Host": "rhythm.example"},
        {"X-Forwarded-For": "203.0.113.7"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        assert httpx.get(f"{open_base}/api/v1/executions", headers=headers).status_code == 200
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
    ):
        answer = httpx.post(f"{open_base}/api/v1/queues/mail/pause", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "cross_origin")


def test_a_body_with_two_lengths_is_no_way_to_send_another_request(
    base: str, client: MakeClient
) -> None:
    host, port = base.removeprefix("http://").split(":")
    token = client("operator").headers["Authorization"]
    head = (
        f"POST /api/v1/events HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: "
        f"{token}\r\nContent-Type: application/json\r\n"
    )
    body = (
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz "
        "HTTP/1.1\r\nHost: x\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), 20) as sent:
        sent.sendall((head + body).encode())
        answer = b"".join(iter(lambda: sent.recv(4096), b""))  # until it is closed
    assert answer.startswith(b"HTTP/1.1 400")
    assert (b"body_ambiguous" in answer, b'"ok"' in answer) == (True, False)


def test_a_server_without_tokens_takes_nothing_from_a_proxy(local_base: str) -> None:
    for header in (
        "Forwarded",
        "X-Forwarded-For",
        "X-Forwarded-Proto",
        "X-Real-IP",
        "Via",
        "CF-Connecting-IP",
        "True-Client-IP",
    ):
        answer = httpx.get(f"{local_base}/api/v1/executions", headers={header: "203.0.113.7"})
        assert (answer.status_code, answer.json()["code"]) == (403, "wrong_host"), header


def test_a_server_is_open_only_as_long_as_there_was_never_a_token(app: Rhythm) -> None:
    with serving(Server(app, tokens=None)) as base, Client(base) as anyone:
        assert anyone.get("/api/v1/executions").status_code == 200
        made = app.create_token("Ada", roles=["viewer"])
        assert anyone.get("/api/v1/executions").status_code == 401
        app.revoke_token(made.view.id)
        assert anyone.get("/api/v1/executions").status_code == 401
    with serving(Server(app, tokens=None)) as base:
        assert httpx.get(f"{base}/api/v1/executions").status_code == 401


def test_an_execution_is_replaced_only_by_those_who_may_cancel_it(
    app: Rhythm, client: MakeClient
) -> None:
    start = {"workflow": "wait", "on_conflict": "replace"}
    for role, status in {"author": 403, "operator": 201}.items():
        answer = client(role).post(
            "/api/v1/executions", json=start, headers={"Idempotency-Key": "k"}
        )
        assert answer.status_code == status, answer.text
    assert len(app.list().items) == 1
    client("operator", name="Otto").post(
        "/api/v1/executions", json=start, headers={"Idempotency-Key": "k"}
    )
    assert app.audit(action="execution.cancel").items == (), "his key is another one"
    client("operator", name="ada").post(
        "/api/v1/executions", json=start, headers={"Idempotency-Key": "k"}
    )
    assert [(act.actor, act.object) for act in app.audit(action="execution.cancel")] == [
        ("ada", app.list().items[2].id)
    ]


OWN = """
@on("paid")
workflow triggered(inputs) {
  return inputs
}
workflow asks() {
  return await approval({ role: "finance", reason: "why", notify: "tell" })
}
"""


def test_nobody_is_there_before_what_an_event_starts(app: Rhythm, client: MakeClient) -> None:
    app.register(OWN)
    otto = client("operator", name="Otto")
    for key in ("event:payment-1", "schedule:s@2027-01-15T08:00:00Z"):
        forged = otto.post(
            "/api/v1/executions",
            json={"workflow": "triggered", "inputs": 0},
            headers={"Idempotency-Key": key},
        )
        assert forged.status_code == 201, "it is a key of his own"
    otto.post("/api/v1/events", json={"type": "paid", "id": "payment-1", "data": 1})
    assert [execution.inputs for execution in app.list()] == [1, 0, 0]


def test_nobody_is_there_before_the_task_that_tells_of_an_approval(
    app: Rhythm, client: MakeClient
) -> None:
    app.register(OWN)
    otto = client("operator", name="Otto")
    for id in ("order-1-1-requested-0", "order-1.1.requested.0", "order-1 1 requested 0"):
        otto.post("/api/v1/executions", json={"workflow": "wait", "id": id})
    otto.post("/api/v1/executions", json={"workflow": "asks", "id": "order-1"})
    with app.worker():
        until(lambda: app.approvals().items)
    assert "tell" in [execution.name for execution in app.list()]


def test_whoever_registers_a_workflow_is_on_record_once_for_each_version(
    app: Rhythm, client: MakeClient
) -> None:
    author = client("author", name="Arthur")
    for source in (
        "workflow a() {\n  return 1\n}",
        "workflow a() {\n  return 1\n}",
        "workflow a() {\n  return 2\n}",
    ):
        assert author.post("/api/v1/workflows", json={"source": source}).status_code == 201
    acts = app.audit(action="workflow.register").items
    assert [(act.actor, act.object) for act in acts] == [("Arthur", "a"), ("Arthur", "a")]
    assert acts[0].detail["version"] == app.workflows()[0].version != acts[1].detail["version"]


def test_a_path_adds_no_line_to_the_log(
    base: str, admin: Client, app: Rhythm, caplog: pytest.LogCaptureFixture
) -> None:
    def silent(secrets: Sequence[str]) -> list[TokenView | None]:
        raise Unavailable("the database does not answer")

    app.tokens.authenticate_all = silent  # type: ignore[method-assign]
    assert admin.get("/api/v1/x%0aERROR:all is lost").status_code == 503
    assert not [record for record in caplog.records if "\n" in record.getMessage()]


def test_no_secret_is_told_or_logged(
    app: Rhythm, base: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    secret = app.create_token("Ada", roles=["admin"]).secret
    with Client(base, secret) as ada, Client(base, secret + "x") as wrong:
        texts = [
            ada.get("/api/v1/audit").text,
            ada.get("/metrics").text,
            wrong.get("/api/v1/audit").text,
            json.dumps(ada.get("/nothing").json()),
        ]
    assert not [text for text in (*texts, caplog.text) if secret[17:] in text]
