"""The short way from a request to its function leads where FastAPI's way leads."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from rhythm.http.acting import PAUSE, PauseExecution, pause
from rhythm.http.api import api
from rhythm.http.approvals import approve, find
from rhythm.http.bodies import CheckedRequest
from rhythm.http.dispatch import by_part, direct
from rhythm.http.requests import Ask, Id, Key
from rhythm.http.routes import ROUTES

PATHS = [
    *(route.path.replace("{id}", "a.1").replace("{name}", "b").replace("{name:path}", "c/d/pause")
        for route in ROUTES),
    "/", "", "/api", "/api/v1", "/api/v1/", "/api/v1/approvals/", "/api/v1/nothing", "//approvals",
    "/api/v1/executions/pause/pause", "/api/v1/openapi.json", "/api/v2/approvals", "/healthz/",
]  # fmt: skip


@pytest.mark.parametrize("mounted", ["", "/below"])
def test_the_route_that_is_found_is_the_one_that_the_router_finds(
    mounted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    router, found = api().router, list[str]()

    async def handled(self: Any, scope: Any, receive: Any, send: Any) -> None:
        found.append(f"{scope['route'].path} {scope['path_params']}")

    async def not_found(scope: Any, receive: Any, send: Any) -> None:
        found.append("the router")

    dispatch = by_part(router)
    for kind in {type(route) for route in router.routes}:
        monkeypatch.setattr(kind, "handle", handled)
    monkeypatch.setattr(router, "app", not_found)
    for path in PATHS:
        for method in ("GET", "POST", "PATCH", "DELETE", "PUT"):
            scope: dict[str, Any] = {
                "type": "http", "method": method, "path": mounted + path, "root_path": mounted,
                "headers": [], "route": None,
            }  # fmt: skip
            expected = next(
                (
                    f"{child.get('route') and child['route'].path} {child['path_params']}"
                    for each in router.routes
                    for match, child in [each.matches(dict(scope))]
                    if match is Match.FULL and "route" in child
                ),
                None,
            )
            del found[:]
            scope.pop("route")
            if path == "/api/v1/openapi.json":
                continue  # no route of the table: it has none to name
            asyncio.run(dispatch(scope, None, None))  # type: ignore[arg-type]
            assert found == [expected or "the router"], (method, path)


def taking(ask: Ask, id: Id, body: PauseExecution = PAUSE, key: Key = None) -> Response:
    return Response(f"{ask} {id} {body!r} {key}")


def answered(body: bytes, **headers: str) -> str:
    """What a function returns that is called itself, or that the general handler was asked."""

    async def general(request: Request) -> Response:
        return Response("general")

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {
        "type": "http", "method": "POST", "path": "/", "query_string": b"",
        "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()],
        "path_params": {"id": "a.1"}, "rhythm.asker": "Ada",
    }  # fmt: skip
    handle = direct(taking, general)
    return bytes(asyncio.run(handle(CheckedRequest(scope, receive))).body).decode()


def test_a_function_is_called_with_what_it_takes() -> None:
    made = PauseExecution(reason="lunch")
    assert answered(b'{"reason": "lunch"}') == f"Ada a.1 {made!r} None"


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b'{"reason": 1}', b'{"nothing": 1}', b'"reason"']
)
def test_whatever_is_not_plain_goes_the_general_way(body: bytes) -> None:
    assert answered(body) == "general"


def test_a_key_is_checked_the_general_way() -> None:
    assert answered(b"{}", idempotency_key="") == "general"


def test_a_function_that_takes_more_is_called_the_general_way() -> None:
    async def general(request: Request) -> Response:
        return Response("general")

    assert direct(find, general) is general, "it takes a limit, and other things of the query"
    for each in (approve, pause):
        assert direct(each, general) is not general
