"""Which wait takes which event. Both stores ask this; they only say where the rows are.

A wait takes the first event of its type that was published since its execution started and has the wanted values. An event is
for every execution that waits, but each execution sees it once.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from rhythm.record import Record

PAGE = 200  # events read at once by those who look for one


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


def matches(waits: Iterable[Wait], events: Iterable[Event], seen: Collection[tuple[str, str]] = ()) -> list[Match]:
    """What is ended by what: the oldest event first, and of several waits of one execution the one with the lowest number.

    `seen`: executions and the events that they have taken before.
    """
    in_order = sorted(waits, key=lambda wait: (wait.execution_id, wait.n))
    open_ = {(wait.execution_id, wait.n): (wait, json.loads(wait.wanted).items()) for wait in in_order}
    taken, found = set(seen), list[Match]()
    for event in sorted(events, key=lambda event: (event.published_at, event.n)):
        data = json.loads(event.data)
        for key, (wait, wanted) in list(open_.items()):
            fresh = wait.type == event.type and event.published_at >= wait.since and (wait.execution_id, event.id) not in taken
            if fresh and all(_same(_at_path(data, path), value) for path, value in wanted):
                taken.add((wait.execution_id, event.id))
                found.append(Match(wait, event))
                del open_[key]
    return found


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
