"""Reading large results: rows up to a size, and the trace of an execution and everything below it,
page by page.

A page costs the same number of statements however much there is, and its memory is bounded: the
database decides where it ends, or the reader does while rows come in, before the rest is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from rhythm.record import Record
from rhythm.store.lifecycle import StatusNumber

T = TypeVar("T")
MAX_TRACED_EXECUTIONS = 10_000  # in one trace
MAX_TRACED_TURNS = 100_000  # turns and attempts, of these executions
# Kinds of moments; the last criterion but one of their order.
STARTED, ENDED, TURN, RESUMED, SIGNAL, VOTE = range(6)
VOTES = 2**20  # in `n` of a vote: the number of its approval, times this, and its own
EVERYTHING = 2**31  # as `alike`: nothing is left out, however many are alike


class Found(list[T]):
    """Rows that were read up to a size. `cut`: more rows follow that were not read."""

    cut: bool = False

    @classmethod
    def of(cls, rows: Iterable[T], cut: bool) -> Found[T]:
        made = cls(rows)
        made.cut = cut
        return made

    def after_pruning(self, full: bool) -> Found[T]:
        """Returns these rows, of which some may have been deleted after they were chosen.

        `full`: so many were chosen that more may follow.
        """
        self.cut = self.cut or full
        return self


def size_of(row: Iterable[Any]) -> int:
    """Returns the bytes of the texts in a row."""
    return sum(
        len(value) if value.isascii() else len(value.encode())
        for value in row
        if isinstance(value, str)
    )


def up_to(rows: Iterable[Any], most_bytes: int | None) -> tuple[list[Any], bool]:
    """Returns the rows until they have so many bytes, at least one, and whether others follow.

    Of the others at most one is read.
    """
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
    """The position of something in a trace, by time.

    Within one commit, ends come first, then turns, then starts. A child ends before its parent, and
    starts after it.
    """

    at: int
    rank: int
    # The length of the id: a child has a longer one than its parent. Negative for ends.
    length: int
    child_no: int
    id: str
    kind: int
    n: int  # of the turn, resume, signal or vote


class Moment(Record):
    """Something that happened.

    `detail`: JSON; of a start the inputs, of an end the result or error, of a turn its error, of a
    resume the data, of a signal the payload.
    """

    place: Place
    name: str
    type: int
    version: str
    status: StatusNumber
    detail: str | None
    # the cause of a turn, what triggered a resume, the name of a signal, what somebody voted
    what: str = ""
    worker: str = ""
    statement: int = 0
    by_id: str = ""
    reason: str = ""
    attempt: int = 0  # of a task that has ended, or of an attempt that has failed
    began_at: int | None = None  # of what has ended: when its first attempt began


class Alike(Record):
    """Executions in a family that have the same name and are equally deep below its root."""

    name: str
    type: int
    depth: int  # below the root
    count: int
    completed: int
    failed: int
    ended: int
    first_at: int  # when the first one was created
    last_at: int | None  # when the last one of those that have ended has ended
    slowest_id: str
    slowest_us: int | None
    first_failed: str | None
