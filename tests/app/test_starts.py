"""Starting, as callers see it: in one round trip, and on the version that is the current one."""

from __future__ import annotations

import pytest

from rhythm.app import Rhythm, Start
from rhythm.engine.programs import ProgramCache
from rhythm.errors import InvalidInputs, UnknownWorkflow
from rhythm.limits import DEFAULT_LIMITS
from tests.app.conftest import MakeApp
from tests.support.counting import counting

FLOW = "workflow w(inputs) {{ return {} }}"
TYPED = "workflow w(n: {}) {{ return n }}"


def version(app: Rhythm, id: str) -> str:
    return app.get(id).version


def test_a_start_on_the_version_of_the_last_one_is_one_statement(make_app: MakeApp) -> None:
    app = make_app(flows=(FLOW.format(1),))
    app.start_workflow("w")
    with counting(app.store) as asked:
        app.start_workflow("w", {"n": 1}, queue="mail", delay=5, attributes={"a": 1})
        app.start_many("w", [1, 2, 3])
    # on SQLite what a transaction writes is not counted: nothing was asked before it
    assert len(asked.statements) == (2 if is_postgres(app) else 0)


def is_postgres(app: Rhythm) -> bool:
    return app.settings.database_url.startswith("postgres")


def test_the_next_start_is_on_the_version_that_another_process_has_registered(
    make_app: MakeApp,
) -> None:
    app, other = make_app(flows=(FLOW.format(1),)), make_app()
    first = version(app, app.start_workflow("w"))
    for n in (2, 3, 1):  # the last is the first one again
        other.register(FLOW.format(n))
        current = other.workflow("w").version
        ids = [app.start_workflow("w"), *app.start_many("w", [1, 2])]
        assert {version(app, id) for id in ids} == {current}
        assert all(handle.created for handle in ids)
    assert current == first
    assert len(app.list("w")) == 10


def test_inputs_are_checked_by_the_version_that_is_the_current_one(make_app: MakeApp) -> None:
    app, other = make_app(flows=(TYPED.format("integer"),)), make_app()
    app.start_workflow("w", {"n": 1})
    other.register(TYPED.format("text"))
    assert app.start_workflow("w", {"n": "a"}).created
    other.register(TYPED.format("integer"))
    with pytest.raises(InvalidInputs):
        app.start_workflow("w", {"n": "a"})
    assert app.start_workflow("w", {"n": 1}).created


def test_a_workflow_that_is_unknown_is_refused_each_time(make_app: MakeApp) -> None:
    app = make_app()
    for _ in range(2):
        with pytest.raises(UnknownWorkflow):
            app.start_workflow("w")


def test_requests_of_one_call_keep_their_order_whatever_is_in_them(make_app: MakeApp) -> None:
    app = make_app(flows=(FLOW.format(1),))
    plain = app.start_many("w", list(range(20)))
    assert [app.get(id).inputs for id in plain] == list(range(20))
    assert sorted(plain) == list(plain)
    mixed = app.start_many(
        "w", [1, Start(2, id="own"), Start(3, idempotency_key="k"), 4, Start(5, id="own")]
    )
    assert [app.get(id).inputs for id in mixed] == [1, 2, 3, 4, 2]
    assert [handle.created for handle in mixed] == [True, True, True, True, False]
    assert app.start_many("w", []) == []
    assert app.queue_many("note", []) == []


def test_what_was_current_is_forgotten_with_its_program(make_app: MakeApp) -> None:
    app = make_app(flows=(FLOW.format(1), "workflow other { return 1 }"))
    cache = ProgramCache(DEFAULT_LIMITS.replace(cached_programs=1))
    assert cache.last_known("w") is None
    assert cache.get(app.store, "w", app.workflow("w").version) is not None
    assert cache.last_known("w") is None, "nobody has asked which one is current"
    first = cache.get(app.store, "w")
    assert cache.last_known("w") is first
    cache.get(app.store, "other")
    assert cache.last_known("w") is None
