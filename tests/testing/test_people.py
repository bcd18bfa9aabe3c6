"""What comes from outside: signals, events, decisions, cancels."""

from __future__ import annotations

import pytest

import rhythm
from rhythm.errors import Denied, ExecutionFailed
from rhythm.testing import Env, Stuck
from tests.testing import shop


def test_a_signal_lets_it_go_on(env: Env) -> None:
    run = env.start(shop.order, "A1")
    env.signal(run, "approve", {"ok": True})
    assert run.waits_for == ["a timer"]
    assert run.result() == {"status": "A1 is on its way", "receipt": "receipt of A1"}
    assert run.history[0].what == "started"


def test_an_event_reaches_who_waits_for_it(env: Env) -> None:
    run = env.start(shop.listener)
    env.publish("kit.paid", {"amount": 5})
    assert run.result() == 5


@pytest.mark.parametrize(("decision", "result"), [("approve", "approved"), ("reject", "rejected")])
def test_people_decide(env: Env, decision: str, result: str) -> None:
    run = env.start(shop.expense, 900.0)
    assert env.decide(run, decision, by="ann", comment="fine").role == "finance"
    assert run.result() == result


def test_nobody_decides_in_time(env: Env) -> None:
    assert env.run(shop.expense, 900.0) == "expired"


def test_roles_are_checked_if_the_actor_has_them(env: Env) -> None:
    run = env.start_workflow(shop.expense, {"amount": 1.0}, by="sue")
    with pytest.raises(Denied, match="does not hold the role"):
        env.decide(run, by=rhythm.Actor("bob", roles=("sales",)))
    with pytest.raises(Denied, match="four eyes"):
        env.decide(run, by="sue")
    env.decide(run, by=rhythm.Actor("ann", roles=("finance",)))
    assert run.result() == "approved"


def test_an_approval_that_nobody_asked_for_is_refused_with_what_it_waits_for(env: Env) -> None:
    run = env.start(shop.order, "A1")
    with pytest.raises(Stuck, match="asks for no approval: it waits for signal approve"):
        env.decide(run)
    with pytest.raises(ValueError, match="decide with one of"):
        env.decide(run, "maybe")  # type: ignore[arg-type]  # that is what is tested


def test_a_cancelled_execution_ends(env: Env) -> None:
    run = env.start(shop.order, "A1")
    env.cancel(run)
    with pytest.raises(ExecutionFailed, match="cancelled"):
        run.result()
    assert run.error is not None


def test_a_worker_that_dies_between_two_acts_changes_nothing(env: Env) -> None:
    run = env.start(shop.order, "A1")
    env.crash()
    env.signal(run, "approve", {"ok": True})
    env.crash()
    assert run.result()["status"] == "A1 is on its way"
    assert env.order == ["kit_charge", "kit_ship"]


def test_start_takes_inputs_by_name_or_as_an_object(env: Env) -> None:
    assert env.run("kit_parcel", items=["a"]) == env.run("kit_parcel", {"items": ["a"]})
    with pytest.raises(TypeError, match="one object of inputs, or inputs by name"):
        env.start("kit_parcel", {"items": []}, items=[])


def test_what_is_done_with_a_run_itself_happens_at_once(env: Env) -> None:
    approved, given_up = env.start(shop.order, "A1"), env.start(shop.order, "A2")
    assert approved.signal("approve", {"ok": True})
    assert given_up.cancel()
    assert (approved.waits_for, given_up.status()) == (["a timer"], "cancelled")
