"""Pages of lists: no answer is longer than a page, in items and in bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from starlette.responses import Response

from rhythm.http.answers import JSON, document
from rhythm.http.guard import Asker

T = TypeVar("T")
READ_AT_ONCE = 500  # items that are read at a time for callers who may see only some


def by_name(
    items: Sequence[T], name: Callable[[T], str], limit: int, cursor: str | None
) -> tuple[list[T], bool]:
    """Returns a page of these items by name, after the cursor, and whether there are more."""
    rest = sorted((item for item in items if cursor is None or name(item) > cursor), key=name)
    return rest[:limit], len(rest) > limit


def seen_by_name(
    ask: Asker,
    read: Callable[[int, str], Sequence[T]],
    right: Callable[[T], str],
    limit: int,
    cursor: str | None,
) -> tuple[list[T], bool]:
    """Returns a page of the items that the caller may read, and whether there are more.

    `read(most, after)` returns at most `most` items whose names come after `after`. `right` returns
    the name on which permissions depend.
    """
    seen, after, most = list[T](), cursor or "", limit + 1
    while len(seen) <= limit:
        found: Sequence[Any] = read(most, after)
        seen += ask.seen(found, right)
        if len(found) < most:
            break
        # The caller may not see most of them, so more are read at a time from now on.
        after, most = found[-1].name, max(limit + 1, READ_AT_ONCE)
    return seen[:limit], len(seen) > limit


def listed(
    ask: Asker,
    items: Sequence[Any],
    more: bool,
    place: Callable[[int], str],
    each: bool = False,
    **besides: Any,
) -> Response:
    """Returns a page as a response. `place(n)` is the cursor of the page that begins after item n.

    The page ends early when it has become too large, but has at least one item. `each`: it also
    has the cursor after each item.
    """
    most, parts, size = ask.page_bytes, list[bytes](), 0
    for item in items:
        parts.append(document(item))
        size += len(parts[-1])
        if size >= most:
            break
    last = len(parts) - 1
    cursor = place(last) if parts and (more or len(parts) < len(items)) else None
    if each:
        besides["cursors"] = [place(n) for n in range(len(parts))]
    also = b"".join(b',"%b":%b' % (name.encode(), document(it)) for name, it in besides.items())
    return Response(
        b'{"items":[%b],"cursor":%b%b}' % (b",".join(parts), document(cursor), also),
        media_type=JSON,
    )
