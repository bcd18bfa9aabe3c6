"""Makes the FastAPI application and the OpenAPI document from the table of routes.

The application is built once for each process and does not know a `Rhythm`: each request brings its
own along.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rhythm import __version__
from rhythm.errors import RhythmError, UnknownWorkflow
from rhythm.http.answers import JSON
from rhythm.http.answers import document as as_json
from rhythm.http.bodies import JSON_KINDS, CheckedRequest, must_be_json
from rhythm.http.dispatch import by_part, direct
from rhythm.http.events import NewEvent
from rhythm.http.guard import DOCUMENT, Asker
from rhythm.http.objects import BODY, LIST, check_about, discreet, found
from rhythm.http.parameters import check_of, known_to
from rhythm.http.problems import KIND, problem_response, title
from rhythm.http.routes import ROUTES, V1, Route
from rhythm.http.schemas import Problem
from rhythm.http.sharing import LARGE_BODY, Shares
from rhythm.http.workflow_schemas import with_workflows

TABLE = {(route.method, route.path): route for route in ROUTES}
EVENT = {
    "id": {"type": "string"},
    "event": {"const": "execution"},
    "data": {"type": "string", "contentMediaType": "application/json"},
}
TEXTS: dict[str, dict[str, Any]] = {  # the schemas of answers that are not JSON
    "text/plain": {"type": "string"},
    "text/event-stream": {"type": "object", "properties": EVENT, "required": [*EVENT]},
}
ANY_QUERY = 422  # a query parameter that a route does not know
GUARDED = (401, 403, 429, 500, 503)  # error statuses of every route that is not public
ABOUT = """Start executions of workflows, read them, and act on them.

Every request needs a token (`Authorization: Bearer …`). The token needs a role with the permission
that is named below. An error is an `application/problem+json` document; its `code` never changes,
so that programs can rely on it. Lists come in pages: send the `cursor` of a page to get the next
page."""


class Guarded(APIRoute):
    """A route that checks its permission before it reads a body.

    It also checks the permission for what the path names. It cannot be built without a line in the
    table that says both.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns the handler of the route, with the checks around it."""
        handle, reads = super().get_route_handler(), self.body_field is not None
        handle = direct(self.endpoint, handle)
        route = TABLE[next(iter(self.methods or ())), self.path]
        check_about(route.about, route.permission, route.path)
        check_query = check_of(known_to(self.dependant))

        async def public(request: Request) -> Response:
            check_query(request)
            return await handle(CheckedRequest(request.scope, request.receive))

        async def guarded(request: Request) -> Response:
            given = CheckedRequest(request.scope, request.receive)
            asker = _permitted(route, request)
            check_query(request)
            if reads:
                must_be_json(request, JSON_KINDS)
            shares: Shares = request.scope["rhythm.server"].shares
            if asker.permissions.get(route.permission or "") is not None:
                async with shares.thread(asker.who):
                    asker = await _permitted_for_name(route, request, asker)
            if reads or route.body:
                await given.body()  # a client that sends it slowly must not occupy a thread
            turn = route.turn or (LARGE_BODY if given.is_large else "")
            async with shares.thread(asker.who, turn):
                try:
                    answered = await handle(given)
                except UnknownWorkflow as unknown:
                    raise await run_in_threadpool(discreet, asker, unknown) from None
            if route.about in (LIST, BODY) and route.permission not in asker.asked:
                raise AssertionError(f"{route.path} was answered without asking whom it is for")
            return answered

        return public if route.permission is None else guarded


def _permitted(route: Route, request: Request) -> Asker:
    """Returns the caller, if they have the route's permission for at least some names."""
    assert route.permission is not None
    asker: Asker = request.scope["rhythm.asker"]
    asker.must(route.permission)
    return asker


async def _permitted_for_name(route: Route, request: Request, asker: Asker) -> Asker:
    """Returns the caller, if they have the permission for what the path names.

    It is only called for callers whose role is limited to names.
    """
    assert route.permission is not None
    assert route.about is not None
    try:
        asker = await run_in_threadpool(
            found, asker, route.permission, route.about, request.path_params
        )
    except UnknownWorkflow as unknown:
        raise await run_in_threadpool(discreet, asker, unknown) from None
    request.scope["rhythm.asker"] = asker
    return asker


