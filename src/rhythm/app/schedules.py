"""Schedules of an application: what starts workflows by the clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from rhythm.app.actors import By, acting
from rhythm.app.checks import (
    LARGEST_PAGE,
    at_least,
    can_be,
    name_of,
    start_key,
    valid_name,
    valid_text,
)
from rhythm.app.handle import Handle
from rhythm.app.views import as_json, moment, moment_of
from rhythm.durations import duration_s
from rhythm.engine.payload import dump, load
from rhythm.errors import (
    InvalidSchedule,
    ScheduleChanged,
    ScheduleOfWorkflow,
    ScheduleTaken,
    UnknownSchedule,
)
from rhythm.ir.input_schema import check_inputs
from rhythm.limits import TEXTS
from rhythm.permissions import Scope, allows, limited, within
from rhythm.record import Record
from rhythm.schedule_times import US, catch_up_number, first_slots, us_of, zone
from rhythm.store.schedules import Fire, Schedule

if TYPE_CHECKING:
    from rhythm.app.context import AppContext
    from rhythm.app.executions import Executions
    from rhythm.app.workflows import Workflows
    from rhythm.engine.schedules import Wanted
    from rhythm.store.access import Actor
    from rhythm.store.interfaces.definitions import Definition
    from rhythm.store.schedules import Change, Registered

Overlap = Literal["skip", "queue", "allow", "cancel_other"]
Every = float | str
MAX_PAST_SLOTS = 10  # past slots that are shown of a schedule
FEW = 50  # schedules that are read at a time if their inputs are read, too
MOST_TIMES = 1000


class FireView(Record):
    """What happened at a slot.

    It was started, skipped (an earlier execution was still running), missed (like all slots up to
    `until`), or failed.
    """

    slot: datetime
    outcome: str
    execution_id: str | None
    until: datetime | None
    manual: bool  # somebody started it by hand
    detail: str
    at: datetime  # when the outcome was decided

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values; times as ISO 8601."""
        return as_json(self)


class ScheduleView(Record):
    """A schedule: which workflow it starts, when, and its status."""

    name: str
    workflow: str
    cron: str | None
    every_s: float | None
    at: datetime | None
    tz: str
    inputs: Any
    overlap: str
    catch_up: str | int
    annotation: bool  # it comes from `@schedule` in its workflow's file
    status: str  # active, paused, or ended: there are no more slots
    next_at: datetime | None
    queued_at: datetime | None  # a slot that waits until the previous execution has ended
    paused_at: datetime | None
    paused_by: str
    paused_reason: str
    created_at: datetime
    created_by: str
    updated_at: datetime
    fires: tuple[FireView, ...] = ()  # the last slots, newest first; only from `get_schedule`

    def as_json(self) -> dict[str, Any]:
        """All fields as JSON values; times as ISO 8601."""
        return as_json(self)


