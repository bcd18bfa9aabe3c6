"""Executions, read only for display."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from rhythm.filters.terms import ExecutionFilter, Term
from rhythm.limits import TEXTS
from rhythm.record import Record
from rhythm.store.interfaces.executions import Execution
from rhythm.store.interfaces.operating import Selection
from rhythm.store.lifecycle import STATUS_NAMES
from rhythm.store.reading import EVERYTHING, Alike, Found, Moment, Place

# Lists also say whether somebody must decide, and read no more than that of the plan. `%%` means
# `%` on both databases.
_ASKED_PLAN = """CASE WHEN status = 'paused' AND awaiting LIKE '%%"op":"approval"%%'
  THEN '{"op":"approval"}' ELSE 'null' END"""


# Columns of an execution that may be large, and what lists read in their place.
LARGE_COLUMNS = {
    "inputs": "'null'",
    "result": "NULL",
    "awaiting": _ASKED_PLAN,
    "paused_metadata": "NULL",
}


# How many characters of other columns a list reads.
CUT_CHARACTERS = {
    "error": 4096,
    "attributes": TEXTS.attributes_bytes,
    "paused_reason": TEXTS.reason,
}


# The columns of a list. Columns that are cut have one character more than allowed, which shows that
# they were cut.
_SHORT = {
    **LARGE_COLUMNS,
    **{name: f"substr({name}, 1, {most + 1})" for name, most in CUT_CHARACTERS.items()},
}


BRIEF_COLUMNS = ", ".join(
    f"{_SHORT[name]} AS {name}" if name in _SHORT else name for name in Execution._fields
)


class Transition(Record):
    """One row of the history of an execution: a committed change of its status."""

    execution_id: str
    seq: int
    fence: int
    worker: str
    from_status: str
    to_status: str
    cause: str
    statement: int
    at: int
    error: str | None = None


def with_names(read: Iterable[Any]) -> list[Transition]:
    """Returns transitions with the names of their statuses; they were read with the stored
    numbers."""
    return [
        each.replace(
            from_status=STATUS_NAMES[each.from_status], to_status=STATUS_NAMES[each.to_status]
        )
        for each in read
    ]


class ReadingStore(ABC):
    """Reads executions for display."""

    @abstractmethod
    def get(self, ids: Sequence[str]) -> dict[str, Execution]:
        """Returns these executions by id. Ids that do not exist are left out."""

    @abstractmethod
    def result(self, id: str) -> str | None:
        """Returns the result of an execution as JSON; None unless it has completed."""

    @abstractmethod
    def search(
        self,
        selection: Selection,
        before: tuple[int, str] | None,
        limit: int,
        brief: bool = False,
        most_bytes: int | None = None,
    ) -> Found[Execution]:
        """Returns the selected root executions, newest first, at most `limit`.

        With a filter by `finished`, those that have ended last come first.

        `before`: begins after the execution with this `created_at` (or `finished_at`) and id.
        `brief`: without inputs, results and what is awaited, which may be large. `most_bytes`:
        reading stops once the rows have this many bytes; at least one row is returned.
        """

    def find(
        self,
        name: str | None,
        status: str | None,
        before: tuple[int, str] | None,
        limit: int,
        brief: bool = False,
        names: Sequence[str] | None = None,
        most_bytes: int | None = None,
    ) -> Found[Execution]:
        """Does what `search` does, for one workflow and one status."""
        given = {"workflow": name, "status": status}
        terms = (
            Term(field, values=(value,)) for field, value in given.items() if value is not None
        )
        shared = None if names is None else tuple(names)
        selection = Selection(ExecutionFilter(tuple(terms)), names=shared)
        return self.search(selection, before, limit, brief, most_bytes)

    @abstractmethod
    def names(self, prefixes: Sequence[str]) -> list[str]:
        """Returns the names of root executions that begin with one of these prefixes, each name
        once.

        No prefix may begin with another.
        """

    @abstractmethod
    def root_names(self, ids: Sequence[str]) -> dict[str, str]:
        """Returns the name of the root of each execution. Ids that do not exist are left out."""

    @abstractmethod
    def children(
        self,
        id: str,
        after: int = 0,
        limit: int | None = None,
        brief: bool = False,
        most_bytes: int | None = None,
    ) -> Found[Execution]:
        """Returns the children of an execution by their number, beginning after number `after`.

        `brief` and `most_bytes`: see `find`.
        """

    @abstractmethod
    def stamps(self, ids: Sequence[str]) -> dict[str, str]:
        """Returns a text for each execution that changes whenever the execution changes.

        Reads nothing large.
        """

    @abstractmethod
    def due(self, id: str) -> dict[int, int]:
        """Returns when the timers and delayed children of an execution are due, by number. 0 is its
        own start."""

    @abstractmethod
    def history(self, id: str) -> list[Transition]:
        """Returns the history of an execution: its turns, or the attempts at a task after which
        another one came: they failed, or their workers died."""

    @abstractmethod
    def trace(
        self,
        id: str,
        after: Place | None,
        limit: int,
        most_bytes: int | None = None,
        alike: int = EVERYTHING,
    ) -> Found[Moment]:
        """Returns what happened in an execution and below it after this place, in the order of
        time.

        Of more than so many executions that are `alike`, nothing: see there.

        It takes two statements, however much there is. It covers the first `MAX_TRACED_EXECUTIONS`
        executions below it, by id, and `MAX_TRACED_TURNS` of their turns (`store.reading`).
        """

    @abstractmethod
    def alike(self, id: str, most: int) -> list[Alike]:
        """Returns what there is below an execution more than `most` times, and how it has ended.

        That is executions of one name that are equally deep. It covers as much as `trace`.
        """
