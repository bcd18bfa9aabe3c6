"""Naming an execution: by its id, by its handle, or by what `get` and `list` return."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

import rhythm
from rhythm.app import Rhythm
from rhythm.app.aio import AsyncHandle
from rhythm.app.handle import Handle
from tests.app.conftest import MakeApp
from tests.app.test_operating import until

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
            TypeError, match="an execution is named by its id, a text, by its handle, or by what"
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


# all methods

# What each method that takes an execution is given besides; those of rooms without flat names, too.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "executions.get": (), "executions.get_many": (), "executions.children": (),
    "executions.result": ("1ms",), "executions.trace": (), "executions.trace_page": (),
    "executions.logs": (), "details.progress": (), "details.alike": (9,), "details.places": (), "details.__call__": (),
    "executions.signal": ("go",), "executions.cancel": (), "executions.terminate": (),
    "executions.retry": (), "pauses.pause": (), "pauses.resume": (), "pauses.status": (),
    "pauses.options": (), "pauses.requests": (), "pauses.requests_page": (),
    "approvals.__call__": (), "details.root_name": (), "details.children": (),
    "details.failed_tasks": (), "details.due": (), "details.position": (), "details.retries": (),
    "details.retry_refusal": (), "details.snapshot": (), "why.__call__": (),
}  # fmt: skip
# The same for approvals.
DECIDED: dict[str, dict[str, str]] = {
    "approvals.get": {}, "approvals.approve": {"by": "eve"}, "approvals.reject": {"by": "eve"},
    "approvals.escalate": {"by": "eve"},
}  # fmt: skip
FORMS: dict[str, Callable[[Rhythm, str], Any]] = {
    "handle": lambda app, id: Handle(app, id),
    "handle with coroutines": lambda app, id: AsyncHandle(Handle(app, id)),
    "what get returns": lambda app, id: app.get(id),
    "what list returns": lambda app, id: next(each for each in app.list() if each.id == id),
}


def methods_with(app: Rhythm, *hints: str) -> Iterator[str]:
    """The names of all methods of rooms that have a parameter with one of these hints."""
    for room, found in vars(app).items():
        if type(found).__module__.startswith("rhythm.app.") and not room.startswith("_"):
            for name, method in vars(type(found)).items():
                public = inspect.isfunction(method) and (name == "__call__" or name[0] != "_")
                given = inspect.signature(method).parameters.values() if public else ()
                if any(each.annotation in hints for each in given):
                    yield f"{room}.{name}"


def test_every_method_that_takes_an_execution_is_tried(make_app: MakeApp) -> None:
    app = make_app()
    assert {*methods_with(app, "Id", "Iterable[Id]", "Id | None")} == ARGUMENTS.keys()
    assert {*methods_with(app, "str | ApprovalView")} == DECIDED.keys()


def outcome(app: Any, method: str, given: Any) -> str:
    """What a call gives, without what differs from one execution to the next."""
    room, _, name = method.partition(".")
    call = getattr(getattr(app, room), name)
    try:
        match method:
            case "approvals.__call__":
                found = call(execution=given)
            case "executions.get_many":
                found = call([given])
            case _:
                found = call(given, *ARGUMENTS[method])
        found = asyncio.run(found) if inspect.iscoroutine(found) else found
    except rhythm.RhythmError as problem:
        return repr(problem)
    return f"{len(found)} of {type(found)}" if isinstance(found, list | dict) else str(type(found))


@pytest.mark.parametrize("method", ARGUMENTS)
def test_handles_and_views_name_an_execution_as_its_id_does(make_app: MakeApp, method: str) -> None:
    app = make_app(flows=(HOLD,))
    for kind in (app, app.aio):
        answers = set[str]()
        for name, form in {"id": lambda app, id: id, **FORMS}.items():
            id = app.start_workflow("hold").id
            if method == "executions.retry":
                app.terminate(id)
            answers.add(outcome(kind, method, form(app, id)).replace(id, "ID"))
            assert len(answers) == 1, name


@pytest.mark.parametrize("method", DECIDED)
def test_what_lists_of_approvals_have_names_an_approval(make_app: MakeApp, method: str) -> None:
    asks = 'await approval({ role: "a", escalate: [{ role: "b" }] })'
    app = make_app(flows=(f"workflow asks() {{\n  return {asks}\n}}",))
    with app.worker():
        app.start_workflow("asks")
        until(lambda: bool(app.approvals()))
    (approval,) = app.approvals()
    found = getattr(app.approvals, method.partition(".")[2])(approval, **DECIDED[method])
    assert found.id == approval.id


def test_functions_of_the_module_take_them_too(url: str) -> None:
    async def work() -> list[str]:
        handle = await rhythm.start_workflow("hold")
        view = await rhythm.get(handle)
        await rhythm.pause(view)
        return [
            (await rhythm.get(view)).id,
            (await rhythm.status(view)).id,
            (await rhythm.why(view)).id,
            (await rhythm.trace(view))[0].execution_id,
        ]

    with rhythm.init(url, ()) as app:
        app.register(HOLD)
        assert set(asyncio.run(work())) == {app.list()[0].id}


# a handle is its id


def test_handle_is_a_text_for_whoever_writes_json_or_rows(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD,))
    handle = app.start_workflow("hold", id="A17")
    for each in (handle, AsyncHandle(handle)):
        assert json.dumps({"id": each}) == '{"id": "A17"}'
        assert orjson.dumps({"id": each}) == b'{"id":"A17"}'
        assert (str(each), f"{each}", repr(each)) == ("A17", "A17", "<execution A17>")
        assert type(str(each)) is str
        assert (each, {each}) == ("A17", {"A17"})
        assert (copy.copy(each), copy.deepcopy([each])) == (each, [each])
        assert type(copy.deepcopy(each)) is type(each)
        assert type(pickle.loads(pickle.dumps(each))) is str


def test_handle_as_an_input_is_its_id(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD,))
    handle = app.start_workflow("hold", id="A17")
    again = app.start_workflow("hold", {"before": handle, "all": [AsyncHandle(handle)]})
    assert app.get(again).inputs == {"before": "A17", "all": ["A17"]}
