"""What Python code gives an application goes through the gate: typed values get in, others are
refused, large ones are told."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import pytest

import rhythm
from rhythm.errors import InvalidPayload
from tests.app.conftest import MakeApp


@dataclass
class Order:
    due: date
    total: Decimal


FLOW = """
workflow main(ctx, inputs) {
  let order = await signal("order")
  return await task("later", { order, days: inputs.days })
}
"""


def later(order: Order, days: set[int]) -> Order:
    return Order(order.due.replace(day=max(days)), order.total * 2)


def test_typed_values_go_in_through_every_door_and_reach_the_task(make_app: MakeApp) -> None:
    app = make_app(later, flows=(FLOW,))
    handle = app.start_workflow("main", {"days": {3, 5}})
    app.signal(handle.id, "order", Order(date(2026, 1, 31), Decimal("12.50")))
    with app.worker():
        assert handle.result("120s") == {"due": "2026-01-05", "total": "25.00"}


def test_input_that_does_not_fit_fails_the_task_of_a_worker(make_app: MakeApp) -> None:
    app = make_app(later, flows=(FLOW,))
    handle = app.start_workflow("main", {"days": [3]})
    app.signal(handle.id, "order", {"due": "soon", "total": 1})
    message = 'input `order.due` must be a date such as "2026-01-31", not "soon"'
    with app.worker(), pytest.raises(rhythm.ExecutionFailed, match=message):
        handle.result("120s")


def test_what_cannot_be_stored_is_refused_at_the_door(make_app: MakeApp) -> None:
    app = make_app(flows=(FLOW,))
    with pytest.raises(InvalidPayload, match=r"inputs\.days\[1\] is NaN"):
        app.start_workflow("main", {"days": [1, float("nan")]})
    handle = app.start_workflow("main", {})
    with pytest.raises(InvalidPayload, match="payload has the character NUL"):
        app.signal(handle.id, "order", "\0")


def test_large_inputs_and_signals_are_told_once(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app, large = make_app(flows=(FLOW,)), "x" * 300_000
    with caplog.at_level(logging.WARNING, "rhythm"):
        for _ in range(2):
            app.signal(app.start_workflow("main", large).id, "order", large)
    told = [
        record.getMessage().split(" execution")[0]
        for record in caplog.records
        if record.name == "rhythm"
    ]
    assert told == ["payload_large what=inputs of=main", "payload_large what=signal of=order"]


CHANGED = """
workflow main(ctx, inputs) {
  let xs = [1, 2, 3]
  let deep = { xs: [xs] }
  let r = await all([task("changes", { xs, deep }), task("changes", { xs, deep })])
  let again = await task("changes", { xs, deep, fails: 1 }, { retries: 1, backoff: "1ms" })
  await task("takes", xs)
  return { r, again, xs, deep }
}
"""


def test_what_a_handler_does_to_its_inputs_is_its_own(make_app: MakeApp) -> None:
    """No other task sees it, nor its next attempt, nor the workflow, nor who looks at it later."""

    def changes(xs: list[int], deep: dict[str, list[object]], fails: int = 0) -> int:
        xs.pop()
        deep["xs"].append("mine")
        if rhythm.current().attempt <= fails:
            raise ValueError("once more")
        return len(xs)

    def takes(xs: list[int]) -> None:
        xs.clear()

    app = make_app(changes, takes, flows=(CHANGED,))
    with app.worker():
        handle = app.start_workflow("main")
        result = handle.result("120s")
    given = {"xs": [1, 2, 3], "deep": {"xs": [[1, 2, 3]]}}
    assert result == {"r": [2, 2], "again": 2, **given}
    inputs = [app.get(each.id).inputs for each in app.children(handle).items]
    assert inputs == [given, given, {**given, "fails": 1}, [1, 2, 3]]


def test_what_a_handler_puts_into_its_inputs_need_not_be_storable(make_app: MakeApp) -> None:
    def fills(xs: list[object]) -> int:
        xs.append(object())
        return len(xs)

    flow = 'workflow main { let xs = [1]\nlet n = await task("fills", { xs })\nreturn [n, xs] }'
    app = make_app(fills, flows=(flow,))
    with app.worker():
        assert app.start_workflow("main").result("120s") == [2, [1]]
