"""Rooms of the application: what they have under flat names, and as coroutines, is the same thing
once more."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rhythm
from rhythm.app import Handle, Rhythm
from rhythm.app.aio import AsyncHandle, AsyncRhythm, Proxy
from tests.app.conftest import MakeApp
from tests.app.test_operating import until

FLAT = Path(__file__).with_name("flat_names.txt")
ASKS = 'workflow ask(inputs) {\n  return await approval({ role: "boss" })\n}'
PLAIN = {"aio", "program", "server", "worker"}  # of the application that are no coroutines
# that give one thing after the other: the first in an asynchronous generator, the second has read all
LAZY = {"audit": {"export"}, "details": {"failed_tasks"}}
ROOMS = (
    "approvals audit bulk details events executions overview pauses queues schedules starts tokens why "
    "workflows"
).split()


@pytest.fixture(scope="module")
def app() -> Iterator[Rhythm]:
    with Rhythm("sqlite://:memory:", (), environment={}) as app:
        yield app


def public(thing: Any) -> dict[str, Any]:
    """The methods of an object, by name; those of `Rhythm` are also rooms that can be called."""
    found = {name: getattr(thing, name) for name in dir(thing) if not name.startswith("_")}
    found |= {"__call__": thing.__call__} if "__call__" in vars(type(thing)) else {}
    return {name: member for name, member in found.items() if callable(member)}


def test_flat_names_are_those_of_the_release_before(app: Rhythm) -> None:
    """They are public: whoever changes this file breaks the programs of others."""
    known = FLAT.read_text(encoding="utf-8").splitlines()
    methods = inspect.getmembers(Rhythm, inspect.isfunction)
    assert [
        f"{name}{inspect.signature(method)}" for name, method in methods if not name.startswith("_")
    ] == known
    for line in known:
        name = line.partition("(")[0]
        assert callable(getattr(app, name)), name


def test_flat_name_has_the_signature_and_the_words_of_its_method(app: Rhythm) -> None:
    delegates = {
        name: member for name, member in vars(Rhythm).items() if hasattr(member, "__wrapped__")
    }
    assert len(delegates) > 40
    for name, member in delegates.items():
        room, _, method = member.__wrapped__.__qualname__.partition(".")
        original = getattr(getattr(app, room.lower()), method)
        assert inspect.signature(getattr(app, name)) == inspect.signature(original), name
        assert inspect.signature(member.__get__(app)) == inspect.signature(original), name
        assert (member.__doc__, member.__name__) == (original.__doc__, name), name


def test_every_method_of_a_room_that_is_documented_has_a_flat_name(app: Rhythm) -> None:
    """Also a new one: only what the command line and the server ask for themselves may be
    without."""
    flat = {
        member.__wrapped__ for member in vars(Rhythm).values() if hasattr(member, "__wrapped__")
    }
    rooms = {name: getattr(app, name) for name in ROOMS}
    methods = {
        f"{name}.{method}": member.__func__
        for name, room in rooms.items()
        for method, member in public(room).items()
    }
    assert {
        name
        for name, method in methods.items()
        if method not in flat and not name.startswith("details.")
    } == {
        "approvals.decide",
        "approvals.decide_all",
        "audit.export",
        "events.started_by",
        "events.starting",
        "events.triggers",
        "executions.get_many",
        "queues.counts",
        "tokens.authenticate_all",
        "workflows.current",
        "workflows.get_many",
        "workflows.source",
    }


def test_every_room_has_its_coroutines(app: Rhythm) -> None:
    rooms = {name: member for name, member in vars(app.aio).items() if isinstance(member, Proxy)}
    assert sorted(rooms) == ROOMS
    for name, room in rooms.items():
        assert type(room).__name__ == f"Async{type(getattr(app, name)).__name__}"
        same(getattr(app, name), room, LAZY.get(name, set()))


def test_flat_names_have_their_coroutines(app: Rhythm) -> None:
    same(app, app.aio, {*PLAIN, *ROOMS})
    same(Handle(app, "x"), AsyncHandle(Handle(app, "x")), {*dir(str)})  # a handle is a text


def test_no_coroutine_is_typed_by_hand() -> None:
    """Each is made of its method: a signature or a docstring that changes there changes here."""
    written = {
        f"{cls.__name__}.{name}"
        for cls in (AsyncHandle, AsyncRhythm, *Proxy.__subclasses__())
        for name, member in vars(cls).items()
        if inspect.isfunction(member) and not hasattr(member, "__wrapped__")
    }
    assert written == {"AsyncRhythm.__init__"}


def test_functions_of_the_module_have_the_signature_and_the_words_of_their_coroutines(
    app: Rhythm,
) -> None:
    functions = {
        name: member
        for name in rhythm.__all__
        if inspect.iscoroutinefunction(member := getattr(rhythm, name))
        and member.__module__ != "rhythm.authoring.operations"
    }
    assert len(functions) > 35
    for name, member in functions.items():
        found = getattr(app.aio, "list" if name == "list_executions" else name)
        called = found.__call__ if isinstance(found, Proxy) else found
        assert inspect.signature(member).parameters == inspect.signature(called).parameters, name
        assert (member.__doc__, member.__name__) == (called.__doc__, name), name


def test_init_takes_what_an_application_takes() -> None:
    """Not the store and the environment: those are for tests, and for applications in others."""
    of_app, of_init = (inspect.signature(one).parameters for one in (Rhythm, rhythm.init))
    assert {**of_init} == {
        name: one for name, one in of_app.items() if name not in ("store", "environment")
    }


def same(plain: Any, proxy: Any, besides: set[str] = set()) -> None:  # noqa: B006 - nobody changes it
    methods, coroutines = public(plain), public(proxy)
    assert coroutines.keys() - besides == methods.keys() - besides
    for name in methods.keys() - besides:
        expected, found = inspect.signature(methods[name]), inspect.signature(coroutines[name])
        assert inspect.iscoroutinefunction(coroutines[name]), name
        assert found.parameters == expected.parameters, name
        returned = str(expected.return_annotation).replace("Handle", "AsyncHandle")
        assert str(found.return_annotation) == returned, name


def test_both_forms_do_the_same(make_app: MakeApp) -> None:
    app = make_app(flows=(ASKS,))
    with app.worker():
        first, second = app.start_workflow("ask"), app.starts.workflow("ask")
        until(lambda: len(app.approvals(role="boss").items) == 2)
        assert (
            app.approve(f"{first.id}.1", by="ann").status
            == app.approvals.approve(f"{second.id}.1", by="ann").status
            == "approved"
        )
        assert app.result(first, "60s")["by"] == app.executions.result(second, "60s")["by"]
    assert app.list() == app.executions()
    assert app.get(first) == app.executions.get(first)
    assert app.workflow("ask") == app.workflows.get("ask")
    app.schedules.put("s", "ask", every=60)
    assert app.pause_schedule("s")
    assert not app.schedules.pause("s")
    app.schedules.resume("s")
    made = app.tokens.create("ann")
    app.authenticate(made.secret)  # which notes that it is used
    assert app.authenticate(made.secret) == app.tokens.authenticate(made.secret) == app.tokens()[0]
    assert app.verify_audit() == app.audit.verify()


def test_both_forms_of_the_coroutines_do_the_same(make_app: MakeApp) -> None:
    app = make_app(flows=(ASKS,))

    async def work(aio: AsyncRhythm) -> list[Any]:
        first, second = await aio.start_workflow("ask"), await aio.starts.workflow("ask")
        (third,) = await aio.starts.workflows("ask", [1])
        for handle in (first, second, third):
            while not (await aio.approvals(execution=handle)).items:
                pass
        await aio.approve(f"{first.id}.1", by="ann")
        await aio.approvals.approve(f"{second.id}.1", by="ann")
        await aio.approvals.reject(f"{third.id}.1", by="ann")
        results = (
            await first.result("60s"),
            await aio.result(second, "60s"),
            await aio.executions.result(third, "60s"),
        )
        return [result["decision"] for result in results]

    with app.worker():
        assert asyncio.run(work(app.aio)) == ["approved", "approved", "rejected"]


def test_values_of_the_application_are_there_beside_its_coroutines(make_app: MakeApp) -> None:
    app = make_app()
    assert app.aio.settings is app.settings
    with pytest.raises(AttributeError):
        app.aio.nothing  # noqa: B018 - that it fails is the test


def test_a_room_is_not_a_function_of_the_module() -> None:
    assert inspect.iscoroutinefunction(rhythm.approvals)