class Schedules:
    """What starts workflows by the clock. Calling it lists the schedules."""

    def __init__(self, context: AppContext, workflows: Workflows, executions: Executions) -> None:
        self._context, self._store = context, context.store
        self._workflows, self._executions = workflows, executions

    def __call__(
        self, limit: int | None = None, after: str = "", *, brief: bool = False
    ) -> list[ScheduleView]:
        """Returns all schedules by name, or `limit` of those whose names come after `after`.

        With `brief`, the inputs are not read, but None.
        """
        if limit is None:
            return [_view(schedule) for schedule in self._all(name_of(after), brief)]
        most = min(at_least(limit, 1, "limit"), LARGEST_PAGE + 1)
        return [
            _view(schedule) for schedule in self._store.schedules.after(name_of(after), most, brief)
        ]

    def put(
        self,
        name: str,
        workflow: str,
        *,
        cron: str | None = None,
        every: Every | None = None,
        at: datetime | str | None = None,
        tz: str = "UTC",
        inputs: Any = None,
        overlap: Overlap = "skip",
        catch_up: str | int = "one",
        by: By = None,
        unless_changed: ScheduleView | None = None,
    ) -> ScheduleView:
        """Creates or changes a schedule, which starts a workflow by the clock, and returns it.

        Give one of `cron` (five fields, in the time zone `tz`), `every` (an interval) and `at`
        (once). If a schedule with this name exists, it is changed; while its times stay the same,
        so does its next slot.

        - `overlap`: what a slot does while an execution of the schedule still runs.
        - `catch_up`: how many slots that passed while no worker ran are made up for: "skip", "one"
          (the latest) or a number.
        - `unless_changed`: the schedule as the caller saw it. Raises `UnknownSchedule` if it is
          gone by now, `ScheduleChanged` if it was changed; then nothing is done.

        Raises `InvalidSchedule` if the schedule is not valid; the message says what is wrong.
        Raises `InvalidInputs` if the workflow does not take these inputs.
        """
        from rhythm.engine.schedules import put

        name, actor = _own(name), acting(by)
        wanted = wanted_schedule(workflow, cron, every, at, tz, inputs, overlap, catch_up)
        declared = self._workflows.current(workflow).options.get("inputs")
        if declared is not None:
            check_inputs(workflow, declared, load(wanted.inputs))

        def change(before: Schedule | None, now: int) -> Schedule:
            if before is not None and not _may(actor, before):
                raise ScheduleTaken(
                    f"there is a schedule {name!r:.80} already, of something else: choose "
                    f"another name"
                )
            if unless_changed is not None:
                _same_as(unless_changed, before)
            after = put(before, name, wanted, now, actor)
            if after.next_at is None and (
                before is None
                or before.timing.replace(anchor_at=0) != after.timing.replace(anchor_at=0)
            ):
                raise InvalidSchedule(f"the schedule would never start anything: {_never(after)}")
            _check_shown(after)
            return after

        return _view(self._change(name, change, actor, "schedule.change"))

    def _all(self, after: str, brief: bool) -> Iterator[Schedule]:
        while page := self._store.schedules.after(after, LARGEST_PAGE if brief else FEW, brief):
            yield from page
            after = page[-1].name

    def get(self, name: str, *, scope: Scope = None) -> ScheduleView:
        """Returns a schedule and what became of its last slots.

        Raises `UnknownSchedule` if there is none. With a `scope`, a schedule whose workflow matches
        none of the patterns counts as unknown. Executions outside of the scope, which it started
        when it had another workflow, are left out.
        """
        schedule = self._found(name)[0]
        if not within(scope, schedule.workflow):
            no_schedule(name)
        fires = self._store.schedules.fires(schedule.name, MAX_PAST_SLOTS)
        return _view(schedule, fires if scope is None else self._fires_within(fires, scope))

    def _fires_within(self, fires: Sequence[Fire], scope: Scope) -> list[Fire]:
        """Returns the fires without those whose execution is out of scope.

        The detail of a slot that started nothing is removed, too, since it may name such an
        execution.
        """
        names = self._store.reading.root_names(
            [fire.execution_id for fire in fires if fire.execution_id]
        )
        seen = [fire if fire.execution_id else fire.replace(detail="") for fire in fires]
        return [
            fire
            for fire in seen
            if fire.execution_id is None or within(scope, names.get(fire.execution_id))
        ]

    def next_times(self, name: str, count: int = 5) -> list[datetime]:
        """Returns when the schedule will start its workflow next, within a hundred years.

        For a paused schedule, it returns when it would.
        """
        at_least(count, 1, "count")
        schedule, now = self._found(name)
        after = now if schedule.paused_at is not None else (schedule.next_at or now) - 1
        if schedule.next_at is None:
            return []
        try:
            return [
                moment(slot) for slot in first_slots(schedule.timing, after, min(count, MOST_TIMES))
            ]
        except ValueError as problem:
            raise InvalidSchedule(str(problem)) from problem

    def pause(self, name: str, reason: str = "", by: By = None) -> bool:
        """Pauses a schedule: it starts nothing more. Returns False if it was paused already.

        Executions that run go on.
        """
        from rhythm.engine.schedules import paused

        actor, why = acting(by), valid_text(reason, "reason")
        return self._changed(
            name, lambda before, now: paused(before, now, actor.name, why), actor, "schedule.pause"
        )

    def resume(self, name: str, by: By = None) -> bool:
        """Lets a paused schedule start its workflow again. Returns False if it was not paused.

        It begins with the next slot: the slots of the pause are not made up for.
        """
        from rhythm.engine.schedules import resumed

        return self._changed(name, resumed, acting(by), "schedule.resume")

    def run(self, name: str, by: By = None, *, key: str | None = None) -> Handle:
        """Starts the workflow of a schedule now, with its inputs, and returns the handle.

        It does so whatever else runs, and also while the schedule is paused; the slots stay as they
        are. A `key` that was used before for this workflow starts nothing: the execution that has
        it is returned.
        """
        from rhythm.engine.schedules import run_now

        schedule, actor = self._found(name)[0], acting(by)
        _is_theirs(actor, schedule)
        key = None if key is None else start_key(key, "a key")
        program, id = self._workflows.current(schedule.workflow), self._context.new_id()
        due = [
            each
            for each in self._store.schedules.load_due([schedule.name])
            if _is_theirs(actor, each.schedule)
        ]
        fires, _ = self._store.schedules.fire(
            [run_now(each, program, lambda: id, key, actor) for each in due], actor
        )
        if not fires:
            no_schedule(name)
        self._context.wake()
        started = fires[0].execution_id or id
        return Handle(self._executions, started, started == id)

    def delete(self, name: str, by: By = None) -> None:
        """Deletes a schedule; what it has started goes on.

        Raises `ScheduleOfWorkflow` for a schedule that comes from its workflow's file.
        """

        def gone(before: Schedule, now: int) -> Schedule | None:
            if before.origin:
                raise ScheduleOfWorkflow(
                    f"{before.name} comes with the workflow `{before.origin}`: take its "
                    f"@schedule out of the file and register it again, "
                    f"or pause the schedule"
                )
            return None

        actor, found = acting(by), self._found(name)[0].name
        self._change(found, _of_existing(found, gone, actor), actor, "schedule.delete")

    def _found(self, name: str) -> tuple[Schedule, int]:
        """Returns a schedule and the database's time. Raises `UnknownSchedule` if there is none."""
        found, now = self._store.schedules.named([name]) if can_be(name) else ([], 0)
        return (found[0], now) if found else no_schedule(name)

    def _change(self, name: str, change: Change, actor: Any, action: str) -> Any:
        after = self._store.schedules.change(name, change, actor, action)
        self._context.wake()
        return after

    def _changed(self, name: str, change: Any, actor: Any, action: str) -> bool:
        """Changes a schedule, and returns whether that changed anything."""
        different = False

        def watched(before: Schedule, now: int) -> Schedule | None:
            nonlocal different
            after: Schedule | None = change(before, now)
            different = after != before
            return after

        found = self._found(name)[0].name
        self._change(found, _of_existing(found, watched, actor), actor, action)
        return different


