"""What every route is given: the caller, the wanted page, and the key that makes a repeated request
count once."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Header, Path, Query
from starlette.requests import Request

from rhythm.app.checks import LARGEST_PAGE, LONGEST_KEY
from rhythm.http.guard import Asker


async def _asker(request: Request) -> Asker:
    found: Asker = request.scope["rhythm.asker"]
    return found


Ask = Annotated[Asker, Depends(_asker)]
Id = Annotated[str, Path(description="The id of the execution.")]
Name = Annotated[str, Path(description="The name of the workflow.")]
Limit = Annotated[
    int, Query(ge=1, le=LARGEST_PAGE, description="At most this many items on a page.")
]
Cursor = Annotated[str | None, Query(description="The `cursor` of the page before.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=LONGEST_KEY,
        description="A text of your choice that makes it safe to repeat a request. If you send a "
        "request again with the same key, nothing is done again, and the answer is like the first "
        "one. The keys of others do not matter.",
    ),
]
