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
Id = Annotated[str, Path(description="the id of an execution")]
Name = Annotated[str, Path(description="its name")]
Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="items of a page")]
Cursor = Annotated[str | None, Query(description="of the page before")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=LONGEST_KEY,
        description="a text of your own, which nobody else's meets: a request that comes "
        "again with it does nothing more, and is answered like the first one",
    ),
]
