"""Extracts pages, with retries and all at once, keeps some fields, and loads the rows.

rhythm run examples/python/etl.py -i pages:=3
"""

import asyncio
from typing import Any

import rhythm

FIELDS = ["id", "title", "comments"]


@rhythm.task(retries=3, backoff="2s", timeout="30s")
async def fetch_page(page: int, per_page: int) -> list[dict[str, Any]]:
    first = page * per_page
    return [
        {"id": i, "title": f"article {i}", "comments": i % 3, "body": "…"}
        for i in range(first, first + per_page)
    ]


@rhythm.task
def save(rows: list[dict[str, Any]]) -> int:
    return len(rows)


@rhythm.workflow
async def etl(pages: int = 3, per_page: int = 30) -> int:
    found = await asyncio.gather(*[fetch_page(page, per_page) for page in range(pages)])
    rows = [{field: article[field] for field in FIELDS} for page in found for article in page]
    return await save.run(rows)