def annotated_schedules(definitions: Sequence[Definition], actor: Actor | None) -> Registered:
    """Returns a function that decides what becomes of the `@schedule`s of these workflows."""
    from rhythm.engine.schedules import registered

    wanted = {definition.name: list(_annotated(definition)) for definition in definitions}
    return lambda existing, now: registered(wanted, existing, now, actor)


def _annotated(definition: Definition) -> Iterator[Wanted]:
    for given in definition.schedules:
        options = {"tz": "UTC", "inputs": None, "overlap": "skip", "catch_up": "one", **given}
        yield wanted_schedule(definition.name, every=None, at=None, **options)


def wanted_schedule(
    workflow: str,
    cron: str | None,
    every: Every | None,
    at: datetime | str | None,
    tz: str,
    inputs: Any,
    overlap: str,
    catch_up: str | int,
) -> Wanted:
    """Returns what a caller or an annotation gives, as the engine takes it.

    Raises `InvalidSchedule` if it is not valid.
    """
    from rhythm.engine.schedules import Wanted, check_wanted

    try:
        every_us = None if every is None else int(duration_s(every) * US)
        at_us = None if at is None else _instant(at, tz)
        number = catch_up_number(catch_up)
        wanted = Wanted(
            workflow, cron, tz, every_us, at_us, dump(inputs, "inputs"), overlap, number
        )
        check_wanted(wanted)
    except ValueError as problem:
        raise InvalidSchedule(str(problem)) from problem
    return wanted


def _view(schedule: Schedule, fires: Sequence[Fire] = ()) -> ScheduleView:
    return ScheduleView(
        schedule.name,
        schedule.workflow,
        schedule.cron,
        None if schedule.every_us is None else schedule.every_us / US,
        moment_of(schedule.at),
        schedule.tz,
        load(schedule.inputs),
        schedule.overlap,
        {0: "skip", 1: "one"}.get(schedule.catch_up, schedule.catch_up),
        bool(schedule.origin),
        "paused"
        if schedule.paused_at is not None
        else "ended"
        if schedule.next_at is None and schedule.queued_at is None
        else "active",
        moment_of(schedule.next_at),
        moment_of(schedule.queued_at),
        moment_of(schedule.paused_at),
        schedule.paused_by,
        schedule.paused_reason,
        moment(schedule.created_at),
        schedule.created_by,
        moment(schedule.updated_at),
        tuple(_fire_view(fire) for fire in fires),
    )


