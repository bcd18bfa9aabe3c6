"""One act on many executions over HTTP (pause, cancel, retry …): on all that match the body."""

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
    """Selects executions: those to which all of these fields apply."""

    q: str | None = Field(
        default=None,
        description="A filter, such as `status:failed attr.customer=acme age>2h`. All of its terms "
        "must be true.",
    )
    workflow: str | None = None
    status: str | None = None
    queue: str | None = None
    created_before: str | None = Field(
        default=None, description="A time in ISO 8601.", json_schema_extra={"format": "date-time"}
    )
    created_after: str | None = Field(
        default=None, description="A time in ISO 8601.", json_schema_extra={"format": "date-time"}
    )
    attributes: dict[str, Json] | None = Field(
        default=None, description="Attributes that they have, with these values."
    )
    all: bool = Field(
        default=False, description="Select all executions. Needed if no field above is given."
    )
    limit: int | None = Field(
        default=None, ge=1, description="At most this many, the oldest first."
    )
    dry_run: bool = Field(default=False, description="Only count them, and change nothing.")
    reason: str = ""


class RetrySelection(Selection):
    """Selects executions to retry."""

    from_start: bool = Field(
        default=False,
        description="Begin at the start, with the current version of the workflow, instead of "
        "where they failed.",
    )


def _on_many(
    action: Action, permission: str, about: str, form: type[Selection] = Selection
) -> Callable[..., Response]:
    """Returns the function of a route that does this action to all executions that match."""

    def act(ask: Ask, body: Selection) -> Response:
        given = body.model_dump()
        given["query"] = given.pop("q")
        if not body.all and not any(
            given[name] is not None
            for name in ("query", "workflow", "status", "queue", *TIMES, "attributes")
        ):
            raise Refused(
                422,
                "selection_missing",
                'say which executions are meant, or that it is all of them: {"all": true}',
            )
        return answer(ask.app.bulk(action, by=ask.actor, scope=ask.scope(permission), **given))

    act.__name__, act.__doc__ = action, about
    act.__annotations__["body"] = form
    return act


TIMES = ("created_before", "created_after")
pause = _on_many("pause", "execution:pause", "Pauses all executions that match.")
resume = _on_many("resume", "execution:resume", "Lets all paused executions that match go on.")
cancel = _on_many("cancel", "execution:cancel", "Asks all executions that match to end.")
terminate = _on_many("terminate", "execution:cancel", "Ends all executions that match at once.")
retry = _on_many(
    "retry",
    "execution:start",
    "Retries all executions that match.\n\nOnly those that failed or were cancelled are retried. "
    "With `dry_run`, those that cannot be retried are `refused`.",
    RetrySelection,
)
__all__ = ["Bulk", "cancel", "datetime", "pause", "resume", "retry", "terminate"]
