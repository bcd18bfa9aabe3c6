"""Every text in a body, a path or a query has a limit: over HTTP, too, each one is refused, and
nobody's answer repeats it."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints
from urllib.parse import quote

import pytest

from rhythm.app import Rhythm
from rhythm.http.routes import ROUTES, Route
from rhythm.http.schemas import Body
from rhythm.limits import TEXTS
from tests.http.conftest import Client

LONG = "x" * (TEXTS.known_id + 1)
PLAIN = {
    "workflow": "wait",
    "name": "s",
    "source": "workflow w { }",
    "cron": "0 0 1 1 *",
    "action": "pause",
}
PAYLOADS = {"inputs", "data", "payload", "source"}
STREAMS = "/stream"


def body_of(route: Route) -> type[Body] | None:
    found = [
        hint
        for hint in get_type_hints(route.endpoint).values()
        if isinstance(hint, type) and issubclass(hint, Body)
    ]
    return found[0] if found else None


def texts(body: type[Body]) -> list[str]:
    return [
        name
        for name, field in body.model_fields.items()
        if "str" in str(field.annotation) and name not in PAYLOADS
    ]


BODIES = [
    (route, text)
    for route in ROUTES
    if (body := body_of(route)) is not None
    for text in texts(body)
]


def sent(body: type[Body], text: str) -> dict[str, Any]:
    needed = {name: PLAIN[name] for name, field in body.model_fields.items() if field.is_required()}
    return (
        {**needed, "workflow": "wait", text: LONG}
        if "workflow" in body.model_fields
        else {**needed, text: LONG}
    )


@pytest.fixture
def started(app: Rhythm) -> str:
    app.schedule("s", "wait", cron="0 0 1 1 *")
    return app.start_workflow("wait", id="E").id


def test_every_text_of_a_body_has_a_limit(admin: Client, started: str) -> None:
    assert len(BODIES) > 30
    wrong = []
    for route, text in BODIES:
        body = body_of(route)
        assert body is not None
        path = (
            route.path.replace("{id}", started)
            .replace("{name:path}", "s")
            .replace("{name}", "wait")
        )
        given = sent(body, text)
        if text == "attributes":
            given["attributes"] = {LONG: 1}
        answer = admin.request(route.method, path, json=given)
        if answer.status_code not in (404, 422) or len(answer.content) > 5000:
            wrong.append((route.method, path, text, answer.status_code, len(answer.content)))
    assert wrong == []


def test_every_text_of_a_path_or_query_has_a_limit(admin: Client, started: str) -> None:
    wrong = []
    for route in ROUTES:
        if route.permission is None or route.path.endswith(STREAMS):
            continue
        texts = [
            p.name
            for p in inspect.signature(route.endpoint).parameters.values()
            if "str" in str(p.annotation)
        ]
        queries = [
            name
            for name in (
                "cursor",
                "workflow",
                "status",
                "role",
                "execution",
                "actor",
                "action",
                "object",
            )
            if name in texts
        ]
        body = body_of(route)
        needed = (
            {name: PLAIN[name] for name, field in body.model_fields.items() if field.is_required()}
            if body
            else None
        )
        plain = (
            route.path.replace("{id}", started)
            .replace("{name:path}", "s")
            .replace("{name}", "wait")
        )
        long = route.path.replace("{id}", LONG).replace("{name:path}", LONG).replace("{name}", LONG)
        asked = [(long, {})] if long != plain else []
        for path, query in [*asked, *((plain, {name: LONG}) for name in queries)]:
            answer = admin.request(route.method, quote(path), params=query, json=needed)
            if answer.status_code not in (404, 414, 422) or len(answer.content) > 5000:
                wrong.append(
                    (route.method, path[:60], list(query), answer.status_code, len(answer.content))
                )
    assert wrong == []


def test_a_schedule_that_is_refused_is_not_there_and_lists_go_on(admin: Client) -> None:
    for times in (
        {"at": "9999-12-31T23:59:59-23:59"},
        {"cron": "0-59," * 170_000},
        {"every": 1e300},
        {"at": "0001-01-01T00:00:00+23:59"},
    ):
        answer = admin.post("/api/v1/schedules", json={"name": "bad", "workflow": "wait", **times})
        assert (answer.status_code, len(answer.content) < 1000) == (422, True)
    answer = admin.get("/api/v1/schedules")
    assert (answer.status_code, answer.json()["items"]) == (200, [])
    assert admin.get("/api/v1/schedules/bad").status_code == 404


def test_lists_of_schedules_and_workflows_are_read_page_by_page(admin: Client, app: Rhythm) -> None:
    for n in range(5):
        app.schedule(f"s{n}", "wait", cron="0 0 1 1 *", inputs={"large": "x" * 100_000})
    names, cursor = list[str](), None
    while True:
        page = admin.get(
            "/api/v1/schedules", params={"limit": 2, **({"cursor": cursor} if cursor else {})}
        )
        assert len(page.content) < 5000
        names += [item["name"] for item in page.json()["items"]]
        if (cursor := page.json()["cursor"]) is None:
            break
    assert names == [f"s{n}" for n in range(5)]
    first = admin.get("/api/v1/workflows", params={"limit": 2}).json()
    rest = admin.get("/api/v1/workflows", params={"limit": 2, "cursor": first["cursor"]}).json()
    assert [item["name"] for item in (*first["items"], *rest["items"])] == ["add", "fan", "wait"]
    assert rest["cursor"] is None
