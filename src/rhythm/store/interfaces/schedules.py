"""Schedules: reading, changing and firing them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from rhythm.store.access import Actor
from rhythm.store.schedules import Change, Due, Fire, Firing, Schedule


class ScheduleStore(ABC):
    """Reads, changes and fires schedules."""

    @abstractmethod
    def named(self, names: Sequence[str]) -> tuple[list[Schedule], int]:
        """Returns the schedules with these names, sorted by name, and the time of the database."""

    @abstractmethod
    def after(self, after: str, limit: int, brief: bool = False) -> list[Schedule]:
        """Returns the next `limit` schedules by name, beginning after name `after`.

        `brief`: without their inputs, which may be large.
        """

    @abstractmethod
    def load_due(self, names: Sequence[str]) -> list[Due]:
        """Returns these schedules with all that a plan needs, as they are now. It locks nothing."""

    @abstractmethod
    def fires(self, name: str, limit: int) -> list[Fire]:
        """Returns what became of the last slots of a schedule, newest first."""

    @abstractmethod
    def change(
        self, name: str, change: Change, actor: Actor | None = None, action: str = "schedule.change"
    ) -> Schedule | None:
        """Creates, changes or deletes a schedule, and returns what it became. None: it was deleted,
        or there is none.

        `change` gets the schedule, or None if there is none, and the time. It returns the new
        schedule, or None to delete it. `change` is pure, and may be called again. If it changes
        nothing, the audit records nothing.
        """

    @abstractmethod
    def due(self, limit: int, without: Sequence[str] = ()) -> tuple[list[str], float | None]:
        """Returns the names of schedules that are due now, and in how many seconds the next one is
        due."""

    @abstractmethod
    def fire(
        self, firings: Sequence[Firing], actor: Actor | None = None
    ) -> tuple[list[Fire], list[str]]:
        """Carries out all these plans in one transaction.

        Returns what became of the slots, and the names of the schedules that were left alone
        because they changed after they were read, or no longer exist. A slot that has a row already
        stays as it is. A schedule that another process has locked is left to that process, unless
        there is an `actor`: then this call waits for it.
        """
