"""What people read of an execution does not change while a worker merely looks at it: only a
committed turn changes it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from rhythm.app import Rhythm
from rhythm.store.interfaces.claims import Claim
from rhythm.store.interfaces.messages import NewSignal
from rhythm.store.interfaces.workers import Beat
from rhythm.store.lifecycle import CLAIMED, FREE
from tests.app.conftest import MakeApp
from tests.app.test_operating import until
from tests.support.stores import ready_rows

APPROVAL = 'workflow main() {\n  return await approval({ role: "manager", reason: "Why not" })\n}'
EVENT = 'workflow main() {\n  return await event("paid")\n}'
SIGNAL = 'workflow main() {\n  return await signal("go")\n}'
SLEEP = 'workflow main() {\n  await sleep("1d")\n}'
GROUP = 'workflow main() {\n  return await all([signal("go"), approval({ role: "manager" })])\n}'
PARKED = {  # what it awaits: as which it is seen, and what would let it go on
    "approval": (APPROVAL, "paused", ("approve", "reject")),
    "event": (EVENT, "paused", ("publish",)),
    "signal": (SIGNAL, "suspended", ()),
    "sleep": (SLEEP, "suspended", ()),
    "a group": (GROUP, "paused", ("approve", "reject")),
}


def parked(app: Rhythm) -> str:
    """An execution that waits, without any worker."""
    with app.worker():
        app.start_workflow("main", id="x", by="sue")
        until(lambda: app.get("x").awaiting is not None and ready_rows(app.store) == [])
    return "x"


def looking(app: Rhythm, id: str) -> Claim:
    """A worker has claimed it, and has not decided anything yet. What woke it is nothing that it
    waits for."""
    app.store.messages.signal(NewSignal(f"{id}#noise", id, "noise", "null"), 100)
    assert ready_rows(app.store)[0][:2] == (id, FREE)
    [claim] = app.store.claims.claim("w", ["default"], 1, 60.0)
    assert ready_rows(app.store)[0][:2] == (id, CLAIMED)
    return claim


def read(app: Rhythm, id: str) -> dict[str, Any]:
    """Everything that people can ask about one execution."""
    statuses = ("pending", "running", "suspended", "paused")
    return {
        "get": app.get(id).as_json(),
        "status": app.status(id).as_json(),
        "options": app.resume_options(id),
        "why": app.why(id).as_json(),
        "list": [one.as_json() for one in app.list()],
        "brief": [one.as_json() for one in app.list(brief=True)],
        "lists": {status: [one.id for one in app.list(status=status)] for status in statuses},
        "counts": {
            status: app.bulk("terminate", status=status, dry_run=True).matched
            for status in statuses
        },
        "stamp": app.store.reading.stamps([id]),
    }


@pytest.mark.parametrize("awaited", PARKED)
def test_nothing_that_people_read_changes_while_a_worker_merely_looks(
    make_app: MakeApp, awaited: str
) -> None:
    flow, status, options = PARKED[awaited]
    app = make_app(flows=(flow,))
    id = parked(app)
    before = read(app, id)
    assert (before["get"]["status"], before["options"], before["lists"][status]) == (
        status,
        options,
        [id],
    )
    assert before["brief"] == [before["get"] | {"inputs": None, "awaiting": None}]
    claim = looking(app, id)
    assert read(app, id) == before
    app.store.claims.release({id: claim.fence})
    assert read(app, id) == before


@pytest.mark.parametrize("awaited", PARKED)
def test_a_child_that_is_looked_at_is_seen_as_it_was(make_app: MakeApp, awaited: str) -> None:
    flow, status, _ = PARKED[awaited]
    app = make_app(flows=(flow, 'workflow parent() {\n  await workflow("main")\n}'))
    with app.worker():
        app.start_workflow("parent", id="p")
        until(
            lambda: (
                app.children("p").items
                and app.get("p.1").awaiting is not None
                and ready_rows(app.store) == []
            )
        )
    before = (app.children("p").items, app.why("p"))
    looking(app, "p.1")
    assert (app.children("p").items, app.why("p")) == before
    assert before[0][0].status == status


def test_what_has_not_begun_and_what_runs_its_own_tasks_is_seen_as_running(
    make_app: MakeApp,
) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        assert go.wait(120)

    app = make_app(
        slow, flows=('workflow main() {\n  await task("slow")\n}', SIGNAL.replace("main", "other"))
    )
    app.start_workflow("other", id="o")
    [claim] = app.store.claims.claim("w", ["default"], 1, 60.0)
    assert (app.get("o").status, [one.id for one in app.list(status="running")]) == (
        "running",
        ["o"],
    )
    app.store.claims.release({"o": claim.fence})
    assert app.get("o").status == "pending"
    with app.worker():
        handle = app.start_workflow("main", id="m")
        assert begun.wait(120)
        # its worker runs the task for it, or has given the task a row of its own, which lasts
        seen = app.get("m")
        assert "running" in (seen.status, *(child.status for child in app.children("m")))
        go.set()
        handle.result("60s")


def test_a_turn_that_has_something_to_go_on_with_is_told_by_why(make_app: MakeApp) -> None:
    app = make_app(flows=(APPROVAL,))
    id = parked(app)
    [asked] = app.approvals().items
    app.approve(asked.id, by="ann")
    [reason] = app.why(id).reasons
    assert reason.what == "it is ready, and no worker is there"
    app.store.workers.beat(Beat("w", "box", 71, ("default",), 20, 3, False, "0.1"), {}, 60.0)
    app.store.claims.claim("w", ["default"], 1, 60.0)
    [reason] = app.why(id).reasons
    assert reason.what == "it is with worker w"


def test_a_signal_that_it_waits_for_is_something_to_go_on_with(make_app: MakeApp) -> None:
    app = make_app(flows=(SIGNAL,))
    id = parked(app)
    app.signal(id, "go", 1)
    assert [reason.what for reason in app.why(id).reasons] == [
        "it is ready, and no worker is there"
    ]


def test_an_execution_that_was_asked_to_end_is_ready_for_whoever_takes_it(
    make_app: MakeApp,
) -> None:
    app = make_app(
        flows=(
            'workflow main() {\n  try { await signal("go") } finally { await signal("clean") }\n}',
        )
    )
    id = parked(app)
    app.cancel(id)
    assert [reason.what for reason in app.why(id).reasons][1:] == [
        "it is ready, and no worker is there"
    ]
    with app.worker():
        until(lambda: "clean" in str(app.get(id).awaiting) and ready_rows(app.store) == [])
    before = app.why(id)
    assert "`clean`" in before.reasons[1].what
    looking(app, id)
    assert app.why(id) == before


def test_the_attempt_of_a_workflow_is_not_how_often_it_was_looked_at(make_app: MakeApp) -> None:
    app = make_app(flows=(SIGNAL,))
    id = parked(app)
    for _ in range(3):
        claim = (
            looking(app, id)
            if not ready_rows(app.store)
            else app.store.claims.claim("w", ["default"], 1, 60.0)[0]
        )
        app.store.claims.release({id: claim.fence})
    assert app.get(id).attempt == 0