@cache
def api() -> FastAPI:
    """Returns the application with all routes."""
    made = FastAPI(
        title="Rhythm",
        version=__version__,
        description=ABOUT,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation,
    )
    for route in ROUTES:
        made.router.add_api_route(
            route.path,
            route.endpoint,
            methods=[route.method],
            route_class_override=Guarded,
            **_described(route),
        )
    made.add_route(f"{V1}/openapi.json", _openapi, include_in_schema=False)
    made.router.middleware_stack = by_part(made.router)  # type: ignore[assignment]  # called by position
    for kind in (RhythmError, ValueError, HTTPException, RequestValidationError, Exception):
        made.add_exception_handler(kind, problem_response)
    return made


async def _openapi(request: Request) -> Response:
    asker: Asker | None = request.scope["rhythm.asker"]
    if asker is None:
        return Response(_served(), media_type=JSON)
    async with request.scope["rhythm.server"].shares.thread(asker.who, DOCUMENT):
        made = await run_in_threadpool(with_workflows, document(), asker)
        return Response(await run_in_threadpool(as_json, made), media_type=JSON)


@cache
def _served() -> bytes:
    """Returns the OpenAPI document as it is sent.

    It is cached: it is large, and anybody may ask for it.
    """
    return as_json(document())


def _operation(route: APIRoute) -> str:
    """Returns the operation id of a route: its module and function, such as `executions_start`."""
    return f"{route.endpoint.__module__.rpartition('.')[2]}_{route.endpoint.__name__}"


def _described(route: Route) -> dict[str, Any]:
    """Returns what the OpenAPI document says about a route."""
    answers: dict[int | str, dict[str, Any]] = {}
    for status, form in route.answers.items():
        answers[status] = (
            {"content": {form: {"schema": TEXTS[form]}}}
            if isinstance(form, str)
            else {"model": form}
            if form
            else {}
        )
        answers[status]["description"] = title(status)
    first = next(iter(route.answers))
    part = route.path.removeprefix(f"{V1}/").strip("/").partition("/")[0]
    extra = {"requestBody": route.body} if route.body else None
    summary, description = _about(route)
    return {
        "status_code": first,
        "responses": answers,
        "response_class": Response,
        "tags": [part],
        "summary": summary,
        "description": description,
        "openapi_extra": extra,
    }


def _about(route: Route) -> tuple[str, str]:
    """Returns the summary and the description of a route, from the docstring of its function.

    The first line is the summary. The rest, and the permission, are the description.
    """
    # `getdoc` removes the indentation; Python does so itself only from 3.13 on.
    summary, _, more = str(inspect.getdoc(route.endpoint)).partition("\n")
    needs = f"Needs the permission `{route.permission}`." if route.permission else "Public."
    return summary.rstrip("."), f"{more.strip()}\n\n{needs}".strip()


@cache
def document() -> dict[str, Any]:
    """Returns the OpenAPI document."""
    made = api().openapi()
    parts = made["components"] = _untitled(made["components"])
    # These are FastAPI's own schemas of errors, which we do not use.
    for name in ("HTTPValidationError", "ValidationError"):
        parts["schemas"].pop(name, None)
    for form in (Problem, NewEvent):  # FastAPI does not know them from any route
        parts["schemas"][form.__name__] = _untitled(form.model_json_schema())
    parts["responses"] = {
        f"Problem{status}": _problem(status)
        for status in sorted({*GUARDED, ANY_QUERY, *(s for r in ROUTES for s in r.problems)})
    }
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    paths = made["paths"] = _untitled(made["paths"])
    for route in ROUTES:
        operation = paths[route.path.replace(":path}", "}")][route.method.lower()]
        operation["security"] = [{"token": []}] if route.permission else []
        operation["responses"] = {
            **{str(status): operation["responses"][str(status)] for status in route.answers},
            **{
                str(status): {"$ref": f"#/components/responses/Problem{status}"}
                for status in _problems(route)
            },
        }
    return dict(made)


def _problems(route: Route) -> list[int]:
    """Returns the error statuses that a route may answer with."""
    guarded = GUARDED if route.permission else ()
    return sorted({*guarded, *route.problems, ANY_QUERY} - route.answers.keys())


def _problem(status: int) -> dict[str, Any]:
    return {
        "description": title(status),
        "content": {KIND: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def _untitled(value: Any) -> Any:
    """Returns the schema without the titles that are made from names: they say nothing."""
    if isinstance(value, dict):
        return {
            key: _untitled(item)
            for key, item in value.items()
            if key != "title" or not isinstance(item, str)
        }
    return [_untitled(item) for item in value] if isinstance(value, list) else value


def written() -> str:
    """Returns the OpenAPI document as the text that is checked in."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
