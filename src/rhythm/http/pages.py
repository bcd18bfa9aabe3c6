"""Pages of lists that are read as a whole: no answer is longer than a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rhythm.http.guard import Asker

T = TypeVar("T")
READ_AT_ONCE = 500  # by those who look for what is theirs


def by_name(items: Sequence[T], name: Callable[[T], str], limit: int, cursor: str | None) -> dict[str, Any]:
    """In the order of their names; the cursor is the last name of the page before."""
    rest = sorted((item for item in items if cursor is None or name(item) > cursor), key=name)
    return {"items": rest[:limit], "cursor": name(rest[limit - 1]) if len(rest) > limit else None}


def page_by_name(items: Sequence[Any], limit: int) -> dict[str, Any]:
    """A page of what was read up to one beyond its end; the cursor is its last name."""
    return {"items": items[:limit], "cursor": items[limit - 1].name if len(items) > limit else None}


def seen_by_name(ask: Asker, read: Callable[[int, str], Sequence[Any]], right: Callable[[Any], str], limit: int, cursor: str | None) -> Any:
    """A page of those that whoever asks may look at. `read` gives so many that come after a name; rights go by the name `right`."""
    seen, after, most = list[Any](), cursor or "", limit + 1
    while len(seen) <= limit:
        read_now = read(most, after)
        seen += ask.seen(read_now, right)
        if len(read_now) < most:
            break
        after, most = read_now[-1].name, max(limit + 1, READ_AT_ONCE)  # most of them may be for others
    return page_by_name(seen, limit)


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
