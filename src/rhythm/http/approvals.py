"""Approvals over HTTP: what people are asked to decide, and their decisions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import Field
from starlette.responses import Response

from rhythm.app.approvals import STATUSES, ApprovalView
from rhythm.app.checks import place_after
from rhythm.http.answers import answer
from rhythm.http.pages import listed
from rhythm.http.requests import Ask, Cursor, Key, Limit
from rhythm.http.schemas import Body, form_of, page_of
from rhythm.permissions import READ

Approval = form_of(ApprovalView, "Approval")
Approvals = page_of(Approval)
Id = Annotated[str, Path(description="the id of an approval")]
Role = Annotated[str | None, Query(description="only those that this role decides")]
Status = Annotated[
    str, Query(description="only those that are so", json_schema_extra={"enum": [*STATUSES]})
]
Of = Annotated[str | None, Query(description="only those of this execution")]


class Decision(Body):
    comment: str = ""
    shown: str | None = Field(
        default=None,
        description="the `shown` of the approval that was looked at: 409 if it is another by now",
    )


class Escalation(Decision):
    to: str | None = Field(
        default=None,
        description="the role that is to decide; else the next one that the workflow names",
    )


DECISION, ESCALATION = Decision(), Escalation()  # what a request without a body means


def find(
    ask: Ask,
    role: Role = None,
    status: Status = "open",
    execution: Of = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """What people are asked to decide, newest first; with another `status` what they were."""
    given: dict[str, Any] = {
        "role": role,
        "status": status,
        "execution": execution,
        "limit": limit,
        "cursor": cursor,
    }
    page = ask.app.approvals(**given, scope=ask.scope(READ), most_bytes=ask.page_bytes)
    return listed(ask, page.items, page.cursor is not None, lambda n: place_after(page.items[n]))


def get(ask: Ask, id: Id) -> Response:
    """An approval: what is to be decided, by whom until when, and the decisions so far."""
    return answer(ask.app.approval(id))


def approve(ask: Ask, id: Id, body: Decision = DECISION, key: Key = None) -> Response:
    """Approves, as the owner of the token, who holds the role and has not started the execution."""
    return answer(
        ask.app.approve(id, by=ask.actor, comment=body.comment, shown=body.shown, key=key)
    )


def reject(ask: Ask, id: Id, body: Decision = DECISION, key: Key = None) -> Response:
    """Rejects; one rejection decides."""
    return answer(ask.app.reject(id, by=ask.actor, comment=body.comment, shown=body.shown, key=key))


def escalate(ask: Ask, id: Id, body: Escalation = ESCALATION, key: Key = None) -> Response:
    """Hands the approval over to another role."""
    return answer(
        ask.app.escalate(
            id, to=body.to, by=ask.actor, comment=body.comment, shown=body.shown, key=key
        )
    )
