"""Which wait takes which event: both stores ask this module, and only supply the rows.

A wait takes the first event of its type that was published since its execution started and has the
wanted values. An event is for every execution that waits, but each execution sees it once.
Thousands may wait for an event of the same type, each with the number of its own order. So a wait
is stored with a key made of one wanted value, and an event reads only waits whose key is one of its
own.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from rhythm.record import Record

# Events read at a time when a new wait looks for an earlier one: at first, and then.
FIRST_EVENTS, EVENTS_PAGE = 10, 200
# How far events may be out of order: those of one turn are some microseconds apart.
MAX_DISORDER_US = 200_000
LARGE = 10**300  # some integers above it cannot become a float
ANY = ""  # the key of a wait that has no value to make a key of


class Wait(Record):
    """An open wait, and since when its execution exists."""

    execution_id: str
    n: int
    type: str
    wanted: str
    since: int


class Event(Record):
    """An event as it is stored; `n` numbers the events of its type."""

    id: str
    type: str
    n: int
    data: str
    published_at: int
    provenance: str | None = None  # JSON: whose data it carries


class Match(Record):
    """A wait and the event that ends it."""

    wait: Wait
    event: Event


def search_after(wait: Wait, last: tuple[int, int, int] | None) -> tuple[int, int]:
    """Returns after which place, (published_at, n), a new wait looks for its event.

    `last`: the place of an event that the same execution took for the same wanted values, and when.
    It took the first one, so of those that were there none is left before it. Those that came later
    were published at that time or later.
    """
    if last is None:
        return wait.since, 0
    published_at, n, taken_at = last
    return max((wait.since, 0), min((published_at, n), (taken_at, 0)))


def matches(
    waits: Iterable[Wait], events: Iterable[Event], seen: Collection[tuple[str, str]] = ()
) -> list[Match]:
    """Returns which event ends which wait.

    The oldest event comes first, and of several waits of one execution the one with the lowest
    number. `seen`: pairs of an execution and an event that it took before.
    """
    open_: dict[tuple[str, str], dict[tuple[str, int], Wait]] = defaultdict(dict)
    for wait in waits:
        open_[wait.type, key_of(wait.wanted)][wait.execution_id, wait.n] = wait
    taken, found = set(seen), list[Match]()
    for event in sorted(events, key=lambda event: (event.published_at, event.n)):
        data = json.loads(event.data)
        boxes = [open_[event.type, key] for key in keys_of(data) if (event.type, key) in open_]
        for place, wait in sorted((place, wait) for box in boxes for place, wait in box.items()):
            fresh = event.published_at >= wait.since and (wait.execution_id, event.id) not in taken
            if fresh and all(
                _same(_at_path(data, path), value)
                for path, value in json.loads(wait.wanted).items()
            ):
                taken.add((wait.execution_id, event.id))
                found.append(Match(wait, event))
                del open_[wait.type, key_of(wait.wanted)][place]
    return found


def key_of(wanted: str) -> str:
    """Returns the key of a wait, made from its first wanted value (by path) that is a text, a
    number, true or false.

    Without one, `ANY`.
    """
    return min(_keys(json.loads(wanted)), default=(ANY, ANY))[1]


def keys_of(data: Any) -> set[str]:
    """Returns the keys of all waits that may want an event with this data."""
    return {ANY, *(key for _, key in _keys(data))} if isinstance(data, dict) else {ANY}


def _keys(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields each path to a text, number, true or false, and its key: a hash of the path and the
    value."""
    stack = [("", values)]
    while stack:
        before, inside = stack.pop()
        for name, value in inside.items():
            if isinstance(value, dict):
                stack.append((f"{before}{name}.", value))
            elif value is not None and not isinstance(value, list):
                path = f"{before}{name}"
                yield (
                    path,
                    hashlib.blake2b(
                        f"{path}\0{_plain(value)}".encode("utf-8", "surrogatepass"), digest_size=12
                    ).hexdigest(),
                )


def _plain(value: Any) -> str:
    """Returns the same text for values that are equal as JSON: 1 is 1.0, but neither true nor
    "1"."""
    if isinstance(value, bool):
        return f"bool {value}"
    if isinstance(value, int | float):
        # adding 0.0 turns -0.0 into 0.0
        return f"number {float(value) + 0.0!r}" if abs(value) < LARGE else "large number"
    return f"text {value}"


def _at_path(data: Any, path: str) -> Any:
    """Returns the value at a dotted path of keys; None where there is nothing."""
    for key in path.split("."):
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _same(left: Any, right: Any) -> bool:
    """Returns whether two values are equal as JSON: 1 is 1.0, but not true."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)