def _fire_view(fire: Fire) -> FireView:
    until = moment_of(fire.until_at)
    return FireView(
        moment(fire.slot_at),
        fire.outcome,
        fire.execution_id,
        until,
        fire.manual,
        fire.detail,
        moment(fire.at),
    )


def _own(given: str) -> str:
    """Returns the name of a schedule that somebody creates.

    Raises `InvalidSchedule` if it begins with @.
    """
    if valid_name(given, "a schedule's name").startswith("@"):
        raise InvalidSchedule(
            f"{given!r:.80} cannot be the name of a schedule: those that begin with @ "
            f"come with their workflows"
        )
    return given


def _same_as(seen: ScheduleView, schedule: Schedule | None) -> None:
    """Raises `UnknownSchedule` or `ScheduleChanged` if the schedule is not as the caller saw it."""
    if schedule is None:
        no_schedule(seen.name)
    now = _view(schedule)
    if any(
        getattr(now, name) != getattr(seen, name)
        for name in ("workflow", "cron", "every_s", "at", "tz", "inputs", "overlap", "catch_up")
    ):
        raise ScheduleChanged(
            f"the schedule {seen.name!r:.80} has been changed meanwhile, and nothing was "
            f"done: ask again"
        )


def _may(actor: Actor, schedule: Schedule) -> bool:
    """Tells whether the actor's roles allow to change this schedule, if they are limited to names.

    The question is asked in the transaction that changes the schedule, because the schedule may
    start another workflow by then.
    """
    roles = actor.token_roles or ()
    return not limited(roles) or allows(roles, "schedule:write", schedule.workflow)


def _is_theirs(actor: Actor, schedule: Schedule) -> bool:
    """Returns True if the actor may change this schedule; else raises `UnknownSchedule`."""
    return True if _may(actor, schedule) else no_schedule(schedule.name)


def _of_existing(name: str, change: Any, actor: Actor) -> Change:
    """Returns the change, with a check that the schedule exists and the actor may change it.

    Otherwise it raises `UnknownSchedule`: somebody may have deleted the schedule since it was read.
    """

    def checked(before: Schedule | None, now: int) -> Schedule | None:
        if before is None:
            no_schedule(name)
        _is_theirs(actor, before)
        after: Schedule | None = change(before, now)
        return after

    return checked


def no_schedule(name: object) -> NoReturn:
    raise UnknownSchedule(f"there is no schedule {name!r:.200}; `rhythm schedules` lists them")


def _instant(at: datetime | str, tz: str) -> int:
    """Returns a time in microseconds since 1970. Without an offset, it is in the time zone."""
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at if len(at) <= TEXTS.time else "")
        except ValueError:
            raise ValueError(
                f"at is a time such as 2026-12-31T18:00 or 2026-12-31T17:00:00Z, not {at!r:.80}"
            ) from None
    if not isinstance(at, datetime):
        raise ValueError(f"at is a datetime or a text such as 2026-12-31T18:00, not {at!r:.80}")
    return us_of(at if at.tzinfo else at.replace(tzinfo=zone(tz)))


def _check_shown(schedule: Schedule) -> None:
    """Raises `InvalidSchedule` for a schedule that could be stored but not be shown.

    It tries the view, and the first times in UTC and in the schedule's zone.
    """
    try:
        where = zone(schedule.tz)
        for slot in (
            first_slots(schedule.timing, schedule.next_at - 1, MAX_PAST_SLOTS)
            if schedule.next_at is not None
            else ()
        ):
            moment(slot).astimezone(where).isoformat()
        _view(schedule)
    except (ValueError, ArithmeticError) as problem:
        raise InvalidSchedule(f"the schedule cannot be shown: {problem}") from problem


def _never(schedule: Schedule) -> str:
    """Returns why the schedule would never start anything."""
    return (
        "at lies in the past"
        if schedule.at is not None
        else f"there is no such date as {schedule.cron!r:.80}"
    )
