"""Naming an execution: by its id, or by its handle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import rhythm
from tests.app.conftest import MakeApp

WAIT = "120s"
HOLD = 'workflow hold(inputs) {\n  return await signal("go")\n}'
CALLS: list[Callable[[Any, Any], Any]] = [
    lambda app, of: app.get(of),
    lambda app, of: app.result(of, WAIT),
    lambda app, of: app.trace(of),
    lambda app, of: app.signal(of, "go", 1),
    lambda app, of: app.pause(of),
    lambda app, of: app.resume(of),
    lambda app, of: app.cancel(of),
    lambda app, of: app.retry(of),
]


def test_handle_is_taken_wherever_an_id_is(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD,))
    handle, other = app.start_many("hold", [1, 2])
    assert app.get(handle).id == handle.id
    assert app.trace(handle)[0].execution_id == handle.id
    assert app.pause(handle)
    assert app.resume(handle)
    assert app.signal(handle, "go", "now")
    assert app.cancel(other)
    with app.worker():
        assert app.result(handle, WAIT) == "now"
        with pytest.raises(rhythm.ExecutionFailed, match="cancelled"):
            app.result(other, WAIT)
        again = app.retry(other)
        app.signal(again, "go", "again")
        assert app.result(again, WAIT) == "again"


def test_handle_with_coroutines_is_taken_too_by_both_kinds_of_methods(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD,))

    async def work() -> Any:
        handle = await app.aio.start_workflow("hold")
        assert (await app.aio.get(handle)).id == app.get(handle).id == handle.id
        await app.aio.signal(handle, "go", "now")
        return await app.aio.result(handle, WAIT)

    with app.worker():
        assert asyncio.run(work()) == "now"


@pytest.mark.parametrize("call", CALLS)
def test_whatever_is_no_text_and_no_handle_is_refused(
    make_app: MakeApp, call: Callable[[Any, Any], Any]
) -> None:
    app = make_app()
    for given in (5, None, b"id", ["id"], object()):
        with pytest.raises(
            TypeError, match="an execution is named by its id, a text, or by its handle, not by "
        ):
            call(app, given)


@pytest.mark.parametrize("call", CALLS)
def test_text_that_no_database_holds_is_the_id_of_no_execution(
    make_app: MakeApp, call: Callable[[Any, Any], Any]
) -> None:
    app = make_app()
    for given in ("a\0b", "a\ud800b"):
        with pytest.raises(rhythm.UnknownExecution, match="there is no execution 'a"):
            call(app, given)


def test_id_that_no_execution_can_have_is_an_error_of_its_own(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD,))
    with pytest.raises(
        rhythm.InvalidId, match="'a/b' cannot be an id: an id contains no dot, slash"
    ) as raised:
        app.start_workflow("hold", id="a/b")
    assert isinstance(raised.value, ValueError)
    assert isinstance(raised.value, rhythm.RhythmError)
