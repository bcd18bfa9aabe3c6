"""The short way from a request to its function, for most requests: what FastAPI would find out for
any application is known here beforehand.

FastAPI looks through all routes, one after the other, and asks of every parameter where it comes
from, which takes longer than everything else that happens to a small request before its function is
called. Whatever is not plain goes FastAPI's way, and so does whatever is wrong: all messages are
FastAPI's, and the OpenAPI document is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, get_args, get_type_hints

from fastapi.params import Path
from fastapi.routing import APIRouter
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from rhythm.http.guard import path_of
from rhythm.http.requests import Ask, Key
from rhythm.http.schemas import Body

KEY = "idempotency-key"
PART = 3  # which word of a path tells what it is about: /api/v1/approvals/…
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Application = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]


def by_part(router: APIRouter) -> Application:
    """Returns an application that looks for the route of a request only among those whose path has
    the same word after the version.

    Where none fits, the router looks through all of them, and answers.
    """
    parts = dict[str, list[BaseRoute]]()
    for route in router.routes:
        parts.setdefault(_part(getattr(route, "path", "")), []).append(route)

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for route in parts.get(_part(path_of(scope)), ()):
                match, found = route.matches(scope)
                if match is Match.FULL:
                    scope.update(found, router=router)
                    return await route.handle(scope, receive, send)
        await router.app(scope, receive, send)

    return dispatch


def _part(path: str) -> str:
    words = path.split("/", PART + 1)
    return words[PART] if len(words) > PART else ""


def direct(endpoint: Callable[..., Any], general: Handler) -> Handler:
    """Returns a handler that calls the function of a route itself, if all it takes is the caller,
    the request, texts of the path, a body and an `Idempotency-Key`.

    A body that does not fit, and a key, are left to the `general` handler, which returns the same
    or says what is wrong.
    """
    taken = _taken(endpoint)
    if taken is None:
        return general
    body, names = taken.pop("body", None), taken
    waits = inspect.iscoroutinefunction(endpoint)

    async def handle(request: Request) -> Response:
        if KEY in request.headers:
            return await general(request)
        values = {name: value(request) for name, value in names.items()}
        if body is not None:
            if not await request.body():
                return await general(request)
            try:
                values["body"] = body.model_validate(await request.json())
            except ValidationError:
                return await general(request)
        answer: Response = await (
            endpoint(**values) if waits else run_in_threadpool(endpoint, **values)
        )
        return answer

    return handle


def _taken(endpoint: Callable[..., Any]) -> dict[str, Any] | None:
    """Returns where the values of the parameters come from, and of `body` the schema; None if the
    function takes something else."""
    taken = dict[str, Any]()
    for name, hint in get_type_hints(endpoint, include_extras=True).items():
        if name == "return" or hint == Key:
            continue
        if hint == Ask:
            taken[name] = lambda request: request.scope["rhythm.asker"]
        elif hint is Request:
            taken[name] = lambda request: request
        elif _is_text_of_path(hint):
            taken[name] = lambda request, name=name: request.path_params[name]
        elif name == "body" and isinstance(hint, type) and issubclass(hint, Body):
            taken[name] = hint
        else:
            return None
    return taken


def _is_text_of_path(hint: Any) -> bool:
    """Tells whether a parameter is a text of the path, and may be any text."""
    kind, *more = get_args(hint) or (None,)
    return kind is str and len(more) == 1 and isinstance(more[0], Path) and not more[0].metadata
