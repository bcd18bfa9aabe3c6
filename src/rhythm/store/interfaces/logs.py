"""What executions have said: lines of logs, reports of progress, heartbeats of tasks.

Nothing waits for a line, and nothing depends on one. Lines are written after what they tell of, in
groups, and some of the last ones are lost if the process or the database dies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

from rhythm.record import Record
from rhythm.store.reading import Found

LineKind = Literal[0, 1, 2]
LOG: LineKind = 0
PROGRESS: LineKind = 1  # how far a workflow is
HEARTBEAT: LineKind = 2  # how far an attempt at a task is
LINE_KINDS = ("log", "progress", "heartbeat")


class Said(Record):
    """Something that an execution has said."""

    kind: LineKind
    level: int  # as in Python's `logging`
    message: str
    fields: str | None = None  # JSON; None: there are none


class NewLine(Record):
    """A line to write.

    `execution_id`, `turn` and `n` are its identity: lines that are equal in these are one line.
    """

    execution_id: str
    turn: int  # of a workflow the seq of its turn, of a task the fence of its attempt
    n: int
    age_us: int  # how long ago it was said
    kind: LineKind
    level: int
    attempt: int  # of a task; 0 for workflows
    name: str  # of the workflow or task
    worker: str
    message: str
    fields: str | None = None


class RootLines(Record):
    """Lines of one root to write, in their order, and how many before them could not be kept."""

    root_id: str
    lines: Sequence[NewLine] = ()
    dropped: int = 0


class LogLine(Record):
    """A line as it is stored.

    `position` grows with every line of the root, whoever writes it.
    """

    root_id: str
    position: int
    execution_id: str
    turn: int
    n: int
    at: int
    kind: LineKind
    level: int
    attempt: int
    name: str
    worker: str
    message: str
    fields: str | None = None


class LogTotals(Record):
    """How much is kept of one root: lines, their bytes, and how many lines were not kept."""

    root_id: str
    lines: int = 0
    bytes: int = 0
    dropped: int = 0
    position: int = 0


class LogStore(ABC):
    """What executions have said."""

    @abstractmethod
    def write(self, roots: Sequence[RootLines], again: bool = False) -> None:
        """Writes lines behind those that are there; each root is given once.

        Lines over the limits are counted and not written. `again`: the same call may have been
        committed before, with its answer lost; lines that are there are left out then, and what was
        dropped is not counted a second time if any line of the root is there. The transaction does
        not wait until it is on the disk.
        """

    @abstractmethod
    def read(
        self,
        id: str,
        after: int,
        limit: int,
        level: int = 0,
        most_bytes: int | None = None,
    ) -> Found[LogLine]:
        """Returns lines of an execution and of everything below it after a position, in order.

        Only those with at least this level.
        """

    @abstractmethod
    def last_progress(self, id: str) -> LogLine | None:
        """Returns the last report of progress, or heartbeat, of an execution or below it."""

    @abstractmethod
    def totals(self, root_id: str) -> LogTotals:
        """Returns how much is kept of a root, and how much was not."""

    @abstractmethod
    def prune_lines(self, older_than_s: float, limit: int) -> int:
        """Deletes lines that were written longer ago than `older_than_s`, of `limit` roots at most.

        Returns of how many roots.
        """
