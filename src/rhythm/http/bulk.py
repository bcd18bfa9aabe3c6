"""Acts on many executions at once over HTTP: on all that match the body, or only counting them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from pydantic import Field
from starlette.responses import Response

from rhythm.app.bulk import Action, BulkView
from rhythm.http.answers import answer
from rhythm.http.problems import Refused
from rhythm.http.requests import Ask
from rhythm.http.schemas import Body, Json, form_of

Bulk = form_of(BulkView, "Bulk")


class Selection(Body):
    """Which executions are meant: those that have all of this."""

    workflow: str | None = None
    status: str | None = None
    queue: str | None = None
    created_before: str | None = Field(
        default=None, description="ISO 8601", json_schema_extra={"format": "date-time"}
    )
    created_after: str | None = Field(
        default=None, description="ISO 8601", json_schema_extra={"format": "date-time"}
    )
    attributes: dict[str, Json] | None = Field(
        default=None, description="plain values that they must have"
    )
    all: bool = Field(default=False, description="without anything of the above: really all")
    limit: int | None = Field(default=None, ge=1, description="at most so many, oldest first")
    dry_run: bool = Field(default=False, description="only count them")
    reason: str = ""


def _on_many(action: Action, permission: str, about: str) -> Callable[..., Response]:
    """Returns the function of a route that does this action to all executions that match."""

    def act(ask: Ask, body: Selection) -> Response:
        given = body.model_dump()
        if not body.all and not any(
            given[name] is not None
            for name in ("workflow", "status", "queue", *TIMES, "attributes")
        ):
            raise Refused(
                422,
                "selection_missing",
                'say which executions are meant, or that it is all of them: {"all": true}',
            )
        return answer(ask.app.bulk(action, by=ask.actor, scope=ask.scope(permission), **given))

    act.__name__, act.__doc__ = action, about
    return act


TIMES = ("created_before", "created_after")
pause = _on_many("pause", "execution:pause", "Holds all workflows that fit where they are.")
resume = _on_many("resume", "execution:resume", "Lets all paused workflows that fit go on.")
cancel = _on_many("cancel", "execution:cancel", "Asks all executions that fit to end.")
terminate = _on_many("terminate", "execution:cancel", "Ends all executions that fit at once.")
retry = _on_many(
    "retry",
    "execution:start",
    "Retries all executions that fit: those that failed or were cancelled.",
)
__all__ = ["Bulk", "cancel", "datetime", "pause", "resume", "retry", "terminate"]
