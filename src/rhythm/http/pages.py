"""Pages of lists that are read as a whole: no answer is longer than a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def by_name(items: Sequence[T], name: Callable[[T], str], limit: int, cursor: str | None) -> dict[str, Any]:
    """In the order of their names; the cursor is the last name of the page before."""
    rest = sorted((item for item in items if cursor is None or name(item) > cursor), key=name)
    return {"items": rest[:limit], "cursor": name(rest[limit - 1]) if len(rest) > limit else None}


def page_by_name(items: Sequence[Any], limit: int) -> dict[str, Any]:
    """A page of what was read up to one beyond its end; the cursor is its last name."""
    return {"items": items[:limit], "cursor": items[limit - 1].name if len(items) > limit else None}


def by_place(items: Sequence[Any], limit: int, cursor: str | None) -> dict[str, Any]:
    """In their own order; the cursor is how many came before."""
    begin = _place(cursor)
    rest = items[begin : begin + limit + 1]
    return {"items": rest[:limit], "cursor": str(begin + limit) if len(rest) > limit else None}


def _place(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 12:
        raise ValueError(f"{cursor!r:.80} is not the cursor of a page")
    return int(cursor)
