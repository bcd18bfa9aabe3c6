"""Warnings prevent no registration: they are logged, once in the life of a process."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import rhythm
from rhythm.app.loading import _logged
from rhythm.authoring.workflow import Workflow, default_workflows
from tests.app.conftest import MakeApp


async def unreached(n: int) -> int:
    return n
    return n + 1


def charge(amount: float) -> int:
    return int(amount)


def warned(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [
        (record.code, record.detail)  # type: ignore[attr-defined]  # fields of the event
        for record in caplog.records
        if getattr(record, "event", "") == "workflow_warned"
    ]


@pytest.fixture(autouse=True)
def _nothing_logged_before() -> None:
    _logged.clear()


def test_python_workflow_is_warned_of_once(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    default_workflows.add(Workflow(unreached, "unreached", {}))
    with caplog.at_level(logging.WARNING):
        assert make_app().workflow("unreached").name == "unreached"
        make_app()
    assert warned(caplog) == [("P101", "this is never reached")]


def test_flow_that_calls_a_python_workflow_is_not_warned_of(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app()
    default_workflows.add(Workflow(unreached, "in_python", {}))
    with caplog.at_level(logging.WARNING):
        app.register('workflow caller {\n  return await workflow("in_python", { n: 1 })\n}')
    assert warned(caplog) == []


def test_calls_of_a_flow_are_compared_with_the_tasks_that_are_known_here(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(charge)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            app.register('workflow a {\n  await task("charge", { amount: "1" })\n}')
            app.register('workflow b {\n  await task("of_another_worker", { amount: "1" })\n}')
    assert warned(caplog) == [("F104", "`amount` of task `charge` must be a number, not text")]


@pytest.mark.parametrize(
    "options",
    [{"queue": ""}, {"queue": "q" * 201}, {"on": [""]}, {"version": "v" * 201}, {"name": "n" * 201},
     {"timeout": -1}, {"schedule": "every day"}],
)  # fmt: skip
def test_options_of_a_workflow_that_no_database_takes_are_refused_at_once(
    options: dict[str, Any],
) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own message
        rhythm.workflow(**options)(unreached)
