"""Schedules as users have them: made, listed, paused, run and deleted, by hand and by annotation;
workers start what they want."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import rhythm
from rhythm.app import Rhythm
from rhythm.app.schedules import ScheduleView
from rhythm.engine import schedules as engine
from rhythm.engine.programs import ProgramCache
from rhythm.store.access import Actor
from rhythm.store.open import open_store
from rhythm.store.schedules import Due, Firing
from rhythm.worker.services import Services, ServiceSettings
from tests.app.conftest import MakeApp
from tests.support.stores import rows

REPORT = "workflow report(inputs) {\n  return inputs\n}"
FOREVER = 'workflow forever(inputs) {\n  return await signal("never")\n}'


@pytest.fixture
def app(make_app: MakeApp) -> Rhythm:
    return make_app(flows=(REPORT, FOREVER))


def annotated(*annotations: str) -> str:
    return "\n".join([*annotations, REPORT])


def make_due(app: Rhythm, name: str, slots_ago: int = 0) -> None:
    """As if its next slot were that of a moment ago, or of some minutes before."""
    rows(
        app.store,
        f"UPDATE schedules SET next_at = next_at - {60_000_000 * (1 + slots_ago)} WHERE name = ?",
        [name],
    )


def tick(app: Rhythm, told: list[Any] | None = None) -> None:
    """What the services of a worker do."""
    seconds = [0.0]
    observe = (lambda *what: told.append(what)) if told is not None else None
    services = Services(
        app.store, ServiceSettings(), lambda: seconds[0], lambda: 0, app.program, observe
    )
    for _ in range(3):
        services.run()
        seconds[0] += 1


def started(app: Rhythm) -> list[str]:
    return sorted(str(execution.attributes["schedule"]) for execution in app.list())


def test_a_schedule_is_made_listed_and_shown(app: Rhythm) -> None:
    made = app.schedule(
        "nightly",
        "report",
        cron="30 2 * * *",
        tz="Europe/Berlin",
        inputs={"a": 1},
        catch_up=3,
        by="ada",
    )
    assert app.schedules() == [made] == [app.get_schedule("nightly")]
    assert (made.workflow, made.cron, made.tz, made.inputs, made.overlap, made.catch_up) == (
        "report",
        "30 2 * * *",
        "Europe/Berlin",
        {"a": 1},
        "skip",
        3,
    )
    assert (made.status, made.created_by, made.annotation, made.every_s, made.at) == (
        "active",
        "ada",
        False,
        None,
        None,
    )
    times = app.next_times("nightly", 3)
    assert times[0] == made.next_at
    assert (len(times), sorted(times)) == (3, times)
    assert made.as_json()["next_at"] == times[0].isoformat().replace("+00:00", "Z")


def test_intervals_count_from_when_they_were_made_and_dates_come_once(app: Rhythm) -> None:
    every = app.schedule("often", "report", every="15m")
    assert every.next_at == every.created_at + timedelta(minutes=15)
    assert app.next_times("often", 2) == [every.next_at, every.next_at + timedelta(minutes=15)]
    for at in (datetime(2090, 1, 2, 3, 4), "2090-01-02T03:04", "2090-01-02T02:04:00Z"):
        assert app.schedule("once", "report", at=at, tz="Europe/Berlin").next_at == datetime(
            2090, 1, 2, 2, 4, tzinfo=UTC
        )
    assert app.next_times("once", 5) == [datetime(2090, 1, 2, 2, 4, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "one of cron, every and at"),
        ({"cron": "* * * * *", "every": "5m"}, "one of cron, every and at"),
        ({"cron": "* *"}, "five fields"),
        ({"cron": 5}, "cron is a text"),
        ({"cron": "0 9 * * *", "tz": "Mars/Olympus"}, "there is no time zone"),
        ({"cron": "0 9 * * *", "tz": None}, "tz is a text"),
        ({"every": "10ms"}, "a second or longer"),
        ({"every": "often"}, "not a duration"),
        ({"at": "tomorrow"}, "at is a time such as"),
        ({"at": 5}, "at is a datetime"),
        ({"at": "1999-01-01"}, "at lies in the past"),
        ({"every": 60, "overlap": "maybe"}, "overlap is one of"),
        ({"every": 60, "catch_up": 0}, "catch_up is skip, one"),
        ({"every": 60, "catch_up": "all"}, "catch_up is skip, one"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_kept(
    app: Rhythm, given: dict[str, Any], says: str
) -> None:
    with pytest.raises(rhythm.InvalidSchedule, match=says):
        app.schedule("s", "report", **given)
    assert app.schedules() == []


def test_names_workflows_and_inputs_are_checked(app: Rhythm) -> None:
    with pytest.raises(rhythm.UnknownWorkflow, match="did you mean `report`"):
        app.schedule("s", "reprot", every=60)
    with pytest.raises(rhythm.InvalidPayload, match="inputs"):
        app.schedule("s", "report", every=60, inputs={"x": object()})
    with pytest.raises(ValueError, match="come with their workflows"):
        app.schedule("@s", "report", every=60)
    for bad in ("", "x" * 201, "a\0b", 5):
        with pytest.raises(ValueError, match="a schedule's name is a text"):
            app.schedule(bad, "report", every=60)  # type: ignore[arg-type]
    for name in ("nobody", "a\0b", "\ud800"):
        for ask in (
            app.get_schedule,
            app.next_times,
            app.pause_schedule,
            app.resume_schedule,
            app.run_schedule,
            app.delete_schedule,
        ):
            with pytest.raises(rhythm.UnknownSchedule):
                ask(name)


def test_a_slot_starts_the_workflow_with_the_inputs_and_says_so(app: Rhythm) -> None:
    app.schedule("s", "report", every=60, inputs={"a": 1})
    make_due(app, "s")
    tick(app)
    (execution,) = app.list()
    seen = app.get_schedule("s")
    assert (execution.name, execution.inputs, execution.started_by) == (
        "report",
        {"a": 1},
        "schedule:s",
    )
    assert execution.attributes == {
        "schedule": "s",
        "scheduled_at": seen.fires[0].as_json()["slot"],
    }
    assert (seen.fires[0].outcome, seen.fires[0].execution_id, seen.fires[0].manual) == (
        "started",
        execution.id,
        False,
    )
    assert seen.next_at == seen.fires[0].slot + timedelta(minutes=1)
    tick(app)
    assert len(list(app.list())) == 1


def test_a_worker_does_it_by_itself(app: Rhythm) -> None:
    app.schedule("s", "report", every=60, inputs=7)
    make_due(app, "s")
    with app.worker():
        while not (fires := app.get_schedule("s").fires):
            pass
        assert app.result(fires[0].execution_id or "", timeout="120s") == 7


def test_the_same_again_changes_nothing_and_other_times_begin_anew(app: Rhythm) -> None:
    first = app.schedule("s", "report", every=60)
    make_due(app, "s")
    due = app.get_schedule("s")
    assert app.schedule("s", "report", every=60) == due != first
    assert app.schedule("s", "report", every=60, overlap="allow").next_at == due.next_at
    changed = app.schedule("s", "report", every=90)
    assert changed.next_at == changed.updated_at + timedelta(seconds=90)


def test_a_paused_schedule_starts_nothing_until_it_is_resumed_and_then_not_what_it_missed(
    app: Rhythm,
) -> None:
    app.schedule("s", "report", every=60)
    make_due(app, "s")
    assert (app.pause_schedule("s", "holidays", by="ada"), app.pause_schedule("s", by="eve")) == (
        True,
        False,
    )
    paused = app.get_schedule("s")
    assert (paused.status, paused.paused_by, paused.paused_reason) == ("paused", "ada", "holidays")
    tick(app)
    assert started(app) == []
    assert app.next_times("s", 1)[0] > datetime.now(UTC) - timedelta(seconds=5)
    assert (app.resume_schedule("s"), app.resume_schedule("s")) == (True, False)
    tick(app)
    assert (started(app), app.get_schedule("s").fires) == ([], ())


def test_run_now_starts_it_also_while_it_is_paused_and_once_for_each_key(app: Rhythm) -> None:
    app.schedule("s", "forever", every=60)
    app.pause_schedule("s")
    first, second = app.run_schedule("s", by="ada"), app.run_schedule("s", key="k")
    again = app.run_schedule("s", key="k")
    assert (again.id, again.created, first.created) == (second.id, False, True)
    assert first.id != second.id
    assert first.get().started_by == "ada"
    assert [fire.manual for fire in app.get_schedule("s").fires][:2] == [True, True]
    assert [entry.action for entry in app.audit(object="s").items].count("schedule.run") == 2


def test_a_slot_is_skipped_while_the_execution_before_it_runs(app: Rhythm) -> None:
    app.schedule("s", "forever", every=60)
    handle = app.run_schedule("s")
    make_due(app, "s")
    tick(app)
    (fire,) = [fire for fire in app.get_schedule("s").fires if not fire.manual]
    assert (fire.outcome, fire.detail) == ("skipped", f"{handle.id} still runs")


def test_a_queued_slot_runs_when_the_execution_before_it_has_ended(app: Rhythm) -> None:
    app.schedule("s", "forever", every=60, overlap="queue")
    handle = app.run_schedule("s")
    make_due(app, "s")
    tick(app)
    assert (app.get_schedule("s").queued_at is not None, len(list(app.list()))) == (True, 1)
    app.cancel(handle.id)
    with app.worker(), pytest.raises(rhythm.ExecutionFailed):
        handle.result(timeout="120s")
    tick(app)
    assert (app.get_schedule("s").queued_at, len(list(app.list()))) == (None, 2)


def test_after_a_day_without_workers_only_as_much_is_made_up_for_as_is_wanted(app: Rhythm) -> None:
    for name, catch_up in (("none", "skip"), ("one", "one"), ("three", 3)):
        app.schedule(name, "report", every=60, overlap="allow", catch_up=catch_up)
        make_due(app, name, slots_ago=24 * 60)
    told: list[Any] = []
    tick(app, told)
    # the slot of a moment ago is not missed yet
    assert started(app) == ["none", "one", "three", "three", "three"]
    assert {what[:2] for what in told} == {
        ("schedule_missed", name) for name in ("none", "one", "three")
    }
    (missed,) = [fire for fire in app.get_schedule("three").fires if fire.outcome == "missed"]
    assert missed.until is not None
    assert (missed.until - missed.slot) == timedelta(minutes=24 * 60 - 3)


def test_a_slot_of_a_workflow_that_is_gone_fails_and_is_told(app: Rhythm) -> None:
    app.schedule("s", "report", every=60)
    make_due(app, "s")
    rows(app.store, "DELETE FROM workflow_definitions WHERE name = 'report'")
    told: list[Any] = []
    tick(app, told)
    fire = app.get_schedule("s").fires[0]
    assert (fire.outcome, fire.detail, fire.execution_id) == (
        "failed",
        "there is no workflow `report`",
        None,
    )
    assert [what[:2] for what in told] == [("schedule_failed", "s")]
    with pytest.raises(rhythm.UnknownWorkflow):
        app.run_schedule("s")


def test_schedules_that_cannot_be_fired_here_keep_no_other_from_it_and_are_told_once(
    app: Rhythm,
) -> None:
    for name in ("lost", "newer", "long", "good"):
        app.schedule(name, "forever" if name == "newer" else "report", every=60)
        make_due(app, name, slots_ago=9 if name != "good" else 0)
    rows(
        app.store,
        (
            "UPDATE schedules SET cron = '* * * * *', every_us = NULL, tz = 'Mars/Olympus' "
            "WHERE name = 'lost'"
        ),
    )
    rows(
        app.store,
        "UPDATE schedules SET cron = ?, every_us = NULL WHERE name = 'long'",
        ["0-59," * 50_000 + "1 * * * *"],
    )
    rows(
        app.store,
        """UPDATE workflow_definitions SET program = '{"ir": 99}' WHERE name = 'forever'""",
    )
    app._context.programs = ProgramCache()
    told: list[Any] = []
    seconds = [0.0]
    settings = ServiceSettings(batch=2, schedules_every_s=1.0)
    services = Services(
        app.store,
        settings,
        lambda: seconds[0],
        lambda: 0,
        app.program,
        lambda *what: told.append(what),
    )
    for _ in range(8):
        services.run()
        seconds[0] += 1
    assert started(app) == ["good"]
    assert sorted(what[:2] for what in told) == [
        ("schedule_stuck", name) for name in ("long", "lost", "newer")
    ]
    assert app.get_schedule("lost").fires == ()


def test_deleted_it_is_gone_and_what_it_started_is_not(app: Rhythm) -> None:
    app.schedule("s", "report", every=60)
    handle = app.run_schedule("s")
    app.delete_schedule("s", by="ada")
    assert (app.schedules(), handle.get().status) == ([], "pending")
    assert app.audit(object="s").items[0].action == "schedule.delete"


def test_annotations_are_schedules_that_come_and_go_with_their_workflow(app: Rhythm) -> None:
    nightly = (
        '@schedule("30 2 * * *", { tz: "Europe/Berlin", overlap: "queue", catch_up: 2, '
        "inputs: { a: [1] } })"
    )
    app.register(annotated(nightly, '@schedule("0 * * * *")'))
    first, second = app.schedules()
    assert (
        first.name,
        first.cron,
        first.tz,
        first.overlap,
        first.catch_up,
        first.inputs,
        first.annotation,
    ) == (
        "@report",
        "30 2 * * *",
        "Europe/Berlin",
        "queue",
        2,
        {"a": [1]},
        True,
    )
    assert (second.name, second.cron, second.tz, second.catch_up) == (
        "@report.2",
        "0 * * * *",
        "UTC",
        "one",
    )
    app.pause_schedule("@report", by="ada")
    app.register(annotated(nightly, '@schedule("0 * * * *")'))
    assert [view.paused_by for view in app.schedules()] == ["ada", ""]
    with pytest.raises(rhythm.ScheduleOfWorkflow, match="take its @schedule out of the file"):
        app.delete_schedule("@report")
    app.register(annotated(nightly))
    assert [view.name for view in app.schedules()] == ["@report"]
    app.schedule("by hand", "report", every=60)
    app.register(REPORT)
    assert [view.name for view in app.schedules()] == ["by hand"]


def test_an_annotation_that_cannot_be_is_refused_with_its_workflow(app: Rhythm) -> None:
    with pytest.raises(
        rhythm.FlowError, match="there is no time zone 'Europe/Berln'; did you mean 'Europe/Berlin'"
    ):
        app.register(annotated('@schedule("0 9 * * *", { tz: "Europe/Berln" })'))
    assert app.schedules() == []


def test_every_act_is_recorded_with_who_did_it(app: Rhythm) -> None:
    ada = Actor("ada", source="10.0.0.1")
    app.schedule("s", "report", every=60, by=ada)
    app.schedule("s", "report", every=60, by=ada)
    app.schedule("s", "report", every=90, by=ada)
    app.pause_schedule("s", "why", by=ada)
    app.resume_schedule("s", by=ada)
    app.run_schedule("s", by=ada)
    app.delete_schedule("s", by=ada)
    found = [(entry.action, entry.actor, entry.source) for entry in app.audit(object="s").items]
    assert found[::-1] == [
        (f"schedule.{what}", "ada", "10.0.0.1")
        for what in "create change pause resume run delete".split()
    ]


def test_all_of_it_with_coroutines(app: Rhythm) -> None:
    async def work() -> list[Any]:
        made: ScheduleView = await app.aio.schedule("s", "report", every=60)
        handle = await app.aio.run_schedule("s")
        return [
            made.name,
            len(await app.aio.next_times("s")),
            (await app.aio.schedules())[0].name,
            await handle.status(),
        ]

    assert asyncio.run(work()) == ["s", 5, "s", "pending"]


# times that no calendar shows

NEVER: list[dict[str, Any]] = [
    {"at": "9999-12-31T23:59:59-23:59"},
    {"at": "9999-12-31T23:59:59.999999"},
    {"at": "9999-12-31T23:59:59", "tz": "America/Los_Angeles"},
    {"at": datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-23, minutes=-59)))},
    {"at": "0001-01-01T00:00:00+23:59"},
    {"at": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=23, minutes=59)))},
    {"at": datetime.min},
    {"at": datetime.max},
    {"at": "2" * 5000},
    {"every": float("nan")},
    {"every": float("inf")},
    {"every": -1},
    {"every": 1e300},
    {"every": 10**400},
    {"every": "99999999999999999999999999d"},
    {"every": 0.000001},
]


@pytest.mark.parametrize("times", NEVER, ids=str)
def test_a_time_that_could_not_be_shown_is_refused_and_nothing_is_stored(
    app: Rhythm, times: dict[str, Any]
) -> None:
    with pytest.raises(rhythm.InvalidSchedule):
        app.schedule("s", "report", **times)
    assert app.schedules() == []


@pytest.mark.parametrize(
    "times",
    [{"at": "9998-06-01T12:00:00-23:59"}, {"every": "36500d"}, {"cron": "0 0 29 2 *"}],
    ids=str,
)
def test_a_time_that_is_far_away_is_shown_to_everyone(app: Rhythm, times: dict[str, Any]) -> None:
    made = app.schedule("s", "report", **times)
    assert app.schedules() == [made] == [app.get_schedule("s")]
    assert len(app.next_times("s", 1000)) <= 26
    assert made.as_json()["next_at"]


@pytest.mark.parametrize("column", ["at", "next_at", "queued_at", "paused_at", "updated_at"])
def test_a_row_that_no_calendar_shows_hides_no_other_and_stops_no_other(
    app: Rhythm, column: str
) -> None:
    """As one that an earlier version took."""
    app.schedule("bad", "report", at=datetime.now(UTC) + timedelta(days=1))
    app.schedule("good", "report", every=60)
    for us in (253_402_387_139_000_000, -62_135_700_000_000_000):
        rows(app.store, f"UPDATE schedules SET {column} = {us} WHERE name = 'bad'")
        assert [schedule.name for schedule in app.schedules()] == ["bad", "good"]
        assert app.get_schedule("bad").as_json()
    make_due(app, "good")
    tick(app, [])
    assert "good" in started(app)
    app.delete_schedule("bad")


@pytest.mark.parametrize(
    "length", [float("nan"), float("inf"), -1, 1e300, 10**400, -(10**400), "1e9", "9" * 5000]
)
def test_no_length_of_time_is_taken_that_fails_later(app: Rhythm, length: Any) -> None:
    handle = app.start_workflow("forever")
    for call in (
        lambda: app.start_workflow("report", delay=length),
        lambda: app.queue_task("t", timeout=length),
        lambda: app.pause(handle, timeout=length),
        lambda: app.create_token("ada", expires=length),
        lambda: app.result(handle, timeout=length),
    ):
        with pytest.raises(ValueError, match="duration"):
            call()


# what is worked out, and what is written


def test_what_to_do_is_worked_out_while_nobody_is_locked_out(
    app: Rhythm, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A schedule that takes long to work out holds up nobody; and if it is changed meanwhile, that
    counts."""
    app.schedule("s", "report", every=60, overlap="allow")
    make_due(app, "s")
    other, fire, seen = open_store(url), engine.fire, list[str]()

    def slow(due: Due, *args: Any) -> Firing | None:
        if not seen:
            seen.append(due.schedule.name)
            other.workers.pause_queue("elsewhere", True, Actor("ada"), "")
            other.schedules.change(
                "s", lambda before, now: before and before.replace(inputs='"newer"')
            )
        return fire(due, *args)

    monkeypatch.setattr(engine, "fire", slow)
    seconds = [0.0]
    services = Services(
        app.store, ServiceSettings(), lambda: seconds[0], lambda: 0, app.program, None
    )
    _, wait_s = services.run()
    assert (seen, app.list().items) == (["s"], ())
    assert wait_s <= 0.05  # it is looked at again soon
    seconds[0] += wait_s
    services.run()
    (execution,) = app.list().items
    assert execution.inputs == "newer"
    assert len(app.get_schedule("s").fires) == 1
    other.close()


