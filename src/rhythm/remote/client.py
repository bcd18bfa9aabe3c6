"""What the rooms ask with: requests and answers as values, and what is asked again.

A reading request is asked again if its answer is lost, and so is an act that names itself by an id
or a key: the server does it once. Of any other act whose answer is lost nobody knows whether it was
done, and the error says how to look.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from rhythm import __version__
from rhythm.app.checks import LARGEST_PAGE
from rhythm.errors import ServerError, Unavailable
from rhythm.record import Record
from rhythm.remote.address import API, Address
from rhythm.remote.decoding import NotUnderstood, decoded, field, parsed
from rhythm.remote.problems import BUSY, code_of, error_of, not_understood
from rhythm.remote.transport import ANSWER_S, Lost, NotSent, Reply, TooLarge, Transport

R = TypeVar("R", bound=Record)
JSON = "application/json"
TIMES = 3  # how often at most something is asked that may be asked again
PAUSE_S = 0.2  # before it is asked again
BUSY_S = 10.0  # how long to wait in all for a server that is asked too often
IT_MAY_HAVE_HAPPENED = "it may have been done"
OUTSIDE = (502, 504)  # a proxy has no answer of the server
UNSURE = (*OUTSIDE, 503)  # what was asked may have been done
MOST_PAGES = 10_000  # of one list that is read to its end


class Client:
    """Asks one server. It may not be used by two threads at once."""

    def __init__(
        self, address: Address, token: str | None, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        headers = {
            "Accept": JSON,
            "Accept-Encoding": "identity",
            "User-Agent": f"rhythm/{__version__}",
        }
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self.address, self._transport, self._sleep = address, Transport(address, headers), sleep

    def close(self) -> None:
        """Closes the connection."""
        self._transport.close()

    def get(self, *path: str, **query: Any) -> Any:
        """Returns the JSON value at a path; parts of the query that are None are left out."""
        return self._value(self._asked("GET", _target(path, query), again=True))

    def view(self, kind: type[R], *path: str, **query: Any) -> R:
        """Returns the view at a path."""
        return self.read(kind, self.get(*path, **query))

    def read(self, kind: type[R], value: Any) -> R:
        """Returns the view that a JSON value stands for."""
        view: R = self.understood(lambda: decoded(kind, value))
        return view

    def part(self, value: Any, name: str, kind: Any) -> Any:
        """Returns a field of an answer, which must be of this type."""
        return self.understood(lambda: field(value, name, kind))

    def understood(self, call: Callable[[], Any]) -> Any:
        """Returns what the call returns; what it does not understand is a `ServerError`."""
        try:
            return call()
        except NotUnderstood as problem:
            raise not_understood(self.address, __version__, problem) from None

    def page(
        self, path: Sequence[str], limit: int, cursor: str | None, **query: Any
    ) -> tuple[list[Any], str | None]:
        """Returns at most `limit` items of a list, and the cursor of what follows.

        A page of the server ends early if it is large: then more are asked for.
        """
        items, after = list[Any](), cursor
        for page, after in self._pages(path, cursor, limit, query):  # noqa: B007  # the last one
            items += page
        return items, after

    def all(self, *path: str, after: str | None = None, **query: Any) -> Iterator[Any]:
        """Yields all items of a list, page by page; `after`: from this cursor on."""
        for page, _ in islice(self._pages(path, after, None, query), MOST_PAGES):
            yield from page

    def _pages(
        self, path: Sequence[str], cursor: str | None, most: int | None, query: Mapping[str, Any]
    ) -> Iterator[tuple[list[Any], str | None]]:
        """Yields pages of a list, each with the cursor of the next, until there are `most` items;
        None: until the last page."""
        count, asked = 0, LARGEST_PAGE
        while True:
            if most is not None:
                asked = min(LARGEST_PAGE, most - count)
            found = self.get(*path, limit=asked, cursor=cursor, **query)
            items = self.part(found, "items", list[Any])
            before, cursor = cursor, self.part(found, "cursor", str | None)
            count += len(items)
            yield items, cursor
            if cursor is None or (most is not None and count >= most):
                return
            if cursor == before or not items:  # it would be asked for ever
                raise not_understood(self.address, __version__, "its list does not go on")

    def post(
        self,
        *path: str,
        body: Mapping[str, Any] | None = None,
        key: str | None = None,
        again: bool | None = None,
        check: str = "",
        within_s: float = ANSWER_S,
        method: str = "POST",
    ) -> Any:
        """Does something, and returns the answer; None if it has no body.

        - `key`: an `Idempotency-Key`.
        - `again`: whether it is asked again if the answer was lost, because the server does it
          once. Without it: if there is a key.
        - `check`: how to see whether it was done, for the error if that is not known.
        """
        headers = {} if key is None else {"Idempotency-Key": key.encode()}
        answer = self._asked(
            method,
            _target(path, {}),
            body,
            headers,
            again=key is not None if again is None else again,
            check=check,
            within_s=within_s,
        )
        return self._value(answer) if answer.body else None

    def _asked(
        self,
        method: str,
        target: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, Any] | None = None,
        *,
        again: bool,
        check: str = "",
        within_s: float = ANSWER_S,
    ) -> Reply:
        """Returns the answer, which is a success. Raises the error that it stands for."""
        data, given = None, dict(headers or {})
        if method != "GET":
            data, given["Content-Type"] = json.dumps(body or {}, allow_nan=False).encode(), JSON
        answer = self._answer(method, target, data, given, again, check, within_s)
        if 200 <= answer.status < 300:
            return answer
        problem = error_of(answer, self.address, __version__)
        if method != "GET" and answer.status in UNSURE:
            raise Unavailable(_unsure(str(problem), check)) from None
        raise problem

    def _answer(
        self,
        method: str,
        target: str,
        data: bytes | None,
        headers: Mapping[str, Any],
        again: bool,
        check: str,
        within_s: float,
    ) -> Reply:
        """Returns the answer, whatever it is, asked as often as it may be."""
        waited_s, times, lost = 0.0, 0, False
        while True:
            times += 1
            try:
                answer = self._transport.ask(method, target, data, headers, within_s)
            except TooLarge as problem:
                raise ServerError(f"cannot use {self.address}: {problem}") from None
            except (NotSent, Lost) as problem:
                lost = lost or isinstance(problem, Lost)
                if not lost or not again or times >= TIMES:
                    said = f"the answer of {self.address} was lost: {problem}"
                    unsure = _unsure(said, check) if method != "GET" else said
                    raise Unavailable(unsure if lost else str(problem)) from problem
                self._sleep(PAUSE_S)
                continue
            if again and answer.status in OUTSIDE and times < TIMES:
                self._sleep(PAUSE_S)
                continue
            rest_s = _rest_s(answer)
            if rest_s is None or waited_s + rest_s > BUSY_S:
                return answer
            self._sleep(rest_s)
            waited_s += rest_s

    def _value(self, answer: Reply) -> Any:
        if answer.kind != JSON:
            raise not_understood(
                self.address, __version__, f"it is of the type {answer.kind!r:.80}, not {JSON}"
            )
        return self.understood(lambda: parsed(answer.body))


def _rest_s(answer: Reply) -> float | None:
    """Returns how long to wait until a request may be repeated that was not begun, because the
    caller asks too often; None for every other answer."""
    if answer.status != 429 or code_of(answer) != BUSY:
        return None
    given = answer.headers.get("retry-after", "")
    return float(given) if given.isascii() and given.isdigit() and len(given) < 6 else 1.0


def _unsure(said: str, check: str) -> str:
    """Returns the message for an act of which nobody knows whether it was done."""
    return f"{said}; {IT_MAY_HAVE_HAPPENED}{f': {check}' if check else ''}"


def _target(path: Sequence[str], query: Mapping[str, Any]) -> str:
    """Returns the path and query of a request. A part that is a list is given several times."""
    given = [(name, value) for name, value in query.items() if value is not None]
    asked = urlencode([(name, _text(value)) for name, value in given], doseq=True)
    parts = "/".join(quote(part, safe="") for part in path)
    return f"{API}/{parts}{f'?{asked}' if asked else ''}"


def _text(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
