"""Executions, for those who only look."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from rhythm.limits import TEXTS
from rhythm.record import Record
from rhythm.store.interfaces.executions import Execution
from rhythm.store.lifecycle import STATUS_NAMES
from rhythm.store.reading import Found, Moment, Place

# Whether somebody must decide is told in lists, too: of a plan no more than that. `%%` is `%` for
# both databases.
_ASKED_PLAN = """CASE WHEN status = 'paused' AND awaiting LIKE '%%"op":"approval"%%'
  THEN '{"op":"approval"}' ELSE 'null' END"""


# columns of an execution that may be large, and what stands for them
LARGE_COLUMNS = {"inputs": "'null'", "result": "NULL", "awaiting": _ASKED_PLAN}


# characters of others that a list reads
CUT_CHARACTERS = {
    "error": 4096,
    "attributes": TEXTS.attributes_bytes,
    "paused_reason": TEXTS.reason,
}


# the columns of a list; of those that are cut one character more, which tells that they were
_SHORT = {
    **LARGE_COLUMNS,
    **{name: f"substr({name}, 1, {most + 1})" for name, most in CUT_CHARACTERS.items()},
}


BRIEF_COLUMNS = ", ".join(
    f"{_SHORT[name]} AS {name}" if name in _SHORT else name for name in Execution._fields
)


class Transition(Record):
    """A committed step in the life of an execution."""

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
    """Transitions with the names of their statuses, which were read as they are stored."""
    return [
        each.replace(
            from_status=STATUS_NAMES[each.from_status], to_status=STATUS_NAMES[each.to_status]
        )
        for each in read
    ]


class ReadingStore(ABC):
    """Executions, for those who only look."""

    @abstractmethod
    def get(self, ids: Sequence[str]) -> dict[str, Execution]: ...

    @abstractmethod
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
        """Root executions, newest first. `before`: only those that come after the one of this
        `created_at` and id.

        `brief`: without inputs, results and what they await, which may be large. `names`: only
        those that have one of these names. `most_bytes`: no more than these and one row.
        """

    @abstractmethod
    def names(self, prefixes: Sequence[str]) -> list[str]:
        """The names of root executions that begin with one of these, none of which begins with
        another: each once."""

    @abstractmethod
    def root_names(self, ids: Sequence[str]) -> dict[str, str]:
        """The name of the root of each of these; one that does not exist is left out."""

    @abstractmethod
    def children(
        self,
        id: str,
        after: int = 0,
        limit: int | None = None,
        brief: bool = False,
        most_bytes: int | None = None,
    ) -> Found[Execution]:
        """In the order of their numbers, beginning after this one."""

    @abstractmethod
    def stamps(self, ids: Sequence[str]) -> dict[str, str]:
        """A text for each execution that is another one whenever it has changed; reads nothing
        large."""

    @abstractmethod
    def due(self, id: str) -> dict[int, int]:
        """When the timers and delayed children of an execution are due, by number; 0 is its own
        start."""

    @abstractmethod
    def history(self, id: str) -> list[Transition]: ...

    @abstractmethod
    def trace(
        self, id: str, after: Place | None, limit: int, most_bytes: int | None = None
    ) -> Found[Moment]:
        """What happened in an execution and below it after this place, in the order of time: two
        statements, however much it is.

        It covers the first `TRACED` executions below it, by id, and `TRACED_TURNS` of their turns.
        """
