"""A closed application refuses everything, with one error, on both databases."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import rhythm
from rhythm.app import Rhythm
from tests.app.conftest import MakeApp
from tests.app.test_rooms import FLAT
from tests.support.stores import MakeStore

HOLD = 'workflow hold() {\n  return await signal("go")\n}'
SAID = r"this application is closed: make another one with rhythm\.Rhythm\(…\)"
LATER = "2030-01-01T00:00:00Z"
# What each method is given; those that are not here are given nothing.
GIVEN: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    **dict.fromkeys(
        "approval cancel children get logs result resume resume_options resume_page resume_requests "
        "retry status terminate trace trace_page why pause revoke_token change_token".split(),
        (("x",), {}),
    ),
    **dict.fromkeys(("approve", "reject", "escalate"), (("x",), {"by": "ann"})),
    **dict.fromkeys(
        "workflow program run start_workflow queue_task pause_queue resume_queue publish "
        "create_token get_schedule next_times pause_schedule resume_schedule "
        "run_schedule delete_schedule".split(),
        (("hold",), {}),
    ),
    **dict.fromkeys(("start_many", "queue_many"), (("hold", [1]), {})),
    "authenticate": ((f"rhy_{'0' * 12}_{'0' * 52}",), {}),
    "signal": (("x", "go"), {}),
    "schedule": (("s",), {"workflow": "hold", "at": LATER}),
    "bulk": (("pause",), {"all": True}),
    "register": ((HOLD,), {}),
}
OTHER = {"close", "start"}  # one may be called again; `start` takes a Python workflow


@rhythm.workflow(name="closed_before")
async def written_in_python() -> None:
    return None


def closed(app: Rhythm) -> Rhythm:
    app.register(HOLD)
    app.start_workflow("hold", id="x")
    app.program("hold")  # now it is in memory
    app.close()
    return app


def flat_names() -> list[str]:
    lines = FLAT.read_text(encoding="utf-8").splitlines()
    return sorted({line.partition("(")[0] for line in lines} - OTHER)


@pytest.mark.parametrize("name", flat_names())
def test_every_method_of_a_closed_application_is_refused(make_app: MakeApp, name: str) -> None:
    args, kwargs = GIVEN.get(name, ((), {}))
    app = closed(make_app())
    with pytest.raises(rhythm.ApplicationClosed, match=SAID):
        getattr(app, name)(*args, **kwargs)
    if name not in ("worker", "server"):
        with pytest.raises(rhythm.ApplicationClosed, match=SAID):
            asyncio.run(getattr(app.aio, name)(*args, **kwargs))


def test_what_was_taken_from_an_application_is_refused_after_its_end(make_app: MakeApp) -> None:
    app = make_app(flows=(HOLD,))
    handle, worker = app.start_workflow("hold"), app.worker()
    executions, coroutines = app.executions, app.aio
    app.close()
    for call in (
        handle.get,
        lambda: handle.result("1s"),
        lambda: executions.get(handle),
        lambda: asyncio.run(coroutines.get(handle)),
        lambda: app.start(written_in_python),
        lambda: app.database.schema_version(),
        lambda: app.details.snapshot(handle),
        worker.start,
        app.__enter__,
        lambda: rhythm.PooledWorker(None, app),
    ):
        with pytest.raises(rhythm.ApplicationClosed, match=SAID):
            call()


def test_an_application_may_be_closed_twice(make_app: MakeApp) -> None:
    app = closed(make_app())
    app.close()


def test_a_store_that_was_passed_in_stays_open(make_store: MakeStore) -> None:
    store = make_store(lambda: 1_800_000_000_000_000)
    app = closed(Rhythm(store=store, workflow_paths=(), environment={}))
    with pytest.raises(rhythm.ApplicationClosed, match=SAID):
        app.get("x")
    with Rhythm(store=store, workflow_paths=(), environment={}) as other:
        assert other.get("x").id == "x"
