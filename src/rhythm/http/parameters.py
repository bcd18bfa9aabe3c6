"""The parameters of a query (`?status=failed`): those that a route does not know are refused.

A parameter that is ignored answers another question than the one that was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_origin
from urllib.parse import parse_qsl

from fastapi.dependencies.models import Dependant
from starlette.requests import Request

from rhythm.http.problems import VALUE_CHARACTERS, Refused
from rhythm.record import Record
from rhythm.suggest import nearest

MAX_PARAMETERS = 100  # parameters of one query
MAX_LISTED = 1_100  # … of a route that takes a list: its own limit is lower


class Known(Record):
    """The names of the query parameters that a route takes, and which may be given repeatedly."""

    names: tuple[str, ...]
    lists: frozenset[str] = frozenset()


def known_to(dependant: Dependant) -> Known:
    """Returns the query parameters that a route takes."""
    fields = list(_fields(dependant))
    lists = (field.alias for field in fields if get_origin(field.field_info.annotation) is list)
    return Known(tuple(field.alias for field in fields), frozenset(lists))


def _fields(dependant: Dependant) -> Iterator[Any]:
    yield from dependant.query_params
    for part in dependant.dependencies:
        yield from _fields(part)


def check_of(known: Known) -> Callable[[Request], None]:
    """Returns what refuses a request whose query has other parameters than these, or one twice
    that is no list."""
    most = MAX_LISTED if known.lists else MAX_PARAMETERS

    def check(request: Request) -> None:
        query = request.scope["query_string"]
        if not query:
            return
        try:
            pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=most)
        except ValueError:
            raise _refused(f"a query has at most {most:,} parameters") from None
        seen = set[str]()
        for name, _ in pairs:
            if name not in known.names:
                raise _refused(_unknown(name, known.names))
            if name in seen and name not in known.lists:
                raise _refused(f"the query parameter `{name}` is given twice: give it once")
            seen.add(name)

    return check


def _unknown(name: str, known: tuple[str, ...]) -> str:
    shown = name if len(name) <= VALUE_CHARACTERS else f"{name[:VALUE_CHARACTERS]}…"
    near = nearest(name, known)
    if near:
        help = f"did you mean `{near}`?"
    elif "q" in known:
        help = (
            f"this path takes {', '.join(known)}; executions are found by a filter, such as "
            "?q=status:failed attr.customer=acme"
        )
    else:
        help = f"this path takes {', '.join(known)}" if known else "this path takes none"
    return f"there is no query parameter `{shown}` here; {help}"


def _refused(detail: str) -> Refused:
    return Refused(422, "unknown_parameter", detail)
