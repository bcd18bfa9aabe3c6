"""The audit over HTTP: what was done by whom, and whether the record was changed."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from rhythm.app.audit import AuditCheck, AuditView
from rhythm.http.answers import answer
from rhythm.http.pages import listed
from rhythm.http.requests import Ask, Cursor, Limit
from rhythm.http.schemas import form_of, object_of, page_of

# Rows that are verified in one request. So others wait for only some tenths of a second, however
# long the chain is.
MOST_ROWS = 10_000
Audit = page_of(form_of(AuditView, "AuditRow"))
Check = object_of("AuditCheck", str(AuditCheck.__doc__), like=AuditCheck, intact=bool)
Who = Annotated[str | None, Query(description="only what was done by this name")]
What = Annotated[str | None, Query(description="only this, such as execution.cancel")]
To = Annotated[str | None, Query(description="only what was done to this id or name")]
Kept = Annotated[
    str | None, Query(description="a head that was kept: everything up to it must be what it was")
]
From = Annotated[
    str | None,
    Query(
        description=(
            "the `next` of the request before, or a head that was kept: only what follows is read"
        )
    ),
]
Rows = Annotated[int, Query(ge=1, le=MOST_ROWS, description="rows that are read at most")]


def find(
    ask: Ask,
    actor: Who = None,
    action: What = None,
    object: To = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """What was done by whom, newest first."""
    page = ask.app.audit(
        actor=actor,
        action=action,
        object=object,
        limit=limit,
        cursor=cursor,
        most_bytes=ask.page_bytes,
    )
    return listed(ask, page.items, page.cursor is not None, lambda n: str(page.items[n].n))


def verify(ask: Ask, head: Kept = None, after: From = None, limit: Rows = MOST_ROWS) -> Response:
    """Reads the chain from its lowest row on, and says what in it is not what it was. A long one
    takes several requests: as long as there is a `next`, ask again with `after`."""
    return answer(ask.app.verify_audit(head, after=after, limit=limit).as_json())
