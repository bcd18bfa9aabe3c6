"""The parameters of a query (`?status=failed`): those that a route does not know are refused.

A parameter that is ignored answers another question than the one that was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import parse_qsl

from fastapi.dependencies.models import Dependant
from starlette.requests import Request

from rhythm.http.problems import VALUE_CHARACTERS, Refused
from rhythm.suggest import nearest

MAX_PARAMETERS = 100  # parameters of one query


def known_to(dependant: Dependant) -> tuple[str, ...]:
    """Returns the names of the query parameters that a route takes."""
    return tuple(_names(dependant))


def _names(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for part in dependant.dependencies:
        yield from _names(part)


def check_of(known: tuple[str, ...]) -> Callable[[Request], None]:
    """Returns what refuses a request whose query has other parameters than these, or one twice."""

    def check(request: Request) -> None:
        query = request.scope["query_string"]
        if not query:
            return
        try:
            pairs = parse_qsl(
                query.decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_PARAMETERS
            )
        except ValueError:
            raise _refused(f"a query has at most {MAX_PARAMETERS} parameters") from None
        seen = set[str]()
        for name, _ in pairs:
            if name not in known:
                raise _refused(_unknown(name, known))
            if name in seen:
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
