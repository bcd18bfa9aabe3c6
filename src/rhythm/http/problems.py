"""Errors as RFC 9457 defines them: `application/problem+json` with a `code` that never changes.

One table says which status each exception of Rhythm has. For errors that a caller cannot fix, the
details are not sent; they are in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rhythm import errors
from rhythm.filters import FilterError
from rhythm.http.answers import document

log = logging.getLogger("rhythm.http")
KIND = "application/problem+json"
MAX_PROBLEMS = 20  # problems that are listed for one request
# Characters that are shown of a name in these; of a message, three times as many. An unknown key
# may be of any length.
VALUE_CHARACTERS = 80

STATUS: dict[type[Exception], int] = {
    errors.UnknownExecution: 404,
    errors.UnknownWorkflow: 404,
    errors.UnknownApproval: 404,
    errors.UnknownSchedule: 404,
    errors.ScheduleOfWorkflow: 409,
    errors.TokenRevoked: 401,
    errors.ScheduleTaken: 409,
    errors.ScheduleChanged: 409,
    errors.Denied: 403,
    errors.Undecidable: 409,
    errors.Conflict: 409,
    errors.NotDelivered: 409,
    errors.NotRetryable: 409,
    errors.InvalidId: 422,
    errors.InvalidPayload: 422,
    errors.InvalidEvent: 422,
    errors.InvalidSchedule: 422,
    errors.FlowError: 422,
    errors.StoreError: 503,
    ValueError: 422,
}
BY_CODE = {"mailbox_full": 429}  # where a code says more than its class
OF_STATUS = {
    404: "no_such_path",
    405: "method_not_allowed",
    422: "invalid_request",
    500: "internal_error",
}
# names of statuses in RFC 9110, where older Pythons have others
TITLES = {
    413: "Content Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    422: "Unprocessable Content",
}
ASK = {"WWW-Authenticate": 'Bearer realm="rhythm"'}
HEADERS = {401: ASK, 429: {"Retry-After": "1"}, 503: {"Retry-After": "1"}}
HIDDEN = {
    503: "the database does not answer; try again",
    500: "something is wrong here, and it is in the log of the server",
}


class Refused(HTTPException):
    """A request that this interface itself refuses."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(status, detail, headers)
        self.code, self.more = code, more


def title(status: int) -> str:
    """Returns the name of a status, the same for all versions of Python."""
    return TITLES.get(status) or HTTPStatus(status).phrase


def problem(
    status: int, code: str, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    """Returns a response of the type problem+json."""
    problem = {
        "type": "about:blank",
        "title": title(status),
        "status": status,
        "code": code,
        "detail": detail,
        **more,
    }
    return Response(document(problem), status, headers, KIND)


def status_of(error: Exception) -> int:
    """Returns the HTTP status for an exception; its nearest class in the table decides."""
    known = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)
    return BY_CODE.get(getattr(error, "code", ""), known)


async def problem_response(request: Request, error: Exception) -> Response:
    """Returns the response for an exception that a route raised. Refused attempts are logged."""
    if isinstance(error, Refused):
        request.scope["rhythm.server"].refused(request.scope, error.status_code, error.code)
        return problem(error.status_code, error.code, error.detail, error.headers, **error.more)
    if isinstance(error, HTTPException):  # raised by the router
        return problem(
            error.status_code,
            OF_STATUS.get(error.status_code, "refused"),
            _of_router(request, error),
            error.headers,
        )
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    status = status_of(error)
    code = (
        error.code
        if isinstance(error, errors.RhythmError)
        else OF_STATUS.get(status, "internal_error")
    )
    if status >= 500:
        log.error(
            "%s %r failed: %s",
            request.method,
            request.scope["path"],
            error,
            exc_info=None if status == 503 else error,
        )
    request.scope["rhythm.server"].refused(request.scope, status, code)
    return problem(
        status, code, HIDDEN.get(status) or str(error), HEADERS.get(status), **_more(error)
    )


def _more(error: Exception) -> dict[str, Any]:
    match error:
        case errors.Conflict():
            return {"id": error.id}
        case errors.FlowError():
            return {
                "problems": [
                    {"code": one.code, "message": one.message}
                    for one in error.diagnostics[:MAX_PROBLEMS]
                ]
            }
        case FilterError():
            return {"at": error.at}
    return {}


def _of_router(request: Request, error: HTTPException) -> str:
    if error.status_code == 404:
        return "nothing is served at this path; /api/v1/openapi.json lists what is"
    return (
        f"{request.method} is not possible at this path"
        if error.status_code == 405
        else str(error.detail)
    )


def _invalid(error: RequestValidationError) -> Response:
    found = [
        {"at": ".".join(_cut(str(part)) for part in one["loc"]), "problem": _cut(one["msg"], 3)}
        for one in error.errors()[:MAX_PROBLEMS]
    ]
    detail = "; ".join(f"{one['at']}: {one['problem']}" for one in found)
    return problem(422, "invalid_request", detail, problems=found)


def _cut(text: str, times: int = 1) -> str:
    most = VALUE_CHARACTERS * times
    return text if len(text) <= most else f"{text[:most]}…"
