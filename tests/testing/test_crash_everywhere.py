"""Crashes at every commit: what is safe passes, and what is not is found with its schedule."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import rhythm
from rhythm.testing import CrashFailure, Env, Trial, crashes
from tests.testing import conftest, shop


class Ledger:
    """Books whatever it is asked to: twice, if it is asked twice."""

    def __init__(self) -> None:
        self.entries: list[float] = []

    def book(self, order: str, amount: float) -> str:
        self.entries.append(amount)
        return "booked"


class CarefulLedger(Ledger):
    """Books each idempotency key once."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: set[str] = set()

    def book(self, order: str, amount: float) -> str:
        key = rhythm.current().idempotency_key
        if key not in self.keys:
            self.keys.add(key)
            self.entries.append(amount)
        return "booked"

    def clear(self) -> None:
        self.keys.clear()
        self.entries.clear()


def approve(env: Env, run: Trial[Any]) -> None:
    env.signal(run, "approve", {"ok": True})


def test_a_ledger_that_is_not_idempotent_is_found_with_the_smallest_schedule(env: Env) -> None:
    ledger = Ledger()
    env.task("kit_charge").calls(ledger.book)
    with pytest.raises(CrashFailure) as failure:
        env.crash_everywhere(
            shop.order,
            {"id": "A1", "amount": 5},
            script=approve,
            reset=ledger.entries.clear,
            effects=lambda: list(ledger.entries),
        )
    text = str(failure.value)
    assert "effects: without a crash [5.0], now [5.0, 5.0]" in text
    assert "☠ 3 commit: the worker dies before it" in text
    assert failure.value.schedule == "before 3"
    steps = failure.value.steps
    assert sum("→" in line and "kit_charge" in line for line in steps) == 2
    with pytest.raises(CrashFailure, match="schedule 1 of"):
        env.crash_everywhere(
            shop.order,
            {"id": "A1", "amount": 5},
            script=approve,
            reset=ledger.entries.clear,
            effects=lambda: list(ledger.entries),
            only="before 3",
        )


def test_a_careful_ledger_passes_everywhere(env: Env) -> None:
    ledger = CarefulLedger()
    env.task("kit_charge").calls(ledger.book)
    report = env.crash_everywhere(
        shop.order,
        {"id": "A1", "amount": 5},
        script=approve,
        reset=ledger.clear,
        effects=lambda: list(ledger.entries),
        most=12,
    )
    assert (report.runs, report.schedules) == (13, 3 * report.commits)
    assert "the same outcome in" in str(report)


FIRST = """workflow kit_first() {
  let won = await any([task("kit_pack", { item: "a" }), task("kit_pack", { item: "b" })])
  return won
}"""


def in_memory(text: str = "") -> Env:
    """Whether a crash is found does not depend on the database: the first two tests show that."""
    return Env(
        workflow_paths=[text] if text else (),
        tasks=conftest.TASKS,
        workflows=[] if text else conftest.WORKFLOWS,
    )


def test_an_order_that_matters_is_found() -> None:
    """The tasks of one fan-out may end in any order: what counts on one is wrong."""
    with in_memory(FIRST) as env:
        with pytest.raises(CrashFailure, match="number 2 of 2 tasks that have ended comes first"):
            env.crash_everywhere("kit_first", only="order 1:1")
        env.crash_everywhere("kit_first", same_result=False)


@pytest.fixture
def memory() -> Iterator[Env]:
    with in_memory() as env:
        yield env


def test_a_check_is_asked_after_each_run(memory: Env) -> None:
    with pytest.raises(
        AssertionError, match="it fails without any crash: the check returned False"
    ):
        memory.crash_everywhere(shop.parcel, {"items": []}, check=lambda env, run: False)

    def once(env: Env, run: Trial[Any]) -> None:
        assert env.task("kit_pack").called == 1, "packed twice"

    with pytest.raises(CrashFailure, match="the check failed: packed twice"):
        memory.crash_everywhere(shop.parcel, {"items": ["tea"]}, check=once)


def test_a_workflow_that_fails_must_fail_in_the_same_way(memory: Env) -> None:
    memory.task("kit_ship").raises(shop.Declined("no stock"))
    memory.crash_everywhere(shop.saga, {"id": "A1"})
    memory.task("kit_charge").raises(rhythm.TaskFailed("no money", code="Broke"))
    memory.crash_everywhere(shop.saga, {"id": "A1"})


