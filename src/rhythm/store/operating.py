"""What operators do to many executions at once: ending them without ado, and finding those that are meant."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from rhythm.record import Record
from rhythm.store.access import Actor

PASS = 500  # executions that a pass ends in one transaction
PASSES = 10  # of one call


class Selection(Record):
    """Which executions are meant, of those that nobody else started. Times are microseconds since 1970; what is empty or None counts
    for nothing."""

    statuses: tuple[str, ...]  # as they are shown
    workflow: str | None = None
    queue: str | None = None
    created_after: int | None = None  # or at that time
    created_before: int | None = None
    attributes: str = "{}"  # JSON: names and plain values
    type: int | None = None
    held: bool = False  # only those that somebody has paused
    unheld: bool = False  # only the others
    unasked: bool = False  # only those that have not been asked to end
    unretried: bool = False  # only those of which there is no retry
    names: tuple[str, ...] | None = None  # only those of these workflows and tasks

    @property
    def asked(self) -> list[str]:
        """The names of what counts."""
        values = {name: getattr(self, name) for name in self._fields}
        return [name for name, value in values.items() if value is not None and value is not False and value != "{}"]


class Standing(Record):
    """Where in a queue an execution is, and who has it."""

    id: str
    state: int  # free, claimed or delayed
    queue: str
    since: int  # when it was queued
    due_at: int | None
    worker: str | None


class OperatingStore(ABC):
    """The database, for operators."""

    def terminate(self, ids: Sequence[str], actor: Actor | None = None) -> dict[str, bool]:
        """Ends executions and everything below them at once: no turn of theirs is taken, no result accepted. False: it has ended
        already; one that does not exist is left out.

        The executions themselves end in one transaction, with the record of who did it. It leaves a mark, by which nobody below them gets
        on; what is below ends in passes of a bounded size. A large family is left to the services after some of them."""
        ended = self._terminate_named(ids, actor)
        for _ in range(PASSES if any(ended.values()) else 0):
            if not self.end_terminated(PASS):
                break
        return ended

    @abstractmethod
    def _terminate_named(self, ids: Sequence[str], actor: Actor | None) -> dict[str, bool]:
        """Ends these, and marks everything below them."""

    @abstractmethod
    def end_terminated(self, limit: int) -> list[str]:
        """Ends some of what is below executions that were terminated: at most so many workflows and so many tasks; their ids. None: all
        have ended, and the marks are gone."""

    @abstractmethod
    def count(self, selection: Selection) -> tuple[int, int]:
        """How many are meant, and what time it is."""

    @abstractmethod
    def select(self, selection: Selection, after: tuple[int, str], limit: int) -> list[tuple[int, str]]:
        """`created_at` and id of those that are meant, oldest first, beginning after this one."""

    @abstractmethod
    def standing(self, ids: Sequence[str]) -> dict[str, Standing]:
        """Where these are in a queue; one that nobody must look at is left out."""
