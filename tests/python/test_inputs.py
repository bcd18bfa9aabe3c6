"""Inputs are checked against what a workflow declares, however it is started.

Whoever can be answered is refused at once. The program itself checks its inputs, too: for events,
children, and whatever else writes a row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
import pytest

import rhythm
from rhythm.authoring.workflow import Workflow
from rhythm.errors import FlowError, InvalidInputs
from rhythm.lang.flow.compile import compile_flow
from rhythm.store.interfaces.executions import NewExecution
from rhythm.store.lifecycle import WORKFLOW
from rhythm.store.sqlite.store import SqliteStore

WAIT = "120s"
FLOW = """
@on("order.moved")
workflow typed(id: text, count: integer = 1, tags: [text] = []) { return [id, count, tags] }
workflow parent(inputs) { return await workflow(inputs.child, inputs.given) }
"""


@dataclass
class Item:
    sku: str
    price: float
    qty: int = 1


@rhythm.workflow(name="checked_inputs", on="order.placed")
async def order(
    order_id: str,
    items: list[Item],
    note: str | None = None,
    wait: timedelta = timedelta(minutes=1),
) -> Any:
    return [order_id, [item.qty for item in items], note, wait.total_seconds()]


@rhythm.workflow(name="strict_inputs")
async def strict(n: int) -> Any:
    return n + 1


@rhythm.workflow(name="no_inputs")
async def nothing() -> Any:
    return "nothing"


@rhythm.workflow(name="python_parent")
async def parent(child: str, given: Any) -> Any:
    return await rhythm.run_workflow("strict_inputs", given)


@pytest.fixture
def app(url: str) -> Any:
    workflows = [order, strict, nothing, parent]
    with rhythm.Rhythm(url, environment={}, workflows=workflows) as made:
        made.register(FLOW)
        yield made


@pytest.fixture
def connection(app: rhythm.Rhythm, request: pytest.FixtureRequest) -> Iterator[Any]:
    opened: Any
    if isinstance(app.store, SqliteStore):
        opened = sqlite3.connect(app.store.db.path)
    else:
        opened = psycopg.connect(request.getfixturevalue("schemas").url)
    yield opened
    opened.close()


def only(app: rhythm.Rhythm, workflow: str) -> rhythm.ExecutionView:
    (execution,) = app.list(workflow)
    return execution


def failure(app: rhythm.Rhythm, id: str) -> dict[str, Any]:
    with app.worker(), pytest.raises(rhythm.ExecutionFailed) as failed:
        app.result(id, WAIT)
    return failed.value.error


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        (
            None,
            "also needs the inputs `order_id` and `items`; it takes order_id, items, note, wait",
        ),
        ({"order_id": "7"}, "also needs the input `items`"),
        (
            {"order_id": 7, "items": []},
            "`order_id` of workflow `checked_inputs` must be text, not a number",
        ),
        ({"order_id": "7", "items": "tea"}, "must be a list, not text"),
        ({"order_id": "7", "items": [{"sku": "a"}]}, "the input `items[0]` of"),
        ({"order_id": "7", "items": [{"sku": "a", "price": "1"}]}, "the input `items[0].price` of"),
        ({"order_id": "7", "items": [], "wait": "soon"}, "must be a duration"),
        ([1], "must be an object, not a list"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_with_their_name(
    app: rhythm.Rhythm, inputs: Any, problem: str
) -> None:
    with pytest.raises(InvalidInputs, match="workflow `checked_inputs`") as refused:
        app.start_workflow("checked_inputs", inputs)
    assert problem in str(refused.value)
    assert not app.list()


def test_inputs_that_fit_start_it_with_defaults_and_in_the_form_of_their_hints(
    app: rhythm.Rhythm,
) -> None:
    items = [{"sku": "a", "price": 3}, {"sku": "b", "price": 3.5, "qty": 2.0}]
    given = {"order_id": "7", "items": items, "wait": "1h30m"}
    assert app.run("checked_inputs", given) == ["7", [1, 2], None, 5400.0]
    assert only(app, "checked_inputs").inputs == given


def test_start_takes_the_arguments_of_the_function(app: rhythm.Rhythm) -> None:
    handle = app.start(order, "7", items=[Item("tea", 3.0)], wait=timedelta(seconds=5))
    with app.worker():
        assert handle.result(60) == ["7", [1], None, 5.0]
    with pytest.raises(TypeError, match="missing a required argument: 'items'"):
        app.start(order, "7")  # type: ignore[call-arg]  # mypy sees it, too


def test_a_workflow_without_parameters_takes_no_inputs(app: rhythm.Rhythm) -> None:
    assert app.run("no_inputs") == "nothing"
    with pytest.raises(InvalidInputs, match="has no input `n`; it takes no inputs"):
        app.start_workflow("no_inputs", {"n": 1})


def test_unknown_input_is_refused_with_the_name_that_was_meant(app: rhythm.Rhythm) -> None:
    with pytest.raises(InvalidInputs, match="has no input `m`; it takes n"):
        app.start_workflow("strict_inputs", {"n": 1, "m": 1})


def test_types_of_a_flow_header_mean_the_same(app: rhythm.Rhythm) -> None:
    assert app.run("typed", {"id": "a", "count": 2.0}) == ["a", 2, []]
    with pytest.raises(
        InvalidInputs, match=r"the input `tags\[1\]` of workflow `typed` must be text"
    ):
        app.start_workflow("typed", {"id": "a", "tags": ["x", 1]})


def test_none_of_many_is_started_if_one_does_not_fit(app: rhythm.Rhythm) -> None:
    with pytest.raises(InvalidInputs, match="`n` of workflow `strict_inputs` must be a whole"):
        app.start_many("strict_inputs", [{"n": 1}, {"n": "2"}])
    assert not app.list()


def test_start_in_a_transaction_of_the_caller_is_refused(
    app: rhythm.Rhythm, connection: Any
) -> None:
    with pytest.raises(InvalidInputs):
        app.start_workflow("strict_inputs", {"n": "2"}, connection=connection)
    connection.commit()
    assert not app.list()


def test_schedule_is_refused_when_it_is_made(app: rhythm.Rhythm) -> None:
    with pytest.raises(InvalidInputs, match="also needs the input `n`"):
        app.schedule("nightly", "strict_inputs", every="1d")
    with pytest.raises(InvalidInputs, match="must be a whole number, not text"):
        app.schedule("nightly", "strict_inputs", every="1d", inputs={"n": "1"})
    assert app.schedules() == []
    app.schedule("nightly", "strict_inputs", every="1d", inputs={"n": 1})
    handle = app.schedules.run("nightly")
    with app.worker():
        assert handle.result(60) == 2


def test_schedule_of_an_annotation_is_refused_when_it_is_compiled() -> None:
    with pytest.raises(InvalidInputs, match="workflow `strict` also needs the input `n`"):
        Workflow(strict.function, "strict", {"schedule": [{"cron": "0 9 * * *"}]}).check()
    text = '@schedule("0 9 * * *", { inputs: { n: "1" } })\nworkflow a(n: integer) {}'
    with pytest.raises(FlowError, match="F032"):
        compile_flow(text).programs_or_raise()


def test_event_starts_a_workflow_with_its_data_and_other_keys_are_left_out(
    app: rhythm.Rhythm,
) -> None:
    app.publish("order.placed", {"order_id": "7", "items": [], "shop": "north", "wait": "5s"})
    app.publish("order.moved", {"id": "7", "shop": "north"})
    with app.worker():
        assert app.result(only(app, "checked_inputs").id, WAIT) == ["7", [], None, 5.0]
        assert app.result(only(app, "typed").id, WAIT) == ["7", 1, []]


@pytest.mark.parametrize("data", [{"order_id": 7, "items": []}, "text", None])
def test_execution_fails_that_an_event_starts_with_data_that_does_not_fit(
    app: rhythm.Rhythm, data: Any
) -> None:
    app.publish("order.placed", data)
    error = failure(app, only(app, "checked_inputs").id)
    assert error["code"] == "InvalidInputs"
    assert "workflow `checked_inputs`" in error["message"]


@pytest.mark.parametrize("name", ["parent", "python_parent"])
def test_child_checks_what_its_parent_gives(app: rhythm.Rhythm, name: str) -> None:
    assert app.run(name, {"child": "strict_inputs", "given": {"n": 1}}) == 2
    handle = app.start_workflow(name, {"child": "strict_inputs", "given": {"n": "1"}})
    error = failure(app, handle.id)
    assert error["code"] == "ChildFailed"
    assert "the input `n` of workflow `strict_inputs` must be a whole number, not text" in str(
        error
    )


def test_program_checks_inputs_that_nobody_has_checked(app: rhythm.Rhythm) -> None:
    version = app.workflow("strict_inputs").version
    row = NewExecution("by-hand", WORKFLOW, "strict_inputs", "default", '{"n": "1"}', version)
    app.store.executions.start([row], "return", None)
    error = failure(app, "by-hand")
    assert (error["code"], error["message"]) == (
        "InvalidInputs",
        "the input `n` of workflow `strict_inputs` must be a whole number, not text",
    )


def test_view_of_a_workflow_has_the_schema_and_so_does_its_program(app: rhythm.Rhythm) -> None:
    declared = app.workflow("strict_inputs").inputs
    assert declared == {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    assert strict.program.options["inputs"] == declared == strict.inputs
    listed = {view.name: view.inputs for view in app.workflows()}
    assert listed["strict_inputs"] == declared
    assert listed["parent"] is None
    assert listed["typed"] == app.workflow("typed").inputs


def test_a_changed_hint_is_another_version() -> None:
    async def same(n: Any) -> Any:
        return n

    versions = set()
    for hint in (int, str, Item):
        same.__annotations__ = {"n": hint}
        workflow: Workflow[..., Any] = Workflow(same, "same", {})
        versions.add(workflow.program.version)
    assert len(versions) == 3


def test_arguments_that_do_not_fit_are_refused_with_the_name_of_the_workflow(
    app: rhythm.Rhythm,
) -> None:
    with pytest.raises(TypeError, match="workflow `checked_inputs`: missing a required argument"):
        app.start(order, "7")  # type: ignore[call-arg]  # that is what is refused