def test_workers_that_work_out_the_same_slots_at_once_write_them_once(
    app: Rhythm, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(5):
        app.schedule(f"s{n}", "report", every=60, overlap="allow", catch_up=3)
        make_due(app, f"s{n}", slots_ago=2)
    other, plan = open_store(url), engine.plan

    def overtaken(*args: Any) -> list[Firing]:
        firings = plan(*args)
        monkeypatch.setattr(engine, "plan", plan)
        Services(other, ServiceSettings(), lambda: 0.0, lambda: 1, app.program, None).run()
        return firings

    monkeypatch.setattr(engine, "plan", overtaken)
    tick(app)
    assert started(app) == [f"s{n}" for n in range(5) for _ in range(3)]
    assert [len(app.get_schedule(f"s{n}").fires) for n in range(5)] == [3] * 5
    other.close()


def test_no_transaction_starts_very_many_executions(
    app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        app.schedule(f"s{n}", "report", every=60, overlap="allow", catch_up=300)
        make_due(app, f"s{n}", slots_ago=299)
    fire, sizes = app.store.schedules.fire, list[int]()

    def counted(firings: Any, actor: Any = None) -> Any:
        sizes.append(sum(len(firing.fires) for firing in firings))
        return fire(firings, actor)

    monkeypatch.setattr(app.store.schedules, "fire", counted)
    for _ in range(4):
        tick(app)
    assert (sum(sizes), len(started_all(app))) == (900, 900)
    assert max(sizes) <= 200


def started_all(app: Rhythm) -> list[str]:
    return [str(execution.attributes["schedule"]) for execution in app.list(limit=1000)]


@pytest.mark.parametrize("act", ["pause", "resume", "delete"])
def test_a_schedule_that_was_deleted_meanwhile_is_unknown_and_not_already_so(
    app: Rhythm, act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.schedule("nightly", "report", every="1h")
    real = app.store.schedules.named

    def overtaken(names: Any) -> Any:
        found = real(names)
        monkeypatch.setattr(app.store.schedules, "named", real)
        app.schedules.delete("nightly")
        return found

    monkeypatch.setattr(app.store.schedules, "named", overtaken)
    with pytest.raises(rhythm.UnknownSchedule, match="there is no schedule 'nightly'"):
        getattr(app.schedules, act)("nightly")
