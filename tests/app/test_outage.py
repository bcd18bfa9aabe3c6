"""Waiting for a result outlives a database that does not answer for a while."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

import rhythm
from rhythm.app.aio import wait_for_result
from rhythm.app.views import ExecutionView
from rhythm.app.waiting import SILENCE_S, PollBackoff
from rhythm.cli.waiting import wait
from tests.app.conftest import MakeApp
from tests.support.postgres import Schemas

WAIT = "120s"
QUICK = "workflow quick(inputs) {\n  return inputs\n}"
SILENT = rhythm.StoreError("it did not answer")


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def waited(patience: PollBackoff, clock: Clock, found: Any) -> float:
    """How long one waits, if every look finds the same, until it is told."""
    began = clock.seconds
    with pytest.raises((rhythm.StoreError, rhythm.ResultTimeout)):  # noqa: PT012 - the loop ends by it
        while True:
            clock.seconds += patience.rest_s(found)
    return clock.seconds - began


@pytest.mark.parametrize(
    ("timeout", "expected"), [(None, SILENCE_S), (60, SILENCE_S), (5, 5.0), (0, 0.0)]
)
def test_silence_is_outlived_for_a_while_or_as_long_as_one_is_ready_to_wait(
    timeout: float | None, expected: float
) -> None:
    clock = Clock()
    assert waited(PollBackoff(timeout, clock), clock, SILENT) == pytest.approx(expected)


def test_answer_ends_the_silence(make_app: MakeApp) -> None:
    app = make_app(flows=(QUICK,))
    execution: ExecutionView = app.start_workflow("quick").get()
    clock = Clock()
    patience = PollBackoff("1h", clock)
    for _ in range(3):
        patience.rest_s(SILENT)
        clock.seconds += SILENCE_S - 1
        patience.rest_s(execution)
    assert waited(patience, clock, SILENT) == pytest.approx(SILENCE_S)


@pytest.mark.parametrize("way", ["plain", "coroutine", "command"])
def test_waiting_goes_on_when_the_database_answers_again(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    app = make_app(flows=(QUICK,))
    with app.worker():
        handle, get, silent = app.start_workflow("quick", 7), app.executions.get, [SILENT] * 3

        def answer(id: Any) -> ExecutionView:
            if silent:
                raise silent.pop()
            return get(id)

        monkeypatch.setattr(app.executions, "get", answer)
        # What has completed would be known without that.
        monkeypatch.setattr(type(app.store.reading), "result", lambda reading, id: None)
        if way == "plain":
            assert handle.result(WAIT) == 7
        elif way == "coroutine":
            assert asyncio.run(wait_for_result(app, handle, WAIT)) == 7
        else:
            ended = wait(app, handle.id, 60.0, lambda execution: "")
            assert isinstance(ended, ExecutionView)
            assert ended.result == 7
        assert not silent


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_result_comes_although_the_connection_was_cut(make_app: MakeApp, schemas: Schemas) -> None:
    def cut() -> str:
        pid = app.store.db.backend  # type: ignore[attr-defined]  # of PostgreSQL
        with psycopg.connect(schemas.url, autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(%s)", [pid])
            while admin.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone():
                pass
        return "cut"

    app = make_app(cut, flows=('workflow w {\n  return await task("cut")\n}',))
    with app.worker():
        assert app.start_workflow("w").result(WAIT) == "cut"
        assert asyncio.run(wait_for_result(app, app.start_workflow("w"), WAIT)) == "cut"
