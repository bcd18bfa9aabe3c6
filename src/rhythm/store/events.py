"""Which wait takes which event. Both stores ask this; they only say where the rows are.

A wait takes the first event of its type that was published since its execution started and has the
wanted values. An event is for every execution that waits, but each execution sees it once.
Thousands may wait for an event of the same type, each with the number of its own order: a wait is
stored with a key made of one wanted value, and an event looks only at waits whose key is one of its
own.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from rhythm.record import Record

EVENTS_PAGE = 200  # events read at once by those who look for one
LARGE = 10**300  # not every whole number beyond it is a float
ANY = ""  # the key of a wait that only reading it can tell


class Wait(Record):
    """A wait that is open, and since when its execution lives."""

    execution_id: str
    n: int
    type: str
    wanted: str
    since: int


class Event(Record):
    """An event as it is stored; `n` numbers those of its type."""

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


def matches(
    waits: Iterable[Wait], events: Iterable[Event], seen: Collection[tuple[str, str]] = ()
) -> list[Match]:
    """What is ended by what: the oldest event first, and of several waits of one execution the one
    with the lowest number.

    `seen`: executions and the events that they have taken before.
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
    """The key of a wait: of the first wanted value that is a text, a number, true or false. Without
    one, `ANY`."""
    return min(_keys(json.loads(wanted)), default=(ANY, ANY))[1]


def keys_of(data: Any) -> set[str]:
    """The keys of all waits that may want an event with this data."""
    return {ANY, *(key for _, key in _keys(data))} if isinstance(data, dict) else {ANY}


def _keys(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each path to a text, number, true or false, and the key: a hash of the path and the value."""
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
    """The same text for values that are equal as JSON: 1 is 1.0, but neither true nor "1"."""
    if isinstance(value, bool):
        return f"bool {value}"
    if isinstance(value, int | float):
        # and -0.0 is 0
        return f"number {float(value) + 0.0!r}" if abs(value) < LARGE else "large number"
    return f"text {value}"


def _at_path(data: Any, path: str) -> Any:
    """What lies at a dotted path of keys; null where it leads nowhere."""
    for key in path.split("."):
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON: 1 is 1.0, but not true."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)
