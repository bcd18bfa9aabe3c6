"""Decides what becomes of the slots of a schedule: which are run, and which were missed.

It also decides what an execution that still runs means for the next slot. Pure: rows and the time
go in, what is to be written comes out. The slots themselves are found by `rhythm.schedule_times`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from rhythm.ir.program import Program
from rhythm.record import Record
from rhythm.schedule_times import EPOCH, US, check_overlap, check_timing, latest_slots, next_slot
from rhythm.store.access import Actor
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.lifecycle import WORKFLOW
from rhythm.store.provenance import dump_authority, dump_provenance, load_provenance, provenance_of
from rhythm.store.schedules import Due, Fire, Firing, NewFire, Schedule

LATE_US = 60 * US  # a slot that is run at most this late does not count as missed
MOST_SLOTS = 100  # slots of one schedule that are run at once; the rest stays due

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


def plan(
    due: Sequence[Due],
    programs: Mapping[str, Program | str | None],
    new_id: NewId,
    unable: dict[str, str],
) -> list[Firing]:
    """Returns what to do about these schedules now.

    Schedules that this process cannot judge are added to `unable`, with the reason. An example is a
    time zone that is not known here: another process may know it.
    """
    firings = []
    for each in due:
        program = programs[each.schedule.name]
        assert not isinstance(program, str)
        try:
            firings.append(fire(each, program, new_id))
        # A problem with one schedule must not stop the others.
        except Exception as problem:
            unable[each.schedule.name] = (
                str(problem)
                if isinstance(problem, ValueError)
                else f"{type(problem).__name__}: {problem}"
            )
    return [firing for firing in firings if firing is not None]


def fire(due: Due, program: Program | None, new_id: NewId) -> Firing | None:
    """Returns what to do about a schedule now; None if there is nothing to do.

    A `program` of None means that there is no workflow of its name. Raises `ValueError` if its time
    zone is not known here: another process may know it.
    """
    schedule = due.schedule
    if schedule.paused_at is not None:
        return None
    slots, missed, next_at = _passed(schedule, due.now)
    work = _Work(due, program, new_id)
    if schedule.queued_at is not None:
        work.go_on(schedule.queued_at)
    for i, slot in enumerate(slots[:MOST_SLOTS]):
        work.run(slot, last=i == len(slots) - 1)
    if not (missed or work.fires or slots):
        return None
    next_at = slots[MOST_SLOTS] if len(slots) > MOST_SLOTS else next_at
    return Firing(
        schedule.name,
        due.revision,
        next_at,
        work.queued_at,
        (*missed, *work.fires),
        tuple(work.cancels),
    )


def _passed(schedule: Schedule, now: int) -> tuple[list[int], list[NewFire], int | None]:
    """Returns the slots to run, a row for those that were missed before, and the next slot.

    One row stands for all missed slots. The next slot is None if there are no more.
    """
    first = schedule.next_at
    if first is None or first > now:
        return [], [], first
    latest = latest_slots(schedule.timing, first, now, max(schedule.catch_up, 1) + 1)
    in_time = now - latest[-1] <= LATE_US
    count = schedule.catch_up or int(in_time)
    older, slots = latest[: max(len(latest) - count, 0)], latest[max(len(latest) - count, 0) :]
    missed = [NewFire(Fire(schedule.name, first, "missed", until_at=older[-1]))] if older else []
    return slots, missed, next_slot(schedule.timing, latest[-1])


class _Work:
    """Decides for the slots of one schedule, one after the other."""

    def __init__(self, due: Due, program: Program | None, new_id: NewId) -> None:
        self.schedule, self.program, self.new_id = due.schedule, program, new_id
        self.running, self.queued_at = list(due.running), due.schedule.queued_at
        self.fires: list[NewFire] = []
        self.cancels: list[str] = []

    def go_on(self, queued_at: int) -> None:
        """Runs a slot that had to wait, if nothing else runs any more."""
        if not self.running:
            self.queued_at = None
            self.start(queued_at)

    def run(self, slot: int, last: bool) -> None:
        """Starts, queues or skips a slot, as the schedule's `overlap` says."""
        overlap = self.schedule.overlap
        if overlap == "cancel_other":
            self._replace(slot) if last else self._skip(slot, "a later slot takes its place")
        elif overlap == "allow" or not (self.running or self.queued_at):
            self.start(slot)
        elif overlap == "queue" and self.queued_at is None:
            self.queued_at = slot
        else:
            self._skip(
                slot, f"{self.running[0]} still runs" if self.running else "a slot before it waits"
            )

    def _replace(self, slot: int) -> None:
        """Cancels the executions of the schedule that still run, and starts that of the slot."""
        self.cancels, self.running = self.running, []
        self.start(slot)

    def _skip(self, slot: int, why: str) -> None:
        """Notes that a slot is skipped, and why."""
        self.fires.append(NewFire(Fire(self.schedule.name, slot, "skipped", detail=why)))

    def start(self, slot: int) -> None:
        """Starts the execution of a slot, or notes that there is no such workflow."""
        if self.program is None:
            why = f"there is no workflow `{self.schedule.workflow}`"
            self.fires.append(NewFire(Fire(self.schedule.name, slot, "failed", detail=why)))
            return
        new = execution(self.schedule, self.program, slot, self.new_id())
        self.fires.append(NewFire(Fire(self.schedule.name, slot, "started", new.id), new))
        self.running.append(new.id)


