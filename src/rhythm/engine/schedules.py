"""What becomes of the slots of a schedule: which are run, which were missed, and what an execution that still runs means for the next.

Pure: rows and the time go in, what is to be written comes out. The slots themselves are found by `rhythm.slots`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from rhythm.ir.program import Program
from rhythm.record import Record
from rhythm.slots import EPOCH, US, check_timing, latest_slots, next_slot
from rhythm.store.base import WORKFLOW, NewExecution
from rhythm.store.schedules import Due, Fire, Firing, NewFire, Schedule

OVERLAPS = ("skip", "queue", "allow", "cancel_other")
MOST_CAUGHT_UP = 1000
LATE_US = 60 * US  # a slot that comes so late is not missed yet

NewId = Callable[[], str]


class Wanted(Record):
    """A schedule as somebody asks for it."""

    workflow: str
    cron: str | None = None
    tz: str = "UTC"
    every_us: int | None = None
    at: int | None = None
    inputs: str = "null"
    overlap: str = "skip"
    catch_up: int = 1


# by the clock


def fire(due: Due, program: Program | None, new_id: NewId) -> Firing | None:
    """What to do about a schedule now; None: nothing. Without a `program` there is no workflow of its name.

    `ValueError` if its time zone is not known here: another process may know it.
    """
    schedule = due.schedule
    if schedule.paused_at is not None:
        return None
    slots, missed, next_at = _passed(schedule, due.now)
    round = _Round(due, program, new_id)
    if schedule.queued_at is not None:
        round.go_on(schedule.queued_at)
    for i, slot in enumerate(slots):
        round.run(slot, last=i == len(slots) - 1)
    if not (missed or round.fires or slots):
        return None
    return Firing(schedule.name, next_at, round.queued_at, (*missed, *round.fires), tuple(round.cancels))


def _passed(schedule: Schedule, now: int) -> tuple[list[int], list[NewFire], int | None]:
    """The slots to run, one row for all that were missed before them, and the slot to come."""
    first = schedule.next_at
    if first is None or first > now:
        return [], [], first
    latest = latest_slots(schedule.timing, first, now, max(schedule.catch_up, 1) + 1)
    in_time = now - latest[-1] <= LATE_US
    count = schedule.catch_up or int(in_time)
    older, slots = latest[: max(len(latest) - count, 0)], latest[max(len(latest) - count, 0) :]
    missed = [NewFire(Fire(schedule.name, first, "missed", until_at=older[-1]))] if older else []
    return slots, missed, next_slot(schedule.timing, latest[-1])


class _Round:
    """The slots of one schedule, one after the other."""

    def __init__(self, due: Due, program: Program | None, new_id: NewId) -> None:
        self.schedule, self.program, self.new_id = due.schedule, program, new_id
        self.running, self.queued_at = list(due.running), due.schedule.queued_at
        self.fires: list[NewFire] = []
        self.cancels: list[str] = []

    def go_on(self, queued_at: int) -> None:
        """A slot that had to wait is run as soon as nothing else runs."""
        if not self.running:
            self.queued_at = None
            self.start(queued_at)

    def run(self, slot: int, last: bool) -> None:
        match self.schedule.overlap:
            case "allow":
                self.start(slot)
            case "cancel_other" if last:
                self.cancels, self.running = [*self.cancels, *self.running], []
                self.start(slot)
            case _ if not self.running and self.queued_at is None and self.schedule.overlap != "cancel_other":
                self.start(slot)
            case "queue" if self.queued_at is None:
                self.queued_at = slot
            case _:
                self.fires.append(NewFire(Fire(self.schedule.name, slot, "skipped", detail=self._why())))

    def _why(self) -> str:
        if self.schedule.overlap == "cancel_other":
            return "a later slot takes its place"
        return f"{self.running[0]} still runs" if self.running else "a slot before it waits"

    def start(self, slot: int) -> None:
        if self.program is None:
            why = f"there is no workflow `{self.schedule.workflow}`"
            self.fires.append(NewFire(Fire(self.schedule.name, slot, "failed", detail=why)))
            return
        new = execution(self.schedule, self.program, slot, self.new_id())
        self.fires.append(NewFire(Fire(self.schedule.name, slot, "started", new.id), new))
        self.running.append(new.id)


def run_now(due: Due, program: Program, new_id: NewId, key: str | None = None) -> Firing:
    """An execution because somebody asks for one, whatever else runs."""
    schedule = due.schedule
    new = execution(schedule, program, due.now, new_id()).replace(key=key)
    fired = NewFire(Fire(schedule.name, due.now, "started", new.id, manual=True), new)
    return Firing(schedule.name, schedule.next_at, schedule.queued_at, (fired,))


def execution(schedule: Schedule, program: Program, slot: int, id: str) -> NewExecution:
    """The execution of a slot. Its key is that of the slot: a second one for it starts nothing."""
    at = shown(slot)
    return NewExecution(
        id, WORKFLOW, program.name, program.options.get("queue") or "default", schedule.inputs, program.version,
        timeout_s=program.options.get("timeout"), key=f"schedule:{schedule.name}@{at}", started_by=f"schedule:{schedule.name}",
        attributes=json.dumps({"schedule": schedule.name, "scheduled_at": at}, ensure_ascii=False),
    )  # fmt: skip


def shown(at: int) -> str:
    return (EPOCH + timedelta(microseconds=at)).isoformat().replace("+00:00", "Z")


# changes


def put(before: Schedule | None, name: str, wanted: Wanted, now: int, by: str = "", origin: str = "") -> Schedule:
    """A schedule as it is wanted. While its times stay the same, so does its next slot; a pause stays in any case."""
    asked = {field: getattr(wanted, field) for field in Wanted._fields}
    fresh = Schedule(name, created_at=now, created_by=by, updated_at=now, origin=origin, anchor_at=now, **asked)
    if before is None or _times(before) != _times(fresh):
        fresh = fresh.replace(next_at=next_slot(fresh.timing, now))
    else:
        fresh = fresh.replace(anchor_at=before.anchor_at, next_at=before.next_at)
    if before is None:
        return fresh
    kept = ("queued_at", "paused_at", "paused_by", "paused_reason", "created_at", "created_by")
    after = fresh.replace(updated_at=before.updated_at, **{field: getattr(before, field) for field in kept})
    return after if after == before else after.replace(updated_at=now)


def _times(schedule: Schedule) -> tuple[Any, ...]:
    return schedule.cron, schedule.tz, schedule.every_us, schedule.at


def check_wanted(wanted: Wanted) -> None:
    """`ValueError`, with what to write instead."""
    check_timing(Schedule("", **{field: getattr(wanted, field) for field in Wanted._fields}).timing)
    if wanted.overlap not in OVERLAPS:
        raise ValueError(f"overlap is one of {', '.join(OVERLAPS)}, not {wanted.overlap!r:.80}")


def paused(before: Schedule, now: int, by: str, reason: str) -> Schedule:
    if before.paused_at is not None:
        return before
    return before.replace(paused_at=now, paused_by=by, paused_reason=reason, updated_at=now)


def resumed(before: Schedule, now: int) -> Schedule:
    """Slots that passed meanwhile are not made up for; a date that comes only once still comes."""
    if before.paused_at is None:
        return before
    next_at = before.next_at if before.at is not None else next_slot(before.timing, now)
    return before.replace(paused_at=None, paused_by="", paused_reason="", next_at=next_at, updated_at=now)


def registered(wanted: Mapping[str, Sequence[Wanted]], existing: Sequence[Schedule], now: int, by: str = "") -> dict[str, Schedule | None]:
    """The schedules of workflows, by annotation, after these were registered: `@name`, then `@name.2` and so on. None: it is gone."""
    before = {schedule.name: schedule for schedule in existing}
    after: dict[str, Schedule | None] = dict.fromkeys(before)
    for workflow, schedules in wanted.items():
        for i, each in enumerate(schedules, 1):
            name = f"@{workflow}" if i == 1 else f"@{workflow}.{i}"
            after[name] = put(before.get(name), name, each, now, by, workflow)
    return {name: schedule for name, schedule in after.items() if schedule != before.get(name) or schedule is None}
