"""Inputs are checked against the signature of a Python workflow, wherever they come from."""

from __future__ import annotations

from typing import Any

import pytest

import rhythm
from rhythm.authoring.workflow import Workflow, default_workflows
from rhythm.errors import InvalidInputs


@rhythm.workflow(name="checked_inputs")
async def order(order_id: str, items: list[str], note: str | None = None, count: int = 1) -> Any:
    return [order_id, items, note, count]


@pytest.fixture
def app(url: str) -> Any:
    with rhythm.Rhythm(url, environment={}, workflows=[order]) as made:
        yield made


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        (
            None,
            "also needs the inputs `order_id` and `items`; it takes order_id, items, note, count",
        ),
        ({"order_id": "7"}, "also needs the input `items`"),
        ({"order_id": "7", "items": [], "itms": 1}, "no input `itms`; did you mean `items`?"),
        ({"order_id": 7, "items": []}, "the input `order_id` of workflow `checked_inputs` is text"),
        ({"order_id": "7", "items": "tea"}, "is a list, not text"),
        ([1], "are an object, not a list"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_with_their_name(
    app: rhythm.Rhythm, inputs: Any, problem: str
) -> None:
    with pytest.raises(InvalidInputs, match="workflow `checked_inputs`") as refused:
        app.start_workflow("checked_inputs", inputs)
    assert problem in str(refused.value)
    assert not app.list()


def test_inputs_that_fit_start_it_with_the_defaults(app: rhythm.Rhythm) -> None:
    assert app.run("checked_inputs", {"order_id": "7", "items": ["tea"]}) == ["7", ["tea"], None, 1]


def test_start_takes_the_arguments_of_the_function(app: rhythm.Rhythm) -> None:
    handle = app.start(order, "7", items=["tea"], note=None)
    with app.worker():
        assert handle.result(60) == ["7", ["tea"], None, 1]
    with pytest.raises(TypeError, match="missing a required argument: 'items'"):
        app.start(order, "7")  # type: ignore[call-arg]  # mypy sees it, too


def test_the_program_keeps_what_it_declares() -> None:
    workflow: Workflow[..., Any] = default_workflows["checked_inputs"]
    assert workflow.program.options["inputs"]["note"] == {
        "types": ["null", "text"],
        "required": False,
    }
