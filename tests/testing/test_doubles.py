"""Tasks that a test replaces, and what was asked of them."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple
from unittest.mock import Mock

import pytest

import rhythm
from rhythm.errors import ApplicationClosed, ExecutionFailed
from rhythm.testing import Env, Stuck
from tests.testing import shop
from tests.testing.conftest import MakeEnv


def test_a_task_of_which_nothing_is_said_runs_its_own_body(env: Env) -> None:
    assert env.run(shop.parcel, ["tea", "cup"]) == ["box of tea", "box of cup"]
    assert env.task("kit_pack").inputs == [{"item": "tea"}, {"item": "cup"}]


def test_returns_is_what_the_workflow_gets(env: Env) -> None:
    env.task("kit_pack").returns("a box")
    assert env.run(shop.parcel, ["tea", "cup"]) == ["a box", "a box"]


class Parcel(NamedTuple):
    weight: float
    due: date


@rhythm.task(name="kit_weigh")
def weigh(item: str) -> Parcel:
    return Parcel(1.5, date(2026, 1, 31))


WEIGH = 'workflow weigh() { return await task("kit_weigh", { item: "tea" }) }'


def test_a_result_that_the_hint_of_the_task_forbids_is_refused_at_once(env: Env) -> None:
    message = (
        r"the double of task `kit_pack` returns \{1, 2\}, and the task says `-> str`: `result`"
    )
    with pytest.raises(TypeError, match=message):
        env.task("kit_pack").returns({1, 2})
    assert env.run(shop.parcel, ["tea"]) == ["box of tea"], "nothing was said of it"


def test_a_result_that_the_codec_converts_fits_its_hint(make_env: MakeEnv) -> None:
    env = make_env(tasks=[weigh])
    env.load(WEIGH)
    double = env.task("kit_weigh").returns(Parcel(1, date(2026, 1, 31)))
    double.returns({"weight": 1, "due": "2026-01-31"}).returns([1, date(2026, 1, 31)])
    with pytest.raises(TypeError, match=r"`result\.due` must be a date such as"):
        double.returns({"weight": 1, "due": "soon"})
    assert env.run("weigh") == {"weight": 1, "due": "2026-01-31"}


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_function_that_returns_what_the_hint_forbids_fails_the_attempt(
    env: Env, asynchronous: bool
) -> None:
    async def later(item: str) -> int:
        return len(item)

    env.task("kit_pack").calls(later if asynchronous else lambda item: len(item))
    with pytest.raises(ExecutionFailed, match="the double of task `kit_pack` returns 3, and the"):
        env.run(shop.parcel, ["tea"])


def test_a_task_that_only_the_test_knows_may_return_anything(make_env: MakeEnv) -> None:
    env = make_env(tasks=[])
    env.load(WEIGH)
    env.task("kit_weigh").returns({1, 2})
    assert env.run("weigh") == [1, 2]


def test_each_step_is_done_once_and_the_last_one_stays(env: Env) -> None:
    env.task("kit_pack").returns("first").returns("second", times=2).returns("then")
    assert env.run(shop.parcel, list("abcde")) == ["first", "second", "second", "then", "then"]


def test_raises_is_retried_as_the_task_says(env: Env) -> None:
    charge = env.task("kit_charge").raises(ConnectionError("no route"))
    with pytest.raises(ExecutionFailed, match="no route"):
        env.run(shop.order, "A1")
    assert [call.attempt for call in charge.attempts] == [1, 2, 3, 4]
    assert {call.id for call in charge.attempts} == {charge.attempts[0].id}


def test_an_exception_is_caught_by_its_class(env: Env) -> None:
    env.task("kit_ship").raises(shop.Declined("no stock"))
    assert env.run(shop.saga, "A1") == "refunded A1"
    assert env.order == ["kit_charge", "kit_ship", "kit_refund"]


@pytest.mark.parametrize("kind", ["plain", "async", "mock"])
def test_calls_gets_the_inputs_as_the_task_does(env: Env, kind: str) -> None:
    def plain(item: str) -> str:
        return item.upper()

    async def later(item: str) -> str:
        return item.upper()

    mock = Mock(side_effect=plain)
    env.task("kit_pack").calls({"plain": plain, "async": later, "mock": mock}[kind])
    assert env.run(shop.parcel, ["tea"]) == ["TEA"]
    assert kind != "mock" or mock.call_args.kwargs == {"item": "tea"}


def test_a_body_in_place_of_another_knows_its_idempotency_key(env: Env) -> None:
    keys: list[str] = []
    env.task("kit_pack").calls(lambda item: keys.append(rhythm.current().idempotency_key))
    run = env.start(shop.parcel, ["tea"])
    assert keys == [env.calls[0].id]
    assert keys[0].startswith(f"{run}.")


def test_takes_is_how_long_it_takes_on_the_clock(env: Env) -> None:
    env.task("kit_ship").returns("there", takes="20m")
    assert "late" in env.run(shop.quickest, "A1")
    began = env.now
    env.task("kit_pack").runs(takes="5m")
    assert env.run(shop.parcel, ["tea"]) == ["box of tea"]
    assert env.now - began == timedelta(minutes=5)


def test_what_hangs_ends_by_its_timeout(env: Env) -> None:
    began = env.now
    charge = env.task("kit_charge").hangs().returns("ok")
    run = env.start(shop.order, "A1")
    assert (run.waits_for, charge.called) == (["task kit_charge"], 1)
    env.advance("1m")
    assert env.now - began == timedelta(minutes=1)
    env.advance("10s")
    assert charge.called == 2
    assert charge.attempts[1].result == "ok"


def test_what_hangs_without_a_timeout_is_cancelled_with_its_workflow(env: Env) -> None:
    env.task("kit_pack").hangs()
    run = env.start(shop.parcel, ["tea"])
    with pytest.raises(Stuck):
        run.result()
    env.cancel(run)
    assert run.status() == "cancelled"


def test_a_worker_that_dies_in_a_task_is_replaced(env: Env) -> None:
    pack = env.task("kit_pack").crashes().returns("a box")
    assert env.run(shop.parcel, ["tea"]) == ["a box"]
    assert pack.called == 2
    env.task("kit_ship").crashes()
    with pytest.raises(ExecutionFailed, match="died 3 times"):
        env.run(shop.saga, "A1")


def test_doubles_refuse_what_the_task_would_refuse(env: Env) -> None:
    env.task("kit_pack").returns("a box")
    env.load(
        'workflow kit_wrong() { return await task("kit_pack", { item: 5 }) }\n'
        'workflow kit_none() { return await task("kit_pack", { box: "tea" }) }'
    )
    with pytest.raises(ExecutionFailed, match="InvalidInputs"):
        env.run("kit_wrong")
    with pytest.raises(ExecutionFailed, match="missing a required argument"):
        env.run("kit_none")


def test_a_result_that_cannot_be_stored_fails_as_elsewhere(env: Env) -> None:
    env.task("kit_pack").returns(object())
    with pytest.raises(ExecutionFailed, match="InvalidResult"):
        env.run(shop.parcel, ["tea"])


def test_tasks_of_other_workers_need_no_body(env: Env) -> None:
    env.load('workflow kit_remote() { return await task("kit_elsewhere", { n: 1 }) }')
    with pytest.raises(ExecutionFailed, match="no task of this name is known to the test"):
        env.run("kit_remote")
    env.task("kit_elsewhere").returns(7)
    assert env.run("kit_remote") == 7


def test_a_name_that_nobody_knows_is_refused_with_the_nearest(env: Env) -> None:
    with pytest.raises(LookupError, match="did you mean `kit_charge`"):
        env.task("kit_chrage")


def test_a_transactional_task_with_a_script_runs_on_any_database(make_env: MakeEnv) -> None:
    from rhythm.worker.handlers import Task

    task = Task(lambda: None, "kit_book", transactional=True)
    env = make_env(tasks=[task], workflows=[])
    env.load('workflow kit_books() { return await task("kit_book") }')
    env.task("kit_book").returns("booked")
    assert env.run("kit_books") == "booked"


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda task: task.raises("oops"), "takes an exception"),
        (lambda task: task.calls(5), "takes a function"),
        (lambda task: task.returns("a", times=0), "times is a whole number"),
        (lambda task: task.returns("a", takes="soon"), "soon"),
    ],
)
def test_bad_steps_are_refused_when_they_are_said(act, message) -> None:
    with Env(workflow_paths=(), tasks=[shop.pack], workflows=[]) as env:
        task = env.task("kit_pack")
        with pytest.raises((TypeError, ValueError), match=message):
            act(task)


def test_all_queues_are_served(env: Env) -> None:
    env.load(
        '@queue("kit-slow")\nworkflow kit_slow() { return await task("kit_pack", { item: "a" }) }'
    )
    assert env.run("kit_slow") == "box of a"


def test_a_body_that_waits_for_later_is_named_instead_of_hanging_the_test(
    make_env: MakeEnv,
) -> None:
    import threading

    gate = threading.Event()
    env = make_env(patience=0.3)
    env.task("kit_pack").calls(lambda item: gate.wait(60))
    try:
        with pytest.raises(Stuck, match=r"the body of `kit_pack` has run for"):
            env.start(shop.parcel, ["tea"])
    finally:
        gate.set()


def test_a_real_body_over_its_timeout_is_given_up(make_env: MakeEnv) -> None:
    import threading

    from rhythm.worker.handlers import Task

    gate = threading.Event()
    slow = Task(lambda: gate.wait(60), "kit_slow_body", timeout_s=0.2)
    env = make_env(tasks=[slow], workflows=[])
    env.load('workflow kit_slow_run() { return await task("kit_slow_body") }')
    try:
        with pytest.raises(ExecutionFailed, match="took longer than"):
            env.run("kit_slow_run")
    finally:
        gate.set()


def test_a_closed_environment_refuses_everything(make_env: MakeEnv) -> None:
    env = make_env()
    run = env.start(shop.order, "A1")
    env.close()
    for use in (run.result, env.settle, lambda: env.advance("1d"), lambda: env.start(shop.forever)):
        with pytest.raises(ApplicationClosed):
            use()


class AsyncBox:
    """An object that is called like an `async def`."""

    async def __call__(self, item: str) -> str:
        return f"async box of {item}"


def test_an_object_with_an_async_call_is_awaited(env: Env) -> None:
    env.task("kit_pack").calls(AsyncBox())
    assert env.run(shop.parcel, ["tea"]) == ["async box of tea"]


def test_a_class_without_a_signature_is_called(make_env: MakeEnv) -> None:
    from rhythm.worker.handlers import Task

    env = make_env(tasks=[Task(lambda item: None, "kit_pack")])
    env.task("kit_pack").calls(dict)
    assert env.run(shop.parcel, ["tea"]) == [{"item": "tea"}]


def test_a_body_that_waits_for_the_test_fails_at_once(env: Env) -> None:
    env.task("kit_pack").calls(lambda item: env.run(shop.parcel, []))
    with pytest.raises(ExecutionFailed, match="the body of `kit_pack` wants the test to go on"):
        env.run(shop.parcel, ["tea"])


def test_a_body_that_waits_for_a_result_of_the_application_fails_at_once(env: Env) -> None:
    env.task("kit_pack").calls(
        lambda item: env.app.start_workflow(shop.parcel, {"items": []}).result()
    )
    with pytest.raises(ExecutionFailed, match="the body of `kit_pack` wants the test to go on"):
        env.run(shop.parcel, ["tea"])