def test_a_wait_that_nobody_ends_is_a_failure_of_the_test() -> None:
    waits = 'workflow kit_waits() { return await signal("go") }'
    with in_memory(waits) as env, pytest.raises(AssertionError, match="waits for signal `go`"):
        env.crash_everywhere("kit_waits")


def test_more_schedules_than_wanted_are_sampled(memory: Env) -> None:
    report = memory.crash_everywhere(shop.parcel, {"items": ["a", "b", "c"]}, most=10)
    assert report.runs == 11 < report.schedules
    assert "a sample of" in str(report)


def test_every_commit_is_tried_before_schedules_are_sampled(memory: Env) -> None:
    whole = memory.crash_everywhere(shop.parcel, {"items": ["a", "b", "c"]})
    seen: list[Any] = []
    alone = 3 * whole.commits
    with pytest.MonkeyPatch.context() as patch:
        real = crashes._run

        def run(env: Env, plan: Any, schedule: Any) -> Any:
            seen.append(schedule)
            return real(env, plan, schedule)

        patch.setattr(crashes, "_run", run)
        memory.crash_everywhere(shop.parcel, {"items": ["a", "b", "c"]}, most=alone + 5)
    assert sum(each.turnabout is None for each in seen) == alone + 1, "and the one without a crash"


def test_a_crash_that_never_came_is_counted(memory: Env) -> None:
    runs = iter(range(1000))
    memory.task("kit_ship").calls(lambda order: str(next(runs)))

    def script(env: Env, run: Trial[Any]) -> None:
        if env.calls[0].result == "0":  # only the first run does this, so it has more commits
            env.start_workflow(shop.saga, {"id": "A2"})

    report = memory.crash_everywhere(shop.quickest, {"id": "A1"}, script=script, same_result=False)
    assert report.unmet > 0
    assert f"in {report.unmet} of them the crash never came" in str(report)


def test_every_run_begins_with_the_same_workflows_and_at_the_same_time() -> None:
    now = "workflow kit_now() { return now() }"
    with Env(workflow_paths=iter(()), tasks=(), workflows=()) as env:
        env.load(now)
        env.advance("1d")
        with env.twin() as first, env.twin() as second:
            assert first.run("kit_now") == second.run("kit_now")
            assert first.now == env.now - timedelta(days=1)
        env.crash_everywhere("kit_now")


def test_an_error_of_a_script_names_its_schedule(memory: Env) -> None:
    runs = iter((None, ZeroDivisionError("oops")))

    def script(env: Env, run: Trial[Any]) -> None:
        if problem := next(runs):
            raise problem

    with pytest.raises(ZeroDivisionError) as found:
        memory.crash_everywhere(shop.parcel, {"items": []}, script=script)
    assert found.value.__notes__ == ["in crash_everywhere, schedule 'before 1'"]


@pytest.mark.parametrize("only", ["before 99", "nonsense"])
def test_a_schedule_that_does_not_exist_is_refused(memory: Env, only: str) -> None:
    with pytest.raises(ValueError, match="there is no schedule"):
        memory.crash_everywhere(shop.parcel, {"items": []}, only=only)


def test_scripts_of_tasks_begin_anew_in_each_run(memory: Env) -> None:
    memory.task("kit_charge").raises(ConnectionError).returns("ok")
    memory.crash_everywhere(shop.saga, {"id": "A1"})
    assert memory.calls == [], "the runs have environments of their own"


def test_a_workflow_that_the_test_has_loaded_is_run_with_crashes(memory: Env) -> None:
    memory.load("workflow loaded_here { return await task('kit_pack', { item: 'tea' }) }")
    assert memory.crash_everywhere("loaded_here").runs > 1


def test_inputs_by_name_are_refused_with_the_call_to_write(env: Env) -> None:
    with pytest.raises(TypeError) as refused:
        env.crash_everywhere("kit_first", {"id": "A1"}, clubs=[])
    assert str(refused.value) == (
        "env.crash_everywhere has no argument 'clubs'; the inputs of the workflow are one object: "
        "env.crash_everywhere('kit_first', {…, 'clubs': …})"
    )
