"""`rhythm schedules`, on both databases."""

from __future__ import annotations

import json
import re

import pytest

from rhythm.app import Rhythm
from tests.app import conftest as applications
from tests.app.conftest import MakeApp
from tests.cli import test_executions as executions
from tests.cli.test_executions import Command

url, make_app, rhythm = applications.url, applications.make_app, executions.rhythm
REPORT = "workflow report(inputs) {\n  return inputs\n}"
ANNOTATED = f'@schedule("0 4 * * *")\n{REPORT}'.replace("report", "tidy")


@pytest.fixture
def app(make_app: MakeApp) -> Rhythm:
    return make_app(flows=(REPORT,))


def lines(text: str) -> list[list[str]]:
    return [re.split(r" {2,}", line) for line in text.splitlines()]


def test_a_schedule_is_made_and_its_times_are_shown_on_the_clocks_of_its_zone(
    rhythm: Command, app: Rhythm
) -> None:
    made = rhythm(
        "schedules",
        "create",
        "nightly",
        "report",
        "--cron",
        "30 2 * * *",
        "--tz",
        "Asia/Tokyo",
        "-i",
        "a:=1",
        "--catch-up",
        "3",
        "--overlap",
        "queue",
        "--by",
        "ada",
    )
    first, *times = made.out.splitlines()
    assert first == "schedule nightly starts report: 30 2 * * * Asia/Tokyo"
    assert [time.split(" ", 2)[2] for time in times] == ["02:30:00 JST"] * 3
    seen = app.get_schedule("nightly")
    assert (seen.inputs, seen.catch_up, seen.overlap, seen.created_by) == (
        {"a": 1},
        3,
        "queue",
        "ada",
    )
    assert rhythm("schedules", "next", "nightly").out.splitlines()[:3] == times
    assert (
        len(json.loads(rhythm("schedules", "next", "nightly", "--output", "json").out)["items"])
        == 5
    )


def test_schedules_are_listed_and_shown(rhythm: Command, app: Rhythm) -> None:
    assert rhythm("schedules").out.startswith("no schedules: ")
    app.register(ANNOTATED)
    app.schedule("often", "report", every="15m", inputs={"a": 1}, by="ada")
    app.schedule("once", "report", at="2090-01-02T03:04Z")
    app.pause_schedule("often", "holidays", by="bob")
    heads, *found = lines(rhythm("schedules", "list").out)
    assert heads == ["SCHEDULE", "STATUS", "WORKFLOW", "WHEN", "NEXT", "NOTE"]
    assert [row[:4] for row in found] == [
        ["@tidy", "active", "tidy", "0 4 * * *"],
        ["often", "paused", "report", "every 15m"],
        ["once", "active", "report", "at 2090-01-02 03:04:00 UTC"],
    ]
    assert found[1][4].startswith("paused now by bob:")
    app.run_schedule("often")
    shown = rhythm("schedules", "show", "often").out
    for text in (
        "status    paused",
        'inputs    {"a": 1}',
        "overlap   skip",
        "catch up  one",
        "by ada",
        "somebody asked for it",
    ):
        assert text in shown
    assert "made      with its workflow, by @schedule" in rhythm("schedules", "show", "@tidy").out
    assert (
        json.loads(rhythm("schedules", "show", "often", "--output", "json").out)["every_s"] == 900.0
    )
    assert [
        json.loads(line)["name"]
        for line in rhythm("schedules", "--output", "ndjson").out.splitlines()
    ] == ["@tidy", "often", "once"]


def test_a_schedule_that_is_misspelt_is_answered_with_the_one_that_was_meant(
    rhythm: Command, make_app: MakeApp
) -> None:
    make_app(flows=(ANNOTATED,))
    for act in ("run", "show", "next", "pause", "resume", "delete"):
        ran = rhythm("schedules", act, "tidy")
        assert (ran.code, ran.err) == (
            1,
            "rhythm: there is no schedule 'tidy'; did you mean `@tidy`?\n",
        )


def test_it_is_paused_resumed_run_and_deleted(rhythm: Command, app: Rhythm, place: str) -> None:
    app.schedule("s", "report", every=60)
    assert rhythm("schedules", "pause", "s", "--reason", "why", "--by", "ada").out.startswith(
        "paused schedule s; "
    )
    assert rhythm("schedules", "pause", "s").out.startswith("it was paused already: schedule s; ")
    assert (app.get_schedule("s").paused_by, app.get_schedule("s").paused_reason) == ("ada", "why")
    id = rhythm("schedules", "run", "s", "--by", "ada").out.strip()
    assert app.get(id).started_by == "ada"
    assert rhythm("schedules", "resume", "s").out.startswith("resumed schedule s")
    assert rhythm("schedules", "resume", "s").out == "schedule s was not paused\n"
    assert (
        rhythm("schedules", "delete", "s", "--by", "ada").out
        == "deleted schedule s; what it has started goes on\n"
    )
    assert app.schedules() == []
    (source,) = {entry.source for entry in app.audit(actor="ada").items}
    assert source == ("cli" if place == "database" else "127.0.0.1")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["show"], 2, "NAME is missing: the name of the schedule"),
        (["create", "s"], 2, "WORKFLOW is missing"),
        (["create", "s", "report"], 2, "one of cron, every and at"),
        (["create", "s", "report", "--cron", "* * *"], 2, "five fields"),
        (["create", "s", "report", "--every", "soon"], 2, "--every: "),
        (
            ["create", "s", "report", "--every", "1h", "--catch-up", "all"],
            2,
            "catch_up is skip, one",
        ),
        (["create", "s", "nobody", "--every", "1h"], 1, "there is no workflow `nobody`"),
        (["pause", "s", "report"], 2, "`report` is one argument too many"),
        (["pause", "s", "--cron", "x"], 2, "--cron is for create"),
        (["run", "s", "-i", "a=1"], 2, "--input is for create"),
        (["run", "s", "--reason", "x"], 2, "--reason is for pause"),
        (["delete", "nobody"], 1, "there is no schedule 'nobody'; `rhythm schedules` lists them"),
        (["delete", "@tidy"], 1, "comes with the workflow `tidy`"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    rhythm: Command, app: Rhythm, words: list[str], code: int, says: str
) -> None:
    app.register(ANNOTATED)
    answer = rhythm("schedules", *words)
    assert (answer.code, says in answer.err) == (code, True), answer
