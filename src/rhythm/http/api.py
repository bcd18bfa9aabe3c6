"""From the table of routes to the application of FastAPI that serves them, and to the OpenAPI document.

It is built once for each process and knows no `Rhythm`: a request brings its own along.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import cache
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rhythm import __version__
from rhythm.errors import RhythmError
from rhythm.http.answers import answer
from rhythm.http.bodies import Body, must_be_json
from rhythm.http.guard import Asker
from rhythm.http.problems import KIND, told
from rhythm.http.routes import ROUTES, V1, Route
from rhythm.http.schemas import Problem

TABLE = {(route.method, route.path): route for route in ROUTES}
ABOUT = """Executions of workflows: start them, look at them, act on them.

Every request needs a token (`Authorization: Bearer …`), and the token a role that has the permission named below. What goes wrong is
told as `application/problem+json` with a `code` that stays as it is. Lists come in pages: give the `cursor` of one to get the next."""


class Guarded(APIRoute):
    """A route that asks for its permission before it reads a body. Without a line in the table it cannot be made."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle, reads = super().get_route_handler(), self.body_field is not None
        route = TABLE[next(iter(self.methods or ())), self.path]

        async def guarded(request: Request) -> Response:
            if route.permission is not None:
                asker: Asker = request.scope["rhythm.asker"]
                asker.must(route.permission)
            if reads:
                must_be_json(request, route.kinds)
            return await handle(Body(request.scope, request.receive))

        return guarded


@cache
def api() -> FastAPI:
    """All routes."""
    made = FastAPI(
        title="Rhythm", version=__version__, description=ABOUT, openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False,
        generate_unique_id_function=_operation,
    )  # fmt: skip
    for route in ROUTES:
        made.router.add_api_route(route.path, route.endpoint, methods=[route.method], route_class_override=Guarded, **_described(route))
    made.add_route(f"{V1}/openapi.json", _openapi, include_in_schema=False)
    for kind in (RhythmError, ValueError, HTTPException, RequestValidationError, Exception):
        made.add_exception_handler(kind, told)
    return made


async def _openapi(request: Request) -> Response:
    return answer(document())


def _operation(route: APIRoute) -> str:
    """Such as `executions_start`: the module and the function."""
    return f"{route.endpoint.__module__.rpartition('.')[2]}_{route.endpoint.__name__}"


def _described(route: Route) -> dict[str, Any]:
    """What the OpenAPI document says of a route."""
    answers: dict[int | str, dict[str, Any]] = {}
    for status, form in route.answers.items():
        answers[status] = {"content": {form: {"schema": {"type": "string"}}}} if isinstance(form, str) else {"model": form} if form else {}
        answers[status]["description"] = HTTPStatus(status).phrase
    guarded = () if route.permission is None else (401, 403, 500, 503)
    for status in sorted({*guarded, *route.problems} - answers.keys()):
        schema = {"$ref": "#/components/schemas/Problem"}
        answers[status] = {"description": HTTPStatus(status).phrase, "content": {KIND: {"schema": schema}}}
    first, part = next(iter(route.answers)), route.path.removeprefix(f"{V1}/").strip("/").partition("/")[0]
    return {"status_code": first, "responses": answers, "response_class": Response, "tags": [part], "description": _about(route)}


def _about(route: Route) -> str:
    said = str(route.endpoint.__doc__)
    return f"{said}\n\nNeeds the permission `{route.permission}`." if route.permission else f"{said}\n\nPublic."


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document."""
    made = api().openapi()
    schemas = made["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own form of problems, which is not ours
        schemas.pop(name, None)
    schemas["Problem"] = Problem.model_json_schema()
    made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for route in ROUTES:
        operation = made["paths"][route.path.replace(":path}", "}")][route.method.lower()]
        operation["security"] = [{"token": []}] if route.permission else []
        if 422 not in route.problems:
            operation["responses"].pop("422", None)
    return dict(made)
