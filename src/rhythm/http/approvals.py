"""Approvals over HTTP: what people are asked to decide, and their decisions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import AliasChoices, Field
from starlette.requests import Request
from starlette.responses import Response

from rhythm.app.approvals import STATUSES, ApprovalView, WantedDecision
from rhythm.app.checks import place_after
from rhythm.http.answers import answer
from rhythm.http.pages import listed
from rhythm.http.requests import Ask, Cursor, Key, Limit
from rhythm.http.schemas import Body, form_of, page_of
from rhythm.permissions import READ

ALL = "all"
Approval = form_of(ApprovalView, "Approval")
Approvals = page_of(Approval)
Id = Annotated[str, Path(description="The id of the approval.")]
Role = Annotated[str | None, Query(description="Only approvals that this role decides.")]
Status = Annotated[
    str,
    Query(
        description="Only approvals with this status; `all`: with any.",
        json_schema_extra={"enum": [*STATUSES, ALL]},
    ),
]
Of = Annotated[str | None, Query(description="Only approvals of this execution.")]


class Decision(Body):
    comment: str = ""
    content_hash: str | None = Field(
        default=None,
        validation_alias=AliasChoices("content_hash", "shown"),  # `shown`: its older name
        description="The `content_hash` of the approval that you saw. If the approval has changed "
        "since, the answer is 409.",
    )


class Escalation(Decision):
    to: str | None = Field(
        default=None,
        description="The role that decides from now on. Without it, the next one that the workflow "
        "names.",
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
    """Lists approvals, newest first.

    Without a `status` these are the open ones: what people are asked to decide.
    """
    given: dict[str, Any] = {
        "role": role,
        "status": None if status == ALL else status,
        "execution": execution,
        "limit": limit,
        "cursor": cursor,
    }
    page = ask.app.approvals(**given, scope=ask.scope(READ), most_bytes=ask.page_bytes)
    return listed(ask, page.items, page.cursor is not None, lambda n: place_after(page.items[n]))


def get(ask: Ask, id: Id) -> Response:
    """Returns an approval.

    It says what is to be decided, by whom and until when, and has the decisions so far.
    """
    return answer(ask.app.approval(id))


async def approve(
    ask: Ask, request: Request, id: Id, body: Decision = DECISION, key: Key = None
) -> Response:
    """Approves what a workflow asks for.

    The owner of the token decides: they must have the role that decides and, under four eyes, must
    not have taken part in the execution.
    """
    seen = body.content_hash
    return await _decided(
        request, WantedDecision(id, "approve", ask.actor, body.comment, seen, key)
    )


async def reject(
    ask: Ask, request: Request, id: Id, body: Decision = DECISION, key: Key = None
) -> Response:
    """Rejects what a workflow asks for.

    One rejection ends the approval. Who may reject is as for approving.
    """
    seen = body.content_hash
    return await _decided(request, WantedDecision(id, "reject", ask.actor, body.comment, seen, key))


async def escalate(
    ask: Ask, request: Request, id: Id, body: Escalation = ESCALATION, key: Key = None
) -> Response:
    """Hands an approval to another role."""
    seen = body.content_hash
    return await _decided(
        request, WantedDecision(id, "escalate", ask.actor, body.comment, seen, key, body.to)
    )


async def _decided(request: Request, wanted: WantedDecision) -> Response:
    return answer(await request.scope["rhythm.server"].deciding.decide(wanted))
