"""`rhythm watch`: what happens in an execution, as it happens, on both databases and over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rhythm.app import Rhythm, TraceStep
from rhythm.app.views import TracePage
from rhythm.cli import timeline
from rhythm.cli.commands import watch
from rhythm.cli.timeline import Timeline
from rhythm.errors import Unavailable
from tests.app import conftest as applications
from tests.cli import test_executions as executions
from tests.cli.test_executions import Command, until, waits_for_signal

url, make_app, rhythm = applications.url, applications.make_app, executions.rhythm
app = executions.app


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "INTERVAL_S", 0.01)


def test_what_happens_is_printed_until_it_has_ended(
    rhythm: Command, app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = app.start_workflow("order", {"id": "A17"}).id
    until(app, id, waits_for_signal)
    asked: list[None] = []

    def go(seconds: float) -> None:
        asked.append(None)
        if len(asked) == 1:
            app.signal(id, "approve", {"ok": True})
            until(app, id, executions.ended)

    monkeypatch.setattr(watch, "sleep", go)
    ran = rhythm(f"watch {id}")
    assert (ran.code, ran.err, len(asked)) == (0, "", 1)
    assert ran.out == rhythm(f"trace {id}").out
    steps = [json.loads(line) for line in rhythm(f"watch {id} --output ndjson").out.splitlines()]
    assert steps == rhythm(f"trace {id} --output json").json["items"]


def test_failure_and_time_that_is_over_have_the_exit_codes_of_result(
    rhythm: Command, app: Rhythm
) -> None:
    id = app.start_workflow("order", {"id": "unpaid"}).id
    ran = rhythm(f"watch {id} --timeout 30ms")
    assert (ran.code, ran.err) == (3, f"rhythm: {id} had not ended after 30ms; it goes on\n")
    until(app, id, executions.ended)
    ran = rhythm(f"watch {id}")
    assert ran.code == 1
    assert "failed[" in ran.err
    assert "no money" in ran.err
    assert rhythm("watch nobody").code == 1


def test_ctrl_c_ends_it(rhythm: Command, app: Rhythm, monkeypatch: pytest.MonkeyPatch) -> None:
    id = app.start_workflow("order").id

    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "sleep", stop)
    ran = rhythm(f"watch {id}")
    assert (ran.code, ran.err) == (130, f"rhythm: stopped watching; {id} goes on\n")


def test_database_that_goes_away_for_a_while_is_waited_for(
    rhythm: Command, app: Rhythm, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = app.start_workflow("order", {"id": "A17"}).id
    until(app, id, waits_for_signal)
    app.terminate(id)
    news, failures = Timeline.news, [Unavailable("gone"), Unavailable("gone")]

    def gone(self: Timeline) -> Any:
        if failures:
            raise failures.pop()
        return news(self)

    monkeypatch.setattr(Timeline, "news", gone)
    ran = rhythm(f"watch {id}")
    assert (ran.code, "cancelled order" in ran.out) == (1, True)
    failures += [Unavailable("gone")]
    monkeypatch.setattr(watch, "SILENCE_S", -1)
    assert rhythm(f"watch {id}").err == "rhythm: gone\n"


# what is new


class Steps:
    """An application that has only a trace."""

    def __init__(self) -> None:
        self.steps: list[TraceStep] = []

    def trace_page(self, id: str, limit: int, cursor: str | None) -> TracePage:
        rest = [step for step in self.steps if cursor is None or str(step.at) > cursor]
        more = len(rest) > limit
        return TracePage(tuple(rest[:limit]), str(rest[limit - 1].at) if more else None)

    def add(self, *numbers: int) -> None:
        self.steps += [
            TraceStep(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=n), "a", "turn", "a", n)
            for n in numbers
        ]
        self.steps.sort(key=lambda step: step.at)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> tuple[Steps, list[float], Callable[[], list[Any]]]:
    monkeypatch.setattr(timeline, "PAGE_STEPS", 3)
    steps, clock = Steps(), [0.0]
    made = Timeline(steps, "a", lambda: clock[0])  # type: ignore[arg-type]  # all that it asks for
    return steps, clock, lambda: [step.line for page in made.news() for step in page]


def test_each_step_is_given_out_once_also_if_it_becomes_visible_late(
    read: tuple[Steps, list[float], Callable[[], list[Any]]],
) -> None:
    steps, clock, news = read
    steps.add(1, 3, 5)
    assert (news(), news()) == ([1, 3, 5], [])
    steps.add(2, 7, 9, 11)
    assert (news(), news()) == ([2, 7, 9, 11], [])
    steps.add(4, 6, 8)
    assert (news(), news()) == ([4, 6, 8], [])
    clock[0] = timeline.SETTLED_S
    steps.add(12)
    assert (news(), news()) == ([12], [])
    steps.add(13, 10)
    assert (sorted(news()), news()) == ([10, 13], [])


def test_long_timeline_is_not_read_from_its_beginning_every_time(
    read: tuple[Steps, list[float], Callable[[], list[Any]]],
) -> None:
    steps, clock, news = read
    steps.add(*range(300))
    assert news() == [*range(300)]
    for n in range(100):
        clock[0] += timeline.SETTLED_S
        assert news() == [], n
    steps.add(300)
    steps.steps[:290] = []  # would be missed if it were read from there
    assert news() == [300]
