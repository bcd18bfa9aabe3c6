"""Schedules over HTTP: what starts workflows by the clock."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import Field
from starlette.responses import Response

from rhythm.app.schedules import ScheduleView
from rhythm.errors import UnknownSchedule, UnknownWorkflow
from rhythm.http.answers import answer, without
from rhythm.http.guard import Asker
from rhythm.http.pages import listed, seen_by_name
from rhythm.http.requests import Ask, Cursor, Key, Limit
from rhythm.http.schemas import Body, Json, form_of, object_of, page_of
from rhythm.permissions import READ

Schedule = form_of(ScheduleView, "Schedule")
Schedules = page_of(form_of(ScheduleView, "ScheduleSummary", ("inputs", "fires")))
Times = object_of(
    "Times",
    "The next times at which a schedule starts its workflow; if it is paused, would start it.",
    times=list[datetime],
)
ScheduleChanged = object_of(
    "ScheduleChanged", "`changed` is false if this was the case already.", name=str, changed=bool
)
Whole = Annotated[bool, Query(description="With the inputs of each schedule, too.")]
Name = Annotated[str, Path(description="The name of the schedule. It may contain slashes.")]
Count = Annotated[int, Query(ge=1, le=1000, description="How many times to return.")]


class ChangedSchedule(Body):
    """A change of a schedule: fields that are not given stay as they are.

    If one of `cron`, `every` and `at` is given, it replaces the one that the schedule had.
    """

    workflow: str | None = None
    cron: str | None = Field(
        default=None, description="Minute, hour, day, month and weekday, in the time zone `tz`."
    )
    every: float | str | None = Field(
        default=None, description='The time between two starts: seconds, or a text like "90m".'
    )
    at: str | None = Field(
        default=None,
        description="One time, such as 2026-12-31T18:00. Without an offset it is in the time zone "
        "`tz`.",
    )
    tz: str | None = None
    inputs: Json = None
    overlap: Literal["skip", "queue", "allow", "cancel_other"] | None = Field(
        default=None,
        description="What to do at a slot while an execution of the schedule is still running.",
    )
    catch_up: str | int | None = Field(
        default=None,
        description="What to do with slots that passed while no worker ran: skip (all), one (run "
        "the latest), or a number (run at most that many).",
    )


class NewSchedule(ChangedSchedule):
    """A schedule to create. Exactly one of `cron`, `every` and `at` says when it is due."""

    name: str
    workflow: str


class PauseSchedule(Body):
    reason: str = ""


PAUSE = PauseSchedule()  # what a request without a body means


def create(ask: Ask, body: NewSchedule) -> Response:
    """Creates a schedule, or changes the one of this name.

    It starts a workflow by the clock. The answer is 201 if the schedule is new, and 200 if one of
    this name was there and was changed.
    """
    given = body.model_dump(exclude={"name", "workflow"}, exclude_none=True)
    _must_know(ask, body.workflow)
    new = _missing(ask, body.name)
    ask.app.schedule(body.name, body.workflow, by=ask.actor, **given)
    return answer(ask.app.get_schedule(body.name, scope=ask.scope(READ)), 201 if new else 200)


def _must_know(ask: Asker, workflow: str) -> None:
    """Raises `UnknownWorkflow` if the caller may not make schedules for this workflow."""
    if not ask.may("schedule:write", workflow):
        raise UnknownWorkflow(f"there is no workflow `{workflow}`", workflow)


def _missing(ask: Ask, name: str) -> bool:
    """Tells whether there is no schedule with this name."""
    try:
        ask.app.get_schedule(name)
    except UnknownSchedule:
        return True
    return False


def change(ask: Ask, name: Name, body: ChangedSchedule) -> Response:
    """Changes some fields of a schedule."""
    before, given = ask.app.get_schedule(name), body.model_dump(exclude_unset=True)
    kept: dict[str, Any] = {
        "workflow": before.workflow,
        "tz": before.tz,
        "inputs": before.inputs,
        "overlap": before.overlap,
    }
    if not given.keys() & {"cron", "every", "at"}:
        kept |= {"cron": before.cron, "every": before.every_s, "at": before.at}
    wanted = {**kept, "catch_up": before.catch_up, **given}
    _must_know(ask, wanted["workflow"])
    ask.app.schedule(name, wanted.pop("workflow"), by=ask.actor, unless_changed=before, **wanted)
    return answer(ask.app.get_schedule(name, scope=ask.scope(READ)))


def find(ask: Ask, whole: Whole = False, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """Lists the schedules, sorted by name, without their last slots.

    Their inputs are left out, unless it is asked for `whole` schedules.
    """
    read = partial(ask.app.schedules, brief=not whole)
    found, more = seen_by_name(ask, read, lambda schedule: schedule.workflow, limit, cursor)
    return listed(
        ask,
        [without(schedule, *(() if whole else ("inputs",)), "fires") for schedule in found],
        more,
        lambda n: found[n].name,
    )


def get(ask: Ask, name: Name) -> Response:
    """Returns a schedule, and what happened at its last slots."""
    return answer(ask.app.get_schedule(name, scope=ask.scope(READ)))


def times(ask: Ask, name: Name, count: Count = 5) -> Response:
    """Returns the next times at which a schedule starts its workflow."""
    return answer({"times": ask.app.next_times(name, count)})


def pause(ask: Ask, name: Name, body: PauseSchedule = PAUSE) -> Response:
    """Pauses a schedule.

    It starts nothing more. What it has started goes on.
    """
    return answer({"name": name, "changed": ask.app.pause_schedule(name, body.reason, ask.actor)})


def resume(ask: Ask, name: Name) -> Response:
    """Lets a paused schedule start its workflow again.

    It goes on with its next slot. Slots that passed during the pause are not run.
    """
    return answer({"name": name, "changed": ask.app.resume_schedule(name, ask.actor)})


def run(ask: Ask, name: Name, key: Key = None) -> Response:
    """Starts the workflow of a schedule now.

    It starts with the inputs of the schedule, even if an earlier execution is still running. The
    answer is 201 if it was started, and 200 if this `Idempotency-Key` has started it before.
    """
    handle = ask.app.run_schedule(name, ask.actor, key=ask.own(key))
    return answer({"id": handle.id, "created": handle.created}, 201 if handle.created else 200)


def delete(ask: Ask, name: Name) -> Response:
    """Deletes a schedule.

    What it has started goes on.
    """
    ask.app.delete_schedule(name, ask.actor)
    return Response(status_code=204)
