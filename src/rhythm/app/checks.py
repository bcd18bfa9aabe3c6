"""Checks what callers give: ids, names, texts, numbers and cursors. What is not valid is refused
with the reason.

How long each may be is in `limits.TextLimits`, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from rhythm.app.handle import id_of
from rhythm.engine.payload import dump
from rhythm.errors import InvalidId, UnknownExecution
from rhythm.ids import PersonalKey, is_personal, problem_with_id
from rhythm.limits import TEXTS
from rhythm.store.reading import Place

if TYPE_CHECKING:
    from rhythm.app.approvals import ApprovalView
    from rhythm.app.handle import Id
    from rhythm.app.views import ExecutionView
    from rhythm.store.reading import Found

LONGEST_KEY = TEXTS.key
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LARGEST_PAGE = 1000
OWN_KEYS = ("event:", "schedule:")  # prefixes of the keys of what events and schedules start
TRACE_CURSOR = re.compile(r"(\d{1,18}):(\d):(-?\d{1,9}):(\d{1,9}):(\d):(\d{1,18}):(.+)")
T = TypeVar("T")
LONGEST_TIME = 18  # digits of a time in a cursor: databases cannot hold more


def unknown_execution(id: Any) -> NoReturn:
    """Raises `UnknownExecution`."""
    raise UnknownExecution(f"there is no execution {id!r:.200}")


def can_be(name: Any) -> bool:
    """Tells whether this can be the id or name of anything that is stored.

    Call it before you ask a database: SQLite and PostgreSQL react differently to a text that they
    cannot store.
    """
    return isinstance(name, str) and len(name) <= TEXTS.known_id and name.isprintable()


def valid_text(value: Any, what: str, limit: int = TEXTS.reason) -> str:
    """Returns the text.

    Raises `ValueError` if it is not a text or too long; `what` names it in the message.
    """
    if not isinstance(value, str):
        raise ValueError(f"{what} is a text, not {value!r:.80}")
    if len(value) > limit:
        raise ValueError(f"{what} has at most {limit:,} characters, not {len(value):,}")
    dump(value, what)
    return value


def valid_metadata(given: Any) -> str | None:
    """Returns the metadata of a pause or resume as JSON text; None if there are none.

    Raises `ValueError` if they are no object or too large.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise ValueError(f"metadata is an object, not {given!r:.80}")
    text = dump(dict(given), "metadata")
    if (size := len(text.encode())) > TEXTS.metadata_bytes:
        raise ValueError(
            f"metadata has at most {TEXTS.metadata_bytes:,} bytes as JSON, not {size:,}: store it "
            f"elsewhere, and give its address"
        )
    return text


def valid_attributes(given: Any) -> str:
    """Returns the attributes of an execution as JSON text.

    Raises `ValueError` if they are not valid.
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"attributes are names with values, not {given!r:.80}")
    if len(given) > TEXTS.attributes:
        raise ValueError(
            f"an execution has at most {TEXTS.attributes} attributes, not {len(given):,}"
        )
    for name, value in given.items():
        size = len(
            dump(value, f"the attribute {valid_name(name, 'the name of an attribute')!r}").encode()
        )
        if size > TEXTS.attribute_bytes:
            raise ValueError(
                f"an attribute has at most {TEXTS.attribute_bytes:,} bytes; {name!r} has {size:,}"
            )
    text = dump(dict(given), "attributes")
    if len(text.encode()) > TEXTS.attributes_bytes:
        raise ValueError(
            f"the attributes of an execution have at most {TEXTS.attributes_bytes:,} bytes together"
        )
    return text


def parse_execution_id(given: Id) -> str:
    """Returns the id if an execution may have it; else raises `UnknownExecution`.

    Databases are never asked for an id that they could not hold.
    """
    id = id_of(given)
    return id if can_be(id) else unknown_execution(id)


def valid_id(id: Any) -> str:
    """Returns an id that a user chose. Raises `InvalidId` if an execution cannot have it."""
    if problem := problem_with_id(id) if isinstance(id, str) else "an id is a text":
        raise InvalidId(f"{id!r:.80} cannot be an id: {problem}")
    assert isinstance(id, str)
    return id


def valid_name(value: Any, what: str) -> str:
    """Returns the name. Raises `ValueError` if it is not valid; `what` names it in the message."""
    if (
        not isinstance(value, str)
        or not value
        or len(value) > TEXTS.name
        or not value.isprintable()
    ):
        raise ValueError(
            f"{what} is a text of 1 to {TEXTS.name} printable characters, not {value!r:.80}"
        )
    return value


def several(values: Any, what: str) -> tuple[str, ...]:
    """Returns the given roles, each once.

    Raises `ValueError` if there are too many, or one is not valid.
    """
    given = (values,) if isinstance(values, str) else tuple(values)
    if len(given) > TEXTS.roles:
        raise ValueError(f"there are at most {TEXTS.roles} roles of a kind, not {len(given):,}")
    return tuple(dict.fromkeys(valid_name(value, what) for value in given))


def own_key(value: Any, what: str) -> str:
    """Returns a key or id that makes a repeated call count once.

    Raises `ValueError` if it is not valid. A caller may not choose a text that has the form of a
    person's `Idempotency-Key` over HTTP: the caller could come first, and take the place of that
    person's request.
    """
    if isinstance(value, PersonalKey):
        return str(value)
    if is_personal(valid_name(value, what)):
        raise ValueError(
            f"{what} cannot be {value!r}: so the Idempotency-Keys of people are stored; "
            f"choose another"
        )
    return str(value)


def start_key(value: Any, what: str) -> str:
    """Returns the key of a start.

    Raises `ValueError` for a key of the form that events and slots use. With such a key, a caller
    could take the place of what the event or slot was to start.
    """
    if own_key(value, what).startswith(OWN_KEYS):
        raise ValueError(
            f"{what} does not begin with {' or '.join(OWN_KEYS)}, as those of events and "
            f"schedules do: {value!r:.80}"
        )
    return str(value)


def at_least(value: Any, least: int, what: str) -> int:
    """Returns the number. Raises `ValueError` if it is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**31:
        raise ValueError(f"{what} is a whole number from {least:,} on, not {value!r:.80}")
    return value


