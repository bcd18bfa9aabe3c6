"""The schedules of a database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from rhythm.store.access import Actor
from rhythm.store.schedules import Change, Due, Fire, Firing, Schedule


class ScheduleStore(ABC):
    """The schedules of a database."""

    @abstractmethod
    def named(self, names: Sequence[str]) -> tuple[list[Schedule], int]:
        """Those of them that there are, by name; and the time."""

    @abstractmethod
    def after(self, after: str, limit: int, brief: bool = False) -> list[Schedule]:
        """So many of those that come after this name, in the order of their names. `brief`: without
        their inputs, which may be large."""

    @abstractmethod
    def look_at(self, names: Sequence[str]) -> list[Due]:
        """These schedules with all that a plan needs, as they are now. It locks nothing."""

    @abstractmethod
    def fires(self, name: str, limit: int) -> list[Fire]:
        """What became of the last slots of a schedule, newest first."""

    @abstractmethod
    def change(
        self, name: str, change: Change, actor: Actor | None = None, action: str = "schedule.change"
    ) -> Schedule | None:
        """Makes, changes or deletes (None) a schedule: `change` gets it as it is, if it is there,
        and the time. What it became.

        `change` is pure, and may be called again. What it leaves as it is is not recorded in the
        audit.
        """

    @abstractmethod
    def due(self, limit: int, without: Sequence[str] = ()) -> tuple[list[str], float | None]:
        """The names of schedules with something to do now, and in how many seconds the next one
        has."""

    @abstractmethod
    def fire(
        self, firings: Sequence[Firing], actor: Actor | None = None
    ) -> tuple[list[Fire], list[str]]:
        """Does all this in one transaction: what became of the slots, and the schedules about which
        nothing was done, since they have changed after they were looked at or are gone.

        A slot that has its row already is left as it is. Schedules that another process has at this
        moment are left to it, unless an actor asks: then they are waited for.
        """
