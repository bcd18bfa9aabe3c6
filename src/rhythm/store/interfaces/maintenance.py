"""The work of the services: timers, rescue, repair of lost wakes, pruning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from rhythm.record import Record

# A worker without claims is forgotten after so long without a beat.
FORGOTTEN_S = 86_400.0


class MaintenanceDue(Record):
    """Which maintenance is due.

    `lost`: there is something for `rescue`; `cancelled`: for `end_cancelled_tasks`; `forgotten`:
    for `forget_workers`; `terminated`: for `executions.end_terminated`. `slot_us`: in how many
    microseconds there is something for `schedules.fire`, None if there is nothing.
    """

    lost: bool
    cancelled: bool
    forgotten: bool
    slot_us: int | None = None
    terminated: bool = False


class Recovered(Record):
    """What `Store.recover` did: the ids of claims that it took back, and of cancelled tasks that it
    ended."""

    rescued: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    # How long until a schedule is due, also one that another process has just made.
    slot_us: int | None = None
    terminated: tuple[str, ...] = ()  # ended below terminated executions


class MaintenanceStore(ABC):
    """The work of the services: timers, rescue, repair of lost wakes, pruning."""

    @abstractmethod
    def fire_timers(
        self, limit: int, late: Callable[[float], None] | None = None
    ) -> tuple[int, int | None]:
        """Fires due timers, frees rows whose delay is over, and times executions out. Returns how
        many, and when the next is due.

        `late` is called for each timer that fired, with the seconds by which it was late.
        """

    @abstractmethod
    def due(self, dead: bool = False) -> MaintenanceDue:
        """Returns which maintenance is due. `dead`: see `rescue`."""

    @abstractmethod
    def rescue(self, limit: int, crash_limit: int, dead: bool = False) -> list[str]:
        """Takes back expired claims and returns their ids.

        Executions that crashed `crash_limit` times fail. With `dead`, also takes back the claims of
        workers that have been silent for longer than the limit they announced. A worker without a
        beat is judged by the expiry of its claims alone.
        """

    @abstractmethod
    def end_cancelled_tasks(self, limit: int) -> list[str]:
        """Ends cancelled tasks that nobody has claimed. Returns their ids."""

    @abstractmethod
    def forget_workers(self, limit: int) -> None:
        """Deletes the beats of workers that have been silent for a day and have no claims."""

    @abstractmethod
    def parked(self, after: str, limit: int) -> list[str]:
        """Returns the ids of workflows that are parked and not paused, sorted, beginning after id
        `after`."""

    @abstractmethod
    def without_rows(self, children: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """Returns the children (workflow, number) that have no row: neither an execution nor a
        timer."""

    @abstractmethod
    def mend(self, stuck: Mapping[str, int], timers: Sequence[tuple[str, int]]) -> list[str]:
        """Wakes workflows that are still parked at this `seq`, and fires those of their timers
        whose rows are gone. Returns the ids of the workflows."""

    @abstractmethod
    def prune(self, older_than_s: float, limit: int) -> int:
        """Deletes root executions that ended longer ago than `older_than_s`, with everything below
        them. Returns how many.

        An execution is kept while one of its children goes on, or while an execution made from it
        has not ended.
        """

    @abstractmethod
    def prune_events(self, older_than_s: float, limit: int) -> int:
        """Deletes events that were published longer ago than `older_than_s`. Returns how many.

        An event that an execution has taken is kept until that execution has gone on.
        """
