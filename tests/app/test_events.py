"""Publishing events from Python, on every database."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import rhythm
from tests.app.conftest import MakeApp

WAIT = "120s"
PAID = (
    'workflow paid(inputs) {\n  let e = await event("order.paid", { where: { "order.id": '
    "inputs } })\n  return [e.id, e.data.order.by]\n}"
)


def paid(order: int, by: str) -> dict[str, Any]:
    return {"order": {"id": order, "by": by}}


def test_event_reaches_those_who_wait_for_it_and_an_event_id_counts_once(make_app: MakeApp) -> None:
    app = make_app(flows=(PAID,))
    with app.worker():
        handles = app.start_many("paid", [1, 1, 2])
        assert app.publish("order.paid", paid(1, "ada"), event_id="first")
        assert not app.publish("order.paid", paid(1, "grace"), event_id="first")
        assert app.publish("order.paid", paid(2, "grace"), event_id="second")
        assert [handle.result(WAIT) for handle in handles] == [
            ["first", "ada"],
            ["first", "ada"],
            ["second", "grace"],
        ]


def test_events_without_an_id_of_their_own_are_all_published(make_app: MakeApp) -> None:
    app = make_app()
    assert [app.publish("tick") for _ in range(3)] == [True, True, True]


def test_publishing_wakes_the_workers_of_this_process(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app()
    woken: list[int] = []
    monkeypatch.setattr(app._context, "wake", lambda: woken.append(1))
    app.publish("tick")
    assert woken == [1]


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda app: app.publish("", 1), ValueError, "an event's type is a text of 1 to 200"),
        (
            lambda app: app.publish("tick", event_id="a\0"),
            ValueError,
            "an event_id is a text of 1 to 200",
        ),
        (
            lambda app: app.publish("tick", {"price": float("nan")}),
            rhythm.InvalidPayload,
            "data.price is NaN",
        ),
    ],
)
def test_event_that_cannot_be_stored_is_refused_with_the_reason(
    make_app: MakeApp, act: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        act(make_app())


def test_coroutines_publish_too(tmp_path: Path) -> None:
    async def work(app: rhythm.Rhythm) -> Any:
        handle = await rhythm.start_workflow("paid", 1)
        assert await app.aio.publish("order.paid", paid(2, "ada"), event_id="other")
        assert await rhythm.publish("order.paid", paid(1, "ada"), event_id="mine")
        assert not await rhythm.publish("order.paid", paid(1, "ada"), event_id="mine")
        return await handle.result(WAIT)

    with rhythm.init(f"sqlite:///{tmp_path / 'a.db'}", ()) as app, app.worker():
        app.register(PAID)
        assert asyncio.run(work(app)) == ["mine", "ada"]
