"""The audit over HTTP: what was done by whom."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from rhythm.app.rights import AuditView
from rhythm.http.answers import answer
from rhythm.http.asking import Ask, Cursor, Limit
from rhythm.http.schemas import form_of, page_of

Audit = page_of(form_of(AuditView, "AuditRow"))
Who = Annotated[str | None, Query(description="only what was done by this name")]
What = Annotated[str | None, Query(description="only this, such as execution.cancel")]
To = Annotated[str | None, Query(description="only what was done to this id or name")]


def find(ask: Ask, actor: Who = None, action: What = None, object: To = None, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """What was done by whom, newest first."""
    return answer(ask.app.audit(actor=actor, action=action, object=object, limit=limit, cursor=cursor))
