"""Reading what may be much: rows up to a size, and what has happened in an execution and below it,
page by page.

A page costs the same number of statements however much there is, and no more memory than it may:
where it ends is decided by the database, or while its rows come in, before the rest is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from rhythm.record import Record
from rhythm.store.lifecycle import StatusNumber

T = TypeVar("T")
MAX_TRACED_EXECUTIONS = 10_000  # in one trace
MAX_TRACED_TURNS = 100_000  # and attempts, of these
STARTED, ENDED, TURN, RESUMED = range(4)  # kinds of moments, in the order of those at one time


class Found(list[T]):
    """Rows that were read up to a size. `cut`: others follow that were not read."""

    cut: bool = False

    @classmethod
    def of(cls, rows: Iterable[T], cut: bool) -> Found[T]:
        made = cls(rows)
        made.cut = cut
        return made


def size_of(row: Iterable[Any]) -> int:
    """The bytes of the texts of a row."""
    return sum(
        len(value) if value.isascii() else len(value.encode())
        for value in row
        if isinstance(value, str)
    )


def up_to(rows: Iterable[Any], most_bytes: int | None) -> tuple[list[Any], bool]:
    """The rows until they have so many bytes, at least one; and whether others follow. No more than
    one of those is taken."""
    if most_bytes is None:
        return list(rows), False
    taken, size = list[Any](), 0
    for row in rows:
        if taken and size >= most_bytes:
            return taken, True
        taken.append(row)
        size += size_of(row)
    return taken, False


class Place(Record):
    """Where in a trace something stands: by time; of what one commit did, ends come first, then
    turns, then starts; what is below another ends before it, and starts after it."""

    at: int
    rank: int
    length: int  # of the id: what is below another has a longer one. Of ends it is negative
    child_no: int
    id: str
    kind: int
    n: int  # of the turn or resume


class Moment(Record):
    """Something that happened. `detail`: JSON; of a start the inputs, of an end the result or
    error, of a turn its error, of a resume the data."""

    place: Place
    name: str
    type: int
    version: str
    status: StatusNumber
    detail: str | None
    what: str = ""  # why a turn was taken; what a resume was triggered by
    worker: str = ""
    statement: int = 0
    by_id: str = ""
    reason: str = ""
