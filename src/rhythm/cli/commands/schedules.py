"""Lists the schedules of a database, or shows, creates, changes, pauses, resumes, runs or deletes
one.

A schedule starts a workflow by the clock. `create` makes a schedule, or changes the one of this
name; it takes one of --cron, --every and --at. Schedules whose names begin with @ come with their
workflows (`@schedule` in the file): they can be paused and run, but not deleted.

  rhythm schedules
  rhythm schedules create nightly report --cron '30 2 * * *' --tz Europe/Berlin
  rhythm schedules next nightly
  rhythm schedules pause nightly --reason 'the books are closed'
  rhythm schedules run nightly
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING

from rhythm.cli.actor import actor
from rhythm.cli.command import Arguments, Run, argument, command, group, option
from rhythm.cli.connect import on_database
from rhythm.cli.inputs import read_inputs
from rhythm.cli.options import BY, DATABASE_OR_SERVER, INPUT, INPUTS, OUTPUT, REASON
from rhythm.cli.output import print
from rhythm.cli.types import Duration, Known, OneOf, Text

if TYPE_CHECKING:
    from datetime import datetime

    from rhythm.app import Rhythm
    from rhythm.app.schedules import FireView, ScheduleView

HEADS = ("SCHEDULE", "STATUS", "WORKFLOW", "WHEN", "NEXT", "NOTE")
NAME = argument("name", type=Known("schedules"), help="the name of the schedule")
PAST = ("SLOT", "OUTCOME", "EXECUTION", "NOTE")


def on_schedule(act: Callable[[Rhythm, Arguments], object]) -> Run:
    """Makes a function of an application and a schedule's name the function of a command.

    The refusal of an unknown schedule says which one may have been meant.
    """

    @wraps(act)
    def known(app: Rhythm, args: Arguments) -> object:
        from rhythm.errors import UnknownSchedule
        from rhythm.suggest import nearest

        try:
            return act(app, args)
        except UnknownSchedule as problem:
            near = nearest(args.name, [each.name for each in app.schedules()])
            if near is None:
                raise
            text = f"there is no schedule {args.name!r:.200}; did you mean `{near}`?"
            raise UnknownSchedule(text) from problem

    return on_database(known)


@command("Lists the schedules, each with its status and its next time.", "list the schedules")
@on_database
@OUTPUT
@DATABASE_OR_SERVER
def list_all(app: Rhythm, args: Arguments) -> None:
    found = app.schedules(brief=args.output == "table")
    if args.output != "table":
        from rhythm.cli.output.documents import print_items

        print_items(args.output, [schedule.as_json() for schedule in found])
    elif not found:
        print(
            "no schedules: `rhythm schedules create NAME WORKFLOW --cron …` makes one, "
            "and so does @schedule in a workflow"
        )
    else:
        from datetime import UTC, datetime

        from rhythm.cli.output.table import print_table

        print_table(HEADS, [_row(schedule, datetime.now(UTC)) for schedule in found], status=1)


def _row(schedule: ScheduleView, now: datetime) -> tuple[str, ...]:
    shown = (
        f"{schedule.next_at:%Y-%m-%d %H:%M:%S} UTC"
        if schedule.next_at and schedule.status == "active"
        else ""
    )
    return (
        schedule.name,
        schedule.status,
        schedule.workflow,
        when(schedule),
        shown,
        note(schedule, now),
    )


def when(schedule: ScheduleView) -> str:
    """Returns the times of a schedule as they were given, such as `every 15m`."""
    from rhythm.durations import show_duration

    if schedule.cron is not None:
        return schedule.cron if schedule.tz == "UTC" else f"{schedule.cron} {schedule.tz}"
    return (
        f"every {show_duration(schedule.every_s)}"
        if schedule.every_s is not None
        else f"at {schedule.at:%Y-%m-%d %H:%M:%S} UTC"
    )


def note(schedule: ScheduleView, now: datetime) -> str:
    """Returns a note on the schedule: that it is paused, or that a slot waits; else empty."""
    from rhythm.cli.output.words import paused_since

    if schedule.paused_at is not None:
        return f"paused {paused_since(schedule, now)}"
    return f"the slot of {schedule.queued_at:%H:%M:%S} waits" if schedule.queued_at else ""


@command(
    "Shows a schedule, and what happened at its last slots (the times at which it was due).",
    "show a schedule, and what happened at its last slots",
)
@on_schedule
@NAME
@OUTPUT
@DATABASE_OR_SERVER
def show(app: Rhythm, args: Arguments) -> None:
    schedule = app.get_schedule(args.name)
    if args.output != "table":
        from rhythm.cli.output.documents import print_item

        return print_item(args.output, schedule.as_json())
    from rhythm.cli.output.table import print_fields, print_table

    print_fields(_fields(schedule))
    if schedule.fires:
        print()
        print_table(PAST, [_past(fire) for fire in schedule.fires])


def _fields(schedule: ScheduleView) -> Sequence[tuple[str, str]]:
    from datetime import UTC, datetime

    from rhythm.cli.output.words import brief, moment

    now = datetime.now(UTC)
    by = f", by {schedule.created_by}" if schedule.created_by else ""
    made = f"{moment(schedule.created_at, now)}{by}"
    return (
        ("schedule", schedule.name),
        ("workflow", schedule.workflow),
        ("status", schedule.status),
        ("note", note(schedule, now)),
        ("when", when(schedule)),
        ("next", moment(schedule.next_at, now) if schedule.next_at else ""),
        ("inputs", "" if schedule.inputs is None else brief(schedule.inputs, 200)),
        ("overlap", schedule.overlap),
        ("catch up", str(schedule.catch_up)),
        ("made", "with its workflow, by @schedule" if schedule.annotation else made),
    )


def _past(fire: FireView) -> tuple[str, ...]:
    until = f" to {fire.until:%Y-%m-%d %H:%M:%S}" if fire.until and fire.until != fire.slot else ""
    asked = "somebody asked for it" if fire.manual else ""
    return (
        f"{fire.slot:%Y-%m-%d %H:%M:%S}{until} UTC",
        fire.outcome,
        fire.execution_id or "",
        fire.detail or asked,
    )


@command(
    "Creates a schedule, or changes the one of this name. Give one of --cron, --every and --at.",
    "create or change a schedule",
)
@on_schedule
@NAME
@argument("workflow", type=Known("workflows"), help="the workflow that the schedule starts")
@option(
    "--cron",
    metavar="CRON",
    help="minute, hour, day, month and weekday, such as '0 9 * * 1-5'",
)
@option("--every", type=Duration(), help="an interval, such as 15m")
@option("--at", metavar="TIME", help="one time, such as 2026-12-31T18:00")
@option(
    "--tz",
    metavar="ZONE",
    help="the time zone of --cron and --at, such as Europe/Berlin; else UTC",
)
@INPUT
@INPUTS
@option(
    "--overlap",
    type=OneOf("skip", "queue", "allow", "cancel_other"),
    help="what to do if the last execution still runs when the next is due; else skip",
)
@option(
    "--catch-up",
    type=Text("skip", "one"),
    metavar="skip|one|N",
    help="how many missed slots are started later: skip (none), one, or a number; else one",
)
@BY
@OUTPUT
@DATABASE_OR_SERVER
def create(app: Rhythm, args: Arguments) -> None:
    catch_up = int(args.catch_up) if (args.catch_up or "").isdecimal() else args.catch_up
    given = {"overlap": args.overlap, "catch_up": catch_up, "tz": args.tz}
    inputs = None
    if args.input or args.inputs:
        inputs = read_inputs(args, args.workflow, app.workflow(args.workflow).inputs)
    made = app.schedule(
        args.name,
        args.workflow,
        cron=args.cron,
        every=args.every,
        at=args.at,
        inputs=inputs,
        by=actor(args),
        **{option: value for option, value in given.items() if value is not None},
    )
    again = "" if made.status == "active" else f" (it is {made.status})"
    print(f"schedule {made.name} starts {made.workflow}: {when(made)}{again}")
    _print_times(app, args, 3)


@command("Prints the next five times of a schedule.", "print the next five times")
@on_schedule
@NAME
@OUTPUT
@DATABASE_OR_SERVER
def next_slots(app: Rhythm, args: Arguments) -> None:
    _print_times(app, args, 5)


def _print_times(app: Rhythm, args: Arguments, count: int) -> None:
    """Prints the next `count` times at which the schedule is due, in its time zone."""
    from rhythm.schedule_times import zone

    where = zone(app.get_schedule(args.name).tz)
    times = app.next_times(args.name, count)
    if args.output == "table":
        for time in times:
            print(f"{time.astimezone(where):%a %Y-%m-%d %H:%M:%S %Z}")
        if not times:
            print(f"schedule {args.name} starts nothing any more")
    else:
        from rhythm.cli.output.documents import print_items

        print_items(args.output, [time.isoformat().replace("+00:00", "Z") for time in times])


@command("Pauses a schedule: it starts nothing until it is resumed.", "pause a schedule")
@on_schedule
@NAME
@REASON
@BY
@DATABASE_OR_SERVER
def pause(app: Rhythm, args: Arguments) -> None:
    changed = app.pause_schedule(args.name, args.reason or "", by=actor(args))
    what = "paused schedule" if changed else "it was paused already: schedule"
    print(f"{what} {args.name}; `rhythm schedules resume {args.name}` lets it go on")


@command(
    "Resumes a schedule at its next slot. Slots that it missed are not started.",
    "resume a schedule",
)
@on_schedule
@NAME
@BY
@DATABASE_OR_SERVER
def resume(app: Rhythm, args: Arguments) -> None:
    if app.resume_schedule(args.name, by=actor(args)):
        print(
            f"resumed schedule {args.name}: it goes on with its next slot; what it missed "
            f"is not made up for"
        )
    else:
        print(f"schedule {args.name} was not paused")


@command(
    "Starts the workflow of a schedule now, and prints the id of the execution.",
    "start the workflow of a schedule now",
)
@on_schedule
@NAME
@BY
@OUTPUT
@DATABASE_OR_SERVER
def run_now(app: Rhythm, args: Arguments) -> None:
    from rhythm.cli.following import print_id

    print_id(
        app.run_schedule(args.name, by=actor(args)), "json" if args.output != "table" else "text"
    )


@command("Deletes a schedule. Executions that it has started go on.", "delete a schedule")
@on_schedule
@NAME
@BY
@DATABASE_OR_SERVER
def delete(app: Rhythm, args: Arguments) -> None:
    app.delete_schedule(args.name, by=actor(args))
    print(f"deleted schedule {args.name}; what it has started goes on")


run = group(
    __doc__,
    ("list", list_all),
    show,
    create,
    pause,
    resume,
    ("run", run_now),
    delete,
    ("next", next_slots),
    given=(BY, OUTPUT, DATABASE_OR_SERVER),
    default="list",
)
