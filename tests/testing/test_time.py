"""The clock of a test stands still, and jumps when everything waits."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from rhythm.errors import ExecutionFailed, ResultTimeout
from rhythm.testing import Env, Stuck
from tests.testing import shop
from tests.testing.conftest import MakeEnv


def test_a_year_passes_while_nothing_sleeps(env: Env) -> None:
    began = env.now
    assert env.run(shop.subscription, "acme", months=12) == 12
    assert env.now - began == timedelta(days=360)
    assert [call.at - began for call in env.calls] == [timedelta(days=30 * n) for n in range(12)]


def test_a_start_runs_until_everything_waits_and_no_time_passes(env: Env) -> None:
    began = env.now
    run = env.start(shop.order, "A1")
    assert (run.status(), run.waits_for, env.now) == ("suspended", ["signal approve"], began)
    assert run.state["receipt"] == "receipt of A1"
    assert run.line is not None


def test_advance_does_what_is_due_on_the_way_in_order(env: Env) -> None:
    env.start(shop.subscription, "acme", months=3)
    other = env.start(shop.order, "A1")
    env.advance("31d")
    assert env.order == ["kit_charge", "kit_charge", "kit_charge"]
    assert other.result() == {"status": "nobody answered"}
    assert [call.inputs["order"] for call in env.calls] == ["acme", "A1", "acme"]


def test_advance_stops_at_its_time_even_if_something_is_due_later(env: Env) -> None:
    began = env.now
    run = env.start(shop.order, "A1")
    env.advance("47h59m")
    assert (run.status(), env.now - began) == ("suspended", timedelta(hours=47, minutes=59))
    env.advance("1m")
    assert run.status() == "completed"


def test_retries_wait_for_their_backoff_on_the_clock(env: Env) -> None:
    charge = env.task(shop.charge).raises(ConnectionError, times=2).returns("ok")
    began = env.now
    run = env.start(shop.order, "A1")
    assert charge.called == 1, "the second attempt waits for its time"
    env.advance("9s")
    assert charge.called == 1
    run.result()
    assert [call.at - began for call in charge.attempts] == [
        timedelta(seconds=s) for s in (0, 10, 30)
    ]


def test_a_backoff_of_an_hour_is_an_hour(make_env: MakeEnv) -> None:
    env = make_env(workflow_paths=())
    env.load('workflow slow() { await task("post", {}, { retries: 2, backoff: "1h" }) }')
    post, began = env.task("post").raises(ConnectionError, times=2).returns("ok"), env.now
    env.run("slow")
    assert [call.at - began for call in post.attempts] == [timedelta(hours=h) for h in (0, 1, 2)]


def test_schedules_fire_as_the_clock_passes_their_times(make_env: MakeEnv) -> None:
    env = make_env(
        workflows=[shop.nightly], tasks=[shop.ship], start=datetime(2026, 1, 1, tzinfo=UTC)
    )
    env.advance("30d")
    ship = env.task("kit_ship")
    assert [call.at for call in ship.attempts] == [
        datetime(2026, 1, day, 3, tzinfo=UTC) for day in range(1, 31)
    ]


def test_a_result_that_cannot_come_says_which_signals_nobody_asks_for(env: Env) -> None:
    env.load('workflow quits() { await signal("quit") }')
    run = env.start("quits")
    env.signal(run, "qiut")
    with pytest.raises(
        Stuck, match=r"waits for signal `quit`.*; `qiut` lies in the mailbox unread"
    ):
        run.result()
    env.signal(run, "exit")
    with pytest.raises(Stuck, match="; `exit`, `qiut` lie in the mailbox unread"):
        run.result()


def test_a_result_that_cannot_come_says_what_would_help(env: Env) -> None:
    run = env.start(shop.listener)
    with pytest.raises(ExecutionFailed, match="Timeout"):
        run.result()
    env.load('workflow kit_waits() { return await signal("go") }')
    with pytest.raises(Stuck, match=r"waits for signal `go` \(env\.signal\(run, 'go', …\)\)"):
        env.run("kit_waits")


def test_result_waits_no_longer_than_its_timeout_on_the_clock(env: Env) -> None:
    began, run = env.now, env.start(shop.order, "A1")
    with pytest.raises(ResultTimeout, match="had not ended after 1d: it waits for signal approve"):
        run.result(timeout="1d")
    assert env.now - began == timedelta(days=1)


def test_a_workflow_that_never_ends_does_not_hang_the_test(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rhythm.testing.env.MAX_JUMPS", 50)
    with pytest.raises(Stuck, match="has not ended after 50 jumps"):
        env.run(shop.forever)


def test_a_clock_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        Env(start=datetime(2026, 1, 1))


@pytest.mark.parametrize("start", ["2026-01-01", 5, date(2026, 1, 1)])
def test_a_clock_starts_at_a_time(start: Any) -> None:
    with pytest.raises(TypeError, match="start is a time"):
        Env(start=start)


def test_waiting_by_the_application_itself_moves_the_clock_too(env: Env) -> None:
    """Code under test waits for a result in its own way."""
    handle = env.app.start(shop.subscription, "acme", months=2)
    assert handle.result() == 2
    assert env.app.result(env.app.start_workflow("kit_subscription", {"customer": "b"})) == 12
