"""Every way in which an order can end."""

import pytest
from order_with_approval import order_with_approval as order

import rhythm
from rhythm.testing import Env


def test_small_order_asks_nobody(env: Env) -> None:
    assert env.run(order, "A1", amount=5.0)["status"] == "shipped"


def test_large_order_is_shipped_when_somebody_approves(env: Env) -> None:
    run = env.start(order, "A1", amount=900.0)
    assert run.waits_for == ["an approval by sales"]
    env.decide(run, "approve", by="ann")
    assert run.result() == {"status": "shipped", "parcel": "parcel of A1"}


def test_director_is_asked_after_a_day(env: Env) -> None:
    run = env.start(order, "A1", amount=900.0)
    env.advance("25h")
    assert [approval.role for approval in env.app.approvals().items] == ["director"]
    env.decide(run, "approve", by="dora")
    assert run.result()["status"] == "shipped"


def test_money_goes_back_if_somebody_says_no(env: Env) -> None:
    refund = env.task("refund").returns(None)
    run = env.start(order, "A1", amount=900.0)
    env.decide(run, "reject", by="ann")
    assert (run.result(), refund.called) == ({"status": "rejected"}, 1)


def test_money_goes_back_if_nobody_answers(env: Env) -> None:
    refund = env.task("refund").returns(None)
    assert env.run(order, "A1", amount=900.0) == {"status": "expired"}
    assert refund.called == 1


def test_money_goes_back_if_it_cannot_be_shipped(env: Env) -> None:
    env.task("ship").raises(ConnectionError)
    refund = env.task("refund").returns(None)
    with pytest.raises(rhythm.ExecutionFailed):
        env.run(order, "A1", amount=5.0)
    assert refund.called == 1
