"""What services do: timers, rescue, mending, pruning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from rhythm.record import Record

# after so long without a beat, and without claims, nobody asks about a worker any more
FORGOTTEN_S = 86_400.0


class MaintenanceDue(Record):
    """Whether there is something for `rescue`, `end_cancelled_tasks` and `forget_workers`; in how
    long there is for `schedules.fire`; and whether there is for `executions.end_terminated`."""

    lost: bool
    cancelled: bool
    forgotten: bool
    slot_us: int | None = None
    terminated: bool = False


class Recovered(Record):
    """What a look after the lost has done: claims that were taken back, cancelled tasks that were
    ended."""

    rescued: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    # until a schedule has something to do, also if another process has just made it
    slot_us: int | None = None
    terminated: tuple[str, ...] = ()  # what was left below executions that were terminated


class MaintenanceStore(ABC):
    """What services do: timers, rescue, mending, pruning."""

    @abstractmethod
    def fire_timers(
        self, limit: int, late: Callable[[float], None] | None = None
    ) -> tuple[int, int | None]:
        """Fires what is due, frees what was delayed until now, times executions out: how many, and
        when the next is due.

        `late` is told of each timer that has fired, by how many seconds it was late.
        """

    @abstractmethod
    def due(self, dead: bool = False) -> MaintenanceDue: ...

    @abstractmethod
    def rescue(self, limit: int, crash_limit: int, dead: bool = False) -> list[str]:
        """Takes back claims that have expired; those that crashed too often are failed.

        With `dead` also the claims of workers that have been silent for as long as they said they
        may be. One of which there is no beat is judged by the expiry of its claims alone.
        """

    @abstractmethod
    def end_cancelled_tasks(self, limit: int) -> list[str]:
        """Ends cancelled tasks that nobody holds; their ids."""

    @abstractmethod
    def forget_workers(self, limit: int) -> None:
        """Deletes the beats of workers that have been silent for a day and have no claims."""

    @abstractmethod
    def parked(self, after: str, limit: int) -> list[str]:
        """Workflows that nobody looks at and that are not paused, by id, beginning after this
        one."""

    @abstractmethod
    def without_rows(self, children: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """Of these children (workflow, number) those of which there is no row: neither an execution
        nor a timer."""

    @abstractmethod
    def mend(self, stuck: Mapping[str, int], timers: Sequence[tuple[str, int]]) -> list[str]:
        """Wakes workflows that are still parked at this `seq`; of these it fires the timers whose
        rows are gone. The ids."""

    @abstractmethod
    def prune(self, older_than_s: float, limit: int) -> int:
        """Deletes root executions that ended so long ago, with everything below them: how many.

        Those stay of which a child still goes on, or from which an execution was made that has not
        ended.
        """

    @abstractmethod
    def prune_events(self, older_than_s: float, limit: int) -> int:
        """Deletes events that were published so long ago: how many. Those stay that an execution
        has taken, until it has gone on."""
