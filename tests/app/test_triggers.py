"""Workflows that events start (`@on`), from the text of a workflow to its result, on every
database."""

from __future__ import annotations

from typing import Any

import pytest

import rhythm
from tests.app.conftest import MakeApp

WAIT = "120s"
SHIP = (
    '@on("order.paid") @queue("orders")\nworkflow ship(inputs) { return ["shipped", inputs.order] }'
)
PAY = (
    '@on("order.created")\nworkflow pay(inputs) { publish("order.paid", { order: inputs.order }) }'
)


def results(app: rhythm.Rhythm, workflow: str) -> list[Any]:
    return [app.result(execution.id, WAIT) for execution in app.list(workflow)]


def test_an_event_starts_a_workflow_and_its_events_start_others(make_app: MakeApp) -> None:
    app = make_app(flows=(SHIP, PAY))
    with app.worker(queues=["default", "orders"]):
        assert app.publish("order.created", {"order": 7}, event_id="o7", by="ada")
        assert not app.publish("order.created", {"order": 7}, event_id="o7")
        assert results(app, "pay") == [None]
        assert results(app, "ship") == [["shipped", 7]]
    (shipped,) = app.list("ship")
    assert (shipped.queue, shipped.attributes["event_type"]) == ("orders", "order.paid")
    started = {
        row.name: row.started_by
        for row in app.store.reading.get([e.id for e in app.list()]).values()
    }
    assert started == {"pay": "ada", "ship": "ada"}


def test_a_text_that_does_not_compile_leaves_the_trigger_as_it_was(make_app: MakeApp) -> None:
    app = make_app(flows=(SHIP,))
    before = app.store.definitions.triggers()
    with pytest.raises(rhythm.FlowError):
        app.register(SHIP.replace("inputs.order", "nothing.here"), PAY)
    assert app.store.definitions.triggers() == before
    app.publish("order.paid", {"order": 1})
    (started,) = app.list("ship")
    assert app.store.reading.get([started.id])[started.id].version == before[0].version


def test_a_workflow_that_is_registered_without_on_is_started_no_more(make_app: MakeApp) -> None:
    app = make_app(flows=(SHIP,))
    app.publish("order.paid", {"order": 1})
    app.register(SHIP.partition("\n")[2])
    app.publish("order.paid", {"order": 2})
    assert [execution.inputs for execution in app.list("ship")] == [{"order": 1}]
    app.register(SHIP)
    app.publish("order.paid", {"order": 3})
    assert [execution.inputs for execution in app.list("ship")] == [{"order": 3}, {"order": 1}]


def test_an_annotation_that_stands_twice_starts_one(make_app: MakeApp) -> None:
    app = make_app(flows=('@on("a") @on("b") @on("a") workflow both() { return 1 }',))
    for type in ("a", "b", "c"):
        app.publish(type)
    assert sorted(execution.attributes["event_type"] for execution in app.list("both")) == [
        "a",
        "b",
    ]