def run_now(
    due: Due, program: Program, new_id: NewId, key: str | None = None, by: Actor | None = None
) -> Firing:
    """Returns the start of an execution that somebody asks for, whatever else runs.

    They start it, not the clock.
    """
    schedule = due.schedule
    new = execution(schedule, program, due.now, new_id(), by).replace(key=key)
    fired = NewFire(Fire(schedule.name, due.now, "started", new.id, manual=True), new)
    return Firing(schedule.name, None, fires=(fired,))


def execution(
    schedule: Schedule, program: Program, slot: int, id: str, by: Actor | None = None
) -> NewExecution:
    """Returns the execution of a slot.

    It has the key of its slot, so a second one for the same slot starts nothing. The actors who
    made or changed the schedule contribute to it, and so does the actor who asks for it now (`by`).
    """
    at, provenance = shown(slot), load_provenance(schedule.provenance).joined(provenance_of(by))
    return NewExecution(
        id,
        WORKFLOW,
        program.name,
        program.options.get("queue") or "default",
        schedule.inputs,
        program.version,
        timeout_s=program.options.get("timeout"),
        key=f"schedule:{schedule.name}@{at}",
        started_by=by.name if by else f"schedule:{schedule.name}",
        attributes=json.dumps({"schedule": schedule.name, "scheduled_at": at}, ensure_ascii=False),
        contributors=provenance.contributors,
        authority=dump_authority(provenance.authority),
    )


def said(fire: Fire) -> str:
    """Returns what is reported of a slot that started nothing."""
    if fire.until_at is None or fire.until_at == fire.slot_at:
        slots = f"the slot of {shown(fire.slot_at)}"
    else:
        slots = f"the slots from {shown(fire.slot_at)} to {shown(fire.until_at)}"
    return f"{slots}: {fire.detail or 'nobody looked at the time, and it is not made up for'}"


def shown(at: int) -> str:
    """Returns a time, in microseconds since 1970, as ISO text."""
    return (EPOCH + timedelta(microseconds=at)).isoformat().replace("+00:00", "Z")


# changes


def put(
    before: Schedule | None,
    name: str,
    wanted: Wanted,
    now: int,
    by: Actor | None = None,
    origin: str = "",
) -> Schedule:
    """Returns a schedule as it is wanted; `before` itself if nothing changes.

    While its times stay the same, so does its next slot. A pause stays in any case. The actor who
    changes it (`by`) contributes to what it starts from then on, besides those who contributed
    before.
    """
    asked = {field: getattr(wanted, field) for field in Wanted._fields}
    made_by, maker = by.name if by else "", dump_provenance(provenance_of(by))
    fresh = Schedule(
        name,
        created_at=now,
        created_by=made_by,
        updated_at=now,
        origin=origin,
        anchor_at=now,
        provenance=maker,
        **asked,
    )
    if before is None or _times(before) != _times(fresh):
        fresh = fresh.replace(next_at=next_slot(fresh.timing, now))
    else:
        fresh = fresh.replace(anchor_at=before.anchor_at, next_at=before.next_at)
    if before is None:
        return fresh
    kept = (
        "paused_at",
        "paused_by",
        "paused_reason",
        "created_at",
        "created_by",
        "updated_at",
        "provenance",
    )
    after = fresh.replace(**{field: getattr(before, field) for field in kept})
    after = after.replace(queued_at=before.queued_at if after.overlap == "queue" else None)
    if after == before:
        return before
    joined = load_provenance(before.provenance).joined(provenance_of(by))
    return after.replace(updated_at=now, provenance=dump_provenance(joined))


def _times(schedule: Schedule) -> tuple[Any, ...]:
    return schedule.cron, schedule.tz, schedule.every_us, schedule.at


def check_wanted(wanted: Wanted) -> None:
    """Raises `ValueError`, which says what to write instead, if the schedule is not valid."""
    check_timing(Schedule("", **{field: getattr(wanted, field) for field in Wanted._fields}).timing)
    check_overlap(wanted.overlap)


def paused(before: Schedule, now: int, by: str, reason: str) -> Schedule:
    """Returns the schedule paused; as it is if it was paused before."""
    if before.paused_at is not None:
        return before
    return before.replace(paused_at=now, paused_by=by, paused_reason=reason, updated_at=now)


def resumed(before: Schedule, now: int) -> Schedule:
    """Returns the schedule resumed; as it is if it was not paused.

    Slots that passed in the meantime are not made up for. A schedule with a single date keeps it.
    """
    if before.paused_at is None:
        return before
    next_at = before.next_at if before.at is not None else next_slot(before.timing, now)
    return before.replace(
        paused_at=None, paused_by="", paused_reason="", next_at=next_at, updated_at=now
    )


def registered(
    wanted: Mapping[str, Sequence[Wanted]],
    existing: Sequence[Schedule],
    now: int,
    by: Actor | None = None,
) -> dict[str, Schedule | None]:
    """Returns what becomes of schedules when these workflows are registered, by name.

    None means that the schedule is deleted. The schedules come from annotations. The first of a
    workflow is named `@name`, the next `@name.2` and so on.
    """
    before = {schedule.name: schedule for schedule in existing}
    after: dict[str, Schedule | None] = dict.fromkeys(before)
    for workflow, schedules in wanted.items():
        for i, each in enumerate(schedules, 1):
            name = f"@{workflow}" if i == 1 else f"@{workflow}.{i}"
            after[name] = put(before.get(name), name, each, now, by, workflow)
    return {
        name: schedule
        for name, schedule in after.items()
        if schedule != before.get(name) or schedule is None
    }