def place_of(cursor: str | None) -> tuple[int, str] | None:
    """Returns where a page begins, as the cursor says.

    Raises `ValueError` if it is not a cursor.
    """
    if cursor is None:
        return None
    at, _, id = cursor.partition("-") if can_be(cursor) else ("", "", "")
    if not at.isascii() or not at.isdigit() or len(at) > LONGEST_TIME or not id:
        raise ValueError(f"{cursor!r:.80} is not the cursor of a page: use one that a page has")
    return int(at), id


def name_of(cursor: str | None) -> str:
    """Returns the name that a cursor stands for: the page begins after it. Empty: the first page.

    Raises `ValueError` if the text cannot be a cursor.
    """
    if cursor is not None and not can_be(cursor):
        raise ValueError(f"{cursor!r:.80} is not the cursor of a page: use one that a page has")
    return cursor or ""


def place_after(item: ExecutionView | ApprovalView) -> str:
    """Returns the cursor of the page that begins after this item."""
    return f"{(item.created_at - EPOCH) // timedelta(microseconds=1)}-{item.id}"


def place_after_end(item: ExecutionView) -> str:
    """Returns the cursor of the page that begins after this item, in a list by the time of ends."""
    at = item.finished_at or item.created_at
    return f"{(at - EPOCH) // timedelta(microseconds=1)}-{item.id}"


# The cursor after an item, by the time by which its list is ordered.
PLACES = {"created": place_after, "finished": place_after_end}


def trace_place(cursor: str | None) -> Place | None:
    """Returns where a page of a trace begins. Raises `ValueError` if it is not a cursor."""
    if cursor is None:
        return None
    form = TRACE_CURSOR.fullmatch(cursor) if can_be(cursor) else None
    if form is None:
        raise ValueError(f"{cursor!r:.80} is not the cursor of a page: use one that a page has")
    at, rank, length, child_no, kind, n = map(int, form.groups()[:6])
    return Place(at, rank, length, child_no, form[7], kind, n)


def trace_cursor(place: Place) -> str:
    """Returns the cursor of the page of a trace that begins after this place."""
    return (
        f"{place.at}:{place.rank}:{place.length}:{place.child_no}:{place.kind}:{place.n}:{place.id}"
    )


def page_of(found: Found[T], limit: int) -> tuple[list[T], bool]:
    """Returns the rows of a page, and whether there are more after it.

    `found` has one row more than the page, if there is one.
    """
    return found[:limit], found.cut or len(found) > limit


def number_of(cursor: str | None) -> int:
    """Returns the number after which a page begins. Raises `ValueError` if it is not a cursor."""
    if cursor is not None and not (
        isinstance(cursor, str)
        and cursor.isascii()
        and cursor.isdigit()
        and len(cursor) <= LONGEST_TIME
    ):
        raise ValueError(f"{cursor!r:.80} is not the cursor of a page: use one that a page has")
    return int(cursor or 0)
