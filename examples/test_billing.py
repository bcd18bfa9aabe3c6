"""A year passes in each of these tests."""

from billing import billing

from rhythm.testing import Env


def test_twelve_months_are_twelve_charges(env: Env) -> None:
    charge = env.task("charge_card").returns("receipt")
    began = env.now
    assert env.run(billing, "ada", price=5.0)["status"] == "finished"
    assert charge.called == 12
    assert (env.now - began).days == 360


def test_new_price_counts_from_the_next_month(env: Env) -> None:
    run = env.start(billing, "ada", price=5.0, periods=3)
    env.advance("40d")
    env.signal(run, "change", {"price": 6.0})
    assert run.result()["receipts"] == ["ada:5.00:0", "ada:5.00:1", "ada:6.00:2"]


def test_who_leaves_in_march_pays_three_times(env: Env) -> None:
    run = env.start(billing, "ada", price=5.0)
    env.advance("70d")
    env.signal(run, "change", {"cancel": True})
    assert run.result()["status"] == "cancelled"
    assert env.order == ["charge_card"] * 3


def test_card_is_charged_once_a_month_whatever_crashes(env: Env) -> None:
    charged: dict[str, float] = {}  # what a bank would keep, by idempotency key

    def charge_card(customer: str, amount: float, period: int) -> str:
        charged[f"{customer}-{period}"] = amount
        return "receipt"

    env.task("charge_card").calls(charge_card)
    env.crash_everywhere(
        billing,
        {"customer": "ada", "price": 5.0, "periods": 2},
        reset=charged.clear,
        effects=lambda: dict(charged),
    )
