"""Pausing and resuming while people decide: what is kept, what waits, and what is recorded. On both
databases, with a real worker."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rhythm
from rhythm.ir.step_ids import call_ids
from tests.app.conftest import MakeApp

DEFINITION = Path(__file__).parents[2] / "examples" / "order_approval.steps.json"
LARGE, SMALL = {"order": {"total": 15_000}}, {"order": {"total": 50}}
WAIT = "120s"
CYCLES = """workflow cycles(ctx, inputs) {
  let seen = []
  for (i in range(3)) {
    let answer = await approval({ role: "manager", reason: `round ${i}` })
    let done = await task("work", { n: i })
    seen += [[answer.by[0], done]]
  }
  return { seen, mark: ctx.resume_data }
}"""


@pytest.fixture
def app(make_app: MakeApp) -> rhythm.Rhythm:
    def notify(recipients: list[str], message: str) -> None: ...

    def work(n: int) -> int:
        return n * 10

    app = make_app(notify, work)
    app.register(DEFINITION, CYCLES)
    app.worker().start()
    return app


def until(found: Callable[[], Any]) -> Any:
    for _ in range(12_000):
        if answer := found():
            return answer
        threading.Event().wait(0.01)
    raise AssertionError("it never came")


def paused(app: rhythm.Rhythm, handle: rhythm.Handle) -> rhythm.ApprovalView:
    """The approval for which it is paused, as soon as it is."""
    until(lambda: app.get(handle).status == "paused")
    return until(lambda: app.approvals(execution=handle).items)[0]


def test_context_preserved_across_pause(app: rhythm.Rhythm) -> None:
    handle = app.start_workflow("cycles", {"deep": {"list": [1, {"x": None}], "text": "ü"}})
    approval = paused(app, handle)
    before = app.store.turns.load([handle.id])[0].snapshot
    app.pause(handle, "look", by="ops")
    app.resume(handle, by="ops")
    app.pause(handle, by="ops")
    app.resume(handle, "again", by="ops")
    assert app.store.turns.load([handle.id])[0].snapshot == before
    for n in range(3):
        app.approve(
            (approval := until(lambda: app.approvals(execution=handle).items)[0]).id,
            by=f"person {n}",
        )
    assert handle.result(WAIT)["seen"] == [["person 0", 0], ["person 1", 10], ["person 2", 20]]
    assert approval.reason == "round 2"


def test_resume_is_idempotent(app: rhythm.Rhythm) -> None:
    handle = app.start_workflow("order_approval", LARGE)
    approval = paused(app, handle)
    app.pause(handle, "wait", by="ops")
    assert [app.resume(handle, by="ops") for _ in range(3)] == [True, False, False]
    app.approve(approval.id, by="ann", key="once")
    app.approve(approval.id, by="ann", key="once")
    assert handle.result(WAIT) == {"outcome": "allowed"}
    assert [each.triggered_by for each in app.resume_requests(handle)] == ["manual", "approval"]
    assert app.resume(handle, by="ops") is False


def test_manual_resume(app: rhythm.Rhythm) -> None:
    handle = app.start_workflow("cycles", {})
    paused(app, handle)
    app.pause(handle, "the bank is down", by="ops")
    status = app.status(handle)
    assert (status.paused_reason, status.paused_by) == ("the bank is down", "ops")
    approval = app.approvals(execution=handle).items[0]
    app.approve(approval.id, by="ann")
    with pytest.raises(rhythm.ResultTimeout):
        handle.result("0.2s")
    assert app.get(handle).paused_manually, "what was decided meanwhile waits"
    assert app.resume(handle, "it is back", by="ops", data={"account": 7})
    for _ in range(2):
        app.approve(paused(app, handle).id, by="bob")
    assert handle.result(WAIT)["mark"] == {"account": 7}
    manual = app.resume_requests(handle)[1]
    assert (manual.triggered_by, manual.triggered_by_id, manual.reason) == (
        "manual",
        "ops",
        "it is back",
    )
    assert (manual.trigger_data, manual.executed_at is not None) == ({"account": 7}, True)
    told = [step.detail["triggered_by"] for step in app.trace(handle) if step.what == "resumed"]
    assert told == ["approval", "manual", "approval", "approval"]
    assert [row.action for row in app.audit(object=handle.id)] == [
        "execution.resume",
        "execution.pause",
    ]


def test_paused_execution_times_out(app: rhythm.Rhythm) -> None:
    text = DEFINITION.read_text().replace('"24h"', '"50ms"').replace("order_approval", "short")
    app.register(text)
    handle = app.start_workflow("short", LARGE)
    with pytest.raises(rhythm.ExecutionFailed) as raised:
        handle.result(WAIT)
    assert (raised.value.status, app.approvals(status="expired").items[0].execution_id) == (
        "blocked",
        handle.id,
    )
    held, ended = (
        app.start_workflow("order_approval", SMALL, delay="1h"),
        app.start_workflow("order_approval", LARGE),
    )
    paused(app, ended)
    app.pause(held, timeout="50ms", by="ops")
    app.pause(ended, timeout="50ms", then="cancel", by="ops")
    until(lambda: [each.triggered_by for each in app.resume_requests(held)] == ["timeout"])
    until(lambda: app.get(ended).status == "cancelled")


def test_multiple_pause_cycles(app: rhythm.Rhythm) -> None:
    handle = app.start_workflow("cycles", {})
    for n in range(3):
        approval = until(
            lambda n=n: [
                each for each in app.approvals(execution=handle) if each.reason == f"round {n}"
            ]
        )[0]
        app.pause(handle, f"cycle {n}", by="ops")
        app.approve(approval.id, by="ann")
        app.resume(handle, by="ops", data={"cycle": n})
    result = handle.result(WAIT)
    assert result["seen"] == [["ann", 0], ["ann", 10], ["ann", 20]]
    assert [each.triggered_by for each in app.resume_requests(handle)] == ["approval", "manual"] * 3
    assert all(each.executed_at is not None for each in app.resume_requests(handle))
    assert app.store.operating.check(0.0) == []


HOSTILE = "\x1b[31m\u202e'\";--"


def test_metadata_are_kept_for_people(app: rhythm.Rhythm) -> None:
    """Shown with the pause until it ends, kept with the resume, in the audit, and unknown to the
    workflow."""
    handle = app.start_workflow("cycles")
    approval = paused(app, handle)
    ticket = {"ticket": HOSTILE, "deep": [1, {"x": None}]}
    assert app.pause(handle, "look", by="ops", metadata=ticket)
    assert app.status(handle).paused_metadata == ticket == app.get(handle).paused_metadata
    (row,) = app.audit(action="execution.pause").items
    assert row.detail["metadata"] == ticket
    assert app.pause(handle, "look again", by="ops")
    assert app.get(handle).paused_metadata is None  # the pause is another one
    assert app.pause(handle, metadata=ticket)
    assert app.resume(handle, by="ops", metadata={"done": True})
    assert app.get(handle).paused_metadata is None
    assert [each.metadata for each in app.resume_requests(handle)] == [{"done": True}]
    (row,) = app.audit(action="execution.resume").items
    assert row.detail == {"reason": "", "data": [], "metadata": {"done": True}}
    for n in range(3):
        app.approve((approval := paused(app, handle)).id, by=f"person {n}")
        until(lambda id=approval.id: app.approval(id).status == "approved")
        until(lambda: app.approvals(execution=handle).items or app.get(handle).ended)
    assert handle.result(WAIT)["mark"] is None
    assert app.resume_requests(handle)[-1].metadata is None


def test_time_that_is_over_ends_the_metadata_of_a_pause(app: rhythm.Rhythm) -> None:
    handle = app.start_workflow("cycles")
    paused(app, handle)
    app.pause(handle, timeout=0.01, metadata={"a": 1})
    until(lambda: not app.get(handle).paused_manually)
    found = app.store.reading.get([handle.id])[handle.id]
    assert (found.paused_metadata, app.resume_requests(handle)[-1].metadata) == (None, None)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ([1], "metadata is an object, not \\[1\\]"),
        ({"a": "x" * 5000}, "metadata has at most 4,096 bytes as JSON, not 5,008"),
        ({"a": object()}, "metadata.a is of type object"),
        ({"a": "\0"}, "metadata.a has the character NUL"),
    ],
)
def test_metadata_that_cannot_be_kept_are_refused(
    app: rhythm.Rhythm, wrong: Any, says: str
) -> None:
    handle = app.start_workflow("cycles")
    paused(app, handle)
    for act in (app.pause, app.resume):
        with pytest.raises((ValueError, rhythm.InvalidPayload), match=says):
            act(handle, metadata=wrong)
    assert not app.get(handle).paused_manually


def test_steps_of_a_workflow_have_ids_of_call_and_line(app: rhythm.Rhythm) -> None:
    handle = app.start_workflow("cycles")
    paused(app, handle)
    status = app.status(handle)
    assert (status.paused_step_id, status.next_step_id) == ("approval:4", "work:5")
    turns = [step for step in app.trace(handle) if step.what == "turn"]
    assert [step.step for step in turns] == ["approval:4"]
    assert app.details.position(handle).step == "approval:4"


BRANCHES = """workflow parts(inputs) {
  await task("work", { n: 1 })
  await all([branch { await approval({ role: "manager" }) }, branch { await task("work", { n: 2 }); await event("paid") }])
}"""


def test_places_are_those_of_the_branches_too(app: rhythm.Rhythm) -> None:
    app.register(BRANCHES + "\n")
    handle = app.start_workflow("parts")
    until(lambda: [each.status for each in app.children(handle)].count("paused") == 2)
    places = app.details.places(handle)
    program = app.program("parts")
    assert program is not None
    called = call_ids(program)
    assert {called[at] for at in places.here} == {"all:3", "approval:3", "event:3"}
    assert {called[at] for at in places.passed} <= {"work:2", "work:3"}
    app.cancel(handle)
    until(lambda: app.get(handle).ended)
    assert app.details.places(handle).here == frozenset()
