"""@rhythm.task: what it keeps, what it refuses, and what `rhythm check` learns from it."""

from __future__ import annotations

import asyncio
import enum
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

import rhythm
from rhythm.authoring import workflow
from rhythm.errors import DuplicateTask
from rhythm.worker import handlers
from rhythm.worker.ended import ended_by
from rhythm.worker.handlers import Task, Tasks


def make(function: Any, name: str = "t") -> Task[..., Any]:
    return Task(function, name, "default", 0, None, 1.0)


def test_decorated_function_is_called_as_before_and_keeps_its_documentation() -> None:
    @rhythm.task(name="test_handlers.double", retries=2, timeout="30s", backoff="2s")
    def double(x: int) -> int:
        """Twice as much."""
        return 2 * x

    assert double(4) == 8
    assert double.__doc__ == "Twice as much."
    assert (double.name, double.retries, double.timeout_s, double.backoff_s) == (
        "test_handlers.double",
        2,
        30.0,
        2.0,
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"retries": -1}, {"retries": 1_000_001}, {"timeout": "soon"}, {"backoff": -1},
        {"queue": ""}, {"queue": "q" * 201}, {"name": "n" * 201},
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused_at_once(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own message
        rhythm.task(**settings)(lambda: None)


def test_an_option_that_is_misspelt_is_answered_with_the_one_that_was_meant() -> None:
    wrong: Any = {"retrys": 2}
    with pytest.raises(
        TypeError, match=r"@rhythm\.task has no option `retrys`; did you mean `retri"
    ):
        rhythm.task(**wrong)
    wrong = {"sheduled": "@daily"}
    with pytest.raises(
        TypeError, match=r"@rhythm\.workflow has no option `sheduled`; did you mean"
    ):
        rhythm.workflow(**wrong)
    wrong = {"xyz": 1}
    with pytest.raises(TypeError, match="has no option `xyz`; it takes name, queue, retries"):
        rhythm.task(**wrong)


@pytest.mark.parametrize(
    ("decorator", "known"), [(rhythm.task, handlers.OPTIONS), (rhythm.workflow, workflow.OPTIONS)]
)
def test_options_that_a_message_lists_are_those_there_are(decorator: Any, known: Any) -> None:
    params = inspect.signature(decorator).parameters.values()
    assert known == tuple(p.name for p in params if p.kind is p.KEYWORD_ONLY)


def test_two_functions_of_one_name_are_refused_but_a_reloaded_one_is_not() -> None:
    def one() -> None: ...
    def other() -> None: ...

    tasks = Tasks()
    tasks.add(make(one))
    tasks.add(make(one))
    with pytest.raises(DuplicateTask, match="two tasks are called 't'"):
        tasks.add(make(other))


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [(None, False), ({"a": 1}, False), ({"b": 1}, True), (5, False), ([1], False)],
)
def test_inputs_are_bound_by_name_or_given_whole(inputs: Any, problem: bool) -> None:
    def function(a: Any = 0) -> Any:
        return a

    assert bool(make(function).problem_with(inputs)) is problem


def test_shape_tells_names_types_and_what_is_required() -> None:
    def function(a: int, b: str | None = None, *, c: list[int], **rest: Any) -> None: ...

    shape = make(function).shape()
    assert shape.required == {"a", "c"}
    assert shape.open
    assert shape.params["b"] is not None
    assert shape.params["b"].words == "null or text"


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Order:
    due: date


def test_body_gets_its_inputs_as_its_hints_say() -> None:
    def function(order: Order, count: int = 1) -> Any:
        return order, count

    assert make(function).handler(order={"due": "2026-01-31"}, count=2.0) == (
        Order(date(2026, 1, 31)),
        2,
    )
    assert make(function).function is function


def test_body_of_an_async_function_is_awaited() -> None:
    async def function(day: date) -> date:
        return day

    assert asyncio.run(make(function).handler(day="2026-01-31")) == date(2026, 1, 31)


@pytest.mark.parametrize("function", [lambda a: a, print])
def test_body_of_a_function_without_hints_is_the_function(function: Callable[..., Any]) -> None:
    assert make(function).handler is function


@pytest.mark.parametrize("asynchronous", [False, True])
def test_input_that_does_not_fit_fails_the_task_at_once_and_names_the_parameter(
    asynchronous: bool,
) -> None:
    def function(order: Order) -> None:
        raise AssertionError("it was called")

    async def async_function(order: Order) -> None:
        raise AssertionError("it was called")

    task = make(async_function if asynchronous else function)
    ended = ended_by(
        task, lambda: (asyncio.run if asynchronous else bool)(task.handler(order={"due": "soon"}))
    )
    assert ended.error is not None
    expected = (
        "task `t` failed: InvalidInputs: input `order.due` must be a date such as "
        '"2026-01-31", not "soon"'
    )
    assert (ended.error["message"], ended.error["data"]["type"], ended.retry) == (
        expected,
        "InvalidInputs",
        False,
    )
