"""Schedules as rows: what starts a workflow by the clock, and what became of each of its slots.

A slot of a schedule is one row of `schedule_fires`, written in the transaction that starts its
execution and moves the schedule on to its next slot. What to do about a schedule that is due is
worked out before that, outside of any transaction, by a pure plan (`rhythm.engine.schedules`). The
plan is valid only for the schedule as it was read: every change of it, and every slot, makes a new
revision, and under the lock of the row a plan for another revision is dropped. Any number of
processes may try, and one does it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rhythm.record import Record
from rhythm.schedule_times import Timing
from rhythm.store.access import Act, act

if TYPE_CHECKING:
    from rhythm.store.interfaces.executions import NewExecution

KEPT_SLOTS = 100  # rows of a schedule's past
REPEATED = "repeated"


class Schedule(Record):
    """A rule by which executions of a workflow start."""

    name: str
    workflow: str
    cron: str | None = None
    tz: str = "UTC"
    every_us: int | None = None
    anchor_at: int = 0  # from when an interval counts
    at: int | None = None  # of a schedule that fires once
    inputs: str = "null"
    overlap: str = "skip"
    catch_up: int = 1  # how many missed slots are run later
    origin: str = ""  # the workflow whose `@schedule` annotation made it
    next_at: int | None = None  # the next slot; None: no more
    queued_at: int | None = None  # a slot that waits for the end of the execution before it
    paused_at: int | None = None
    paused_by: str = ""
    paused_reason: str = ""
    created_at: int = 0
    created_by: str = ""
    updated_at: int = 0
    # JSON: whose data it gives to what it starts, and with which permissions
    provenance: str | None = None

    @property
    def timing(self) -> Timing:
        return Timing(self.cron, self.tz, self.every_us, self.anchor_at, self.at)


class Fire(Record):
    """What became of a slot: "started", "skipped" (an execution still ran), "missed" (with all
    slots until `until_at`) or "failed".

    If somebody asks for a run a second time with the same key, nothing is written, and the outcome
    is "repeated".
    """

    schedule: str
    slot_at: int
    outcome: str
    execution_id: str | None = None
    until_at: int | None = None
    manual: bool = False  # somebody asked for it: it is no slot of the clock
    detail: str = ""
    at: int = 0  # when that was decided


class NewFire(Record):
    """A slot to write, and the execution that it starts."""

    fire: Fire
    start: NewExecution | None = None

    def started(self, id: str | None) -> Fire:
        """Returns what became of the slot, with this execution: the new one, or the one that
        already had the key."""
        repeated = self.fire.manual and self.start is not None and id != self.start.id
        return self.fire.replace(
            execution_id=id, outcome=REPEATED if repeated else self.fire.outcome
        )


class Due(Record):
    """A schedule as it was read, and its executions that have not ended."""

    schedule: Schedule
    running: tuple[str, ...]
    now: int
    revision: int = 0


class Firing(Record):
    """What to do about a schedule: slots to write, executions to start and to cancel, and the slot
    where it goes on.

    It is for this `revision` of the schedule alone. Without a revision it is for any, and the next
    slots of the schedule are not changed.
    """

    name: str
    revision: int | None
    next_at: int | None = None
    queued_at: int | None = None
    fires: tuple[NewFire, ...] = ()
    cancels: tuple[str, ...] = ()


Change = Callable[[Schedule | None, int], Schedule | None]
Registered = Callable[[Sequence[Schedule], int], Mapping[str, Schedule | None]]


def changed(action: str, name: str, before: Schedule | None, after: Schedule | None) -> Act:
    """Returns the audit row for a change: what the schedule is after it."""
    if after is None:
        return Act("schedule.delete", name)
    named = ("workflow", "cron", "tz", "every_us", "at", "overlap", "catch_up", "paused_reason")
    detail = {key: value for key in named if (value := getattr(after, key)) not in (None, "")}
    return act(action if before else "schedule.create", name, **detail)


def ran(fire: Fire) -> Act:
    """Returns the audit row for a run that somebody asked for."""
    return act("schedule.run", fire.schedule, execution=fire.execution_id)
