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
Who = Annotated[str | None, Query(description="Only acts of this actor.")]
What = Annotated[str | None, Query(description="Only acts of this kind, such as execution.cancel.")]
To = Annotated[str | None, Query(description="Only acts on the object with this id or name.")]
Kept = Annotated[
    str | None,
    Query(
        description="A head that you kept earlier. The answer then also says whether the audit up "
        "to it has changed."
    ),
]
From = Annotated[
    str | None,
    Query(
        description=(
            "The `next` of the last answer, or a head that you kept. Only the rows after it are "
            "read."
        )
    ),
]
Rows = Annotated[int, Query(ge=1, le=MOST_ROWS, description="Read at most this many rows.")]


def find(
    ask: Ask,
    actor: Who = None,
    action: What = None,
    object: To = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Lists who did what, newest first."""
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
    """Checks whether the audit was changed.

    It reads the rows from the first one on, and reports every row whose hash is wrong. A long
    audit takes several requests: as long as the answer has a `next`, ask again with it as `after`.
    """
    return answer(ask.app.verify_audit(head, after=after, limit=limit).as_json())
