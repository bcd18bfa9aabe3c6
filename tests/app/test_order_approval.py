"""The order approval of the first sketch, as it was written there: its tests by their names, on
both databases."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rhythm
from rhythm.app import Rhythm
from rhythm.app.approvals import ApprovalView
from rhythm.app.pauses import StatusView
from rhythm.engine.doctor import examine
from rhythm.store.access import Actor
from tests.app.conftest import MakeApp
from tests.support.steps import approval, block, choice, document, end, parallel, task, wait

ORDER = Path(__file__).parents[2] / "examples" / "order_approval.steps.json"
WAIT = "120s"
BIG = {"order": {"total": 15000, "id": "A17"}}
MANAGER = Actor("ann", ("sales_manager", "boss"))


class Office:
    """An application with a worker, and the messages that were sent."""

    def __init__(self, make_app: MakeApp) -> None:
        self.messages: list[Any] = []

        def notify(**message: Any) -> None:
            self.messages.append(message)

        def value(value: Any = None) -> Any:
            return value

        self.app: Rhythm = make_app(notify, value)
        self.app.worker().start()

    def start(self, source: str | Path, inputs: Any) -> rhythm.Handle:
        [name] = self.app.register(source)
        return self.app.start_workflow(name, inputs, by="sue")

    def until(self, id: str, reached: Callable[[StatusView], bool]) -> StatusView:
        for _ in range(12_000):
            if reached(seen := self.app.status(id)):
                return seen
            threading.Event().wait(0.01)
        raise AssertionError(f"never there: {seen}")

    def asked(self, id: str, step: str = "require_approval") -> ApprovalView:
        """What it asks for at this step, as soon as it does."""
        self.until(id, lambda seen: seen.status == "paused" and seen.paused_step_id == step)
        [asked] = self.app.approvals(execution=id).items
        return asked

    def asked_by_anyone(self) -> ApprovalView:
        for _ in range(12_000):
            if items := self.app.approvals().items:
                return items[0]
            threading.Event().wait(0.01)
        raise AssertionError("nobody asks for anything")

    def doctor(self) -> None:
        assert examine(self.app.store, 60.0) == []


@pytest.fixture
def office(make_app: MakeApp) -> Office:
    return Office(make_app)


def test_executor_detects_pause_point_on_approval_required(office: Office) -> None:
    handle = office.start(ORDER, BIG)
    asked = office.asked(handle.id)
    seen = office.until(handle.id, lambda seen: seen.status == "paused")
    assert (seen.status, seen.paused_reason) == ("paused", "approval_required")
    assert (seen.paused_step_id, seen.next_step_id) == ("require_approval", "allow_order")
    assert seen.paused_at is not None
    assert (asked.role, asked.reason, asked.data, asked.requested_by) == (
        "sales_manager",
        "Order requires approval",
        BIG,
        "sue",
    )
    assert asked.deadline_at is not None
    assert (asked.deadline_at - asked.created_at).total_seconds() == 24 * 3600
    assert office.app.resume_options(handle.id) == ("approve", "reject")
    assert [workflow.language for workflow in office.app.workflows()] == ["steps"]


def test_an_order_below_the_limit_is_allowed_at_once(office: Office) -> None:
    assert office.start(ORDER, {"order": {"total": 9999}}).result(WAIT) == {"outcome": "allowed"}
    assert office.messages == []


def test_executor_resumes_from_pause_point(office: Office) -> None:
    handle = office.start(ORDER, BIG)
    office.app.approve(office.asked(handle.id).id, by=MANAGER)
    assert handle.result(WAIT) == {"outcome": "allowed"}
    # what was before the pause did not run again
    assert office.messages == [{"recipients": ["sales_manager"], "message": "..."}]
    seen = office.app.status(handle.id)
    assert (seen.status, seen.paused_step_id, seen.next_step_id) == ("completed", None, None)
    office.doctor()


def test_context_preserved_across_pause(office: Office) -> None:
    steps = (
        task("t", "value", inputs={"value": {"n": 1}}),
        approval(),
        end("end", ["${order}", "${t.n}", "${ask.by}", "${approval.comment}"]),
    )
    handle = office.start(document(*steps), BIG)
    office.app.approve(office.asked(handle.id, "ask").id, by=MANAGER, comment="fine")
    assert handle.result(WAIT) == [BIG["order"], 1, ["ann"], "fine"]


def test_resume_is_idempotent(office: Office) -> None:
    handle = office.start(ORDER, BIG)
    asked = office.asked(handle.id)
    first = office.app.approve(asked.id, by=MANAGER, key="once")
    assert office.app.approve(asked.id, by=MANAGER, key="once") == first
    with pytest.raises(rhythm.Undecidable):
        office.app.approve(asked.id, by=Actor("bob", ("sales_manager",)))
    assert handle.result(WAIT) == {"outcome": "allowed"}
    assert len(office.app.resume_requests(handle.id)) == 1


def test_approval_triggers_resume(office: Office) -> None:
    handle = office.start(ORDER, BIG)
    asked = office.asked(handle.id)
    office.app.approve(asked.id, by=MANAGER)
    handle.result(WAIT)
    [request] = office.app.resume_requests(handle.id)
    assert (request.triggered_by, request.error_message) == ("approval", None)
    assert request.executed_at is not None


def test_rejected_order_ends_blocked_with_who_and_why(office: Office) -> None:
    handle = office.start(ORDER, BIG)
    office.app.reject(office.asked(handle.id).id, by=MANAGER, comment="too much")
    with pytest.raises(rhythm.ExecutionFailed) as raised:
        handle.result(WAIT)
    assert (raised.value.status, raised.value.error["code"]) == ("blocked", "Blocked")
    assert raised.value.error["message"] == "Order requires approval: rejected"
    data = raised.value.error["data"]
    assert (data["step"], data["decision"], data["by"], data["comment"]) == (
        "require_approval",
        "rejected",
        ["ann"],
        "too much",
    )
    assert [execution.id for execution in office.app.list(status="blocked")] == [handle.id]
    # The task that notifies people has a row of its own, and may end later.
    own = [step.what for step in office.app.trace(handle.id) if step.execution_id == handle.id]
    assert own[-1] == "blocked"
    with pytest.raises(rhythm.NotRetryable, match="was blocked, which is its outcome"):
        office.app.retry(handle.id)
    office.doctor()


def test_manual_resume(office: Office) -> None:
    steps = (
        wait("w", signal="go", timeout="1h"),
        choice("if", {"field": "order.total", "operator": "gt", "value": 0}, "yes", "no"),
        end("yes", "${vip}"),
        end("no"),
    )
    handle = office.start(document(*steps), BIG)
    office.until(handle.id, lambda seen: seen.status == "suspended")
    assert office.app.pause(handle.id, "on hold", by="olga")
    seen = office.app.status(handle.id)
    assert (
        seen.status,
        seen.paused_by,
        seen.paused_reason,
        seen.paused_step_id,
        seen.next_step_id,
    ) == (
        "paused",
        "olga",
        "on hold",
        "w",
        "if",
    )
    assert office.app.resume_options(handle.id) == ("resume",)
    handle.signal("go")
    assert office.app.resume(handle.id, by="olga", data={"vip": True, "order": {"total": 1}})
    assert handle.result(WAIT) is True
    assert not office.app.resume(handle.id)


def test_data_of_a_resume_is_in_the_context_also_when_nothing_else_has_happened(
    office: Office,
) -> None:
    handle = office.start(
        document(wait("w", signal="go", timeout="1h"), end("end", ["${vip}", "${n}"])),
        {"n": 1, "vip": False},
    )
    for data in ({"vip": 1}, {"vip": True}):
        office.until(handle.id, lambda seen: seen.status == "suspended")
        office.app.pause(handle.id)
        office.app.resume(handle.id, data=data)
    office.until(handle.id, lambda seen: seen.status == "suspended")
    handle.signal("go")
    assert handle.result(WAIT) == [True, 1]
    office.doctor()


def test_paused_execution_times_out(office: Office) -> None:
    handle = office.start(document(approval(timeout="50ms", reason="Order 7"), end("end")), BIG)
    with pytest.raises(rhythm.ExecutionFailed, match="Order 7: expired"):
        handle.result(WAIT)
    assert handle.status() == "blocked"


def test_multiple_pause_cycles(office: Office) -> None:
    steps = (
        approval("one"),
        wait("paid", event="paid", where={"id": "${order.id}"}, timeout="1h"),
        approval("two"),
        end("end", ["${one.by}", "${event.by}", "${two.by}"]),
    )
    handle = office.start(document(*steps), BIG)
    office.app.approve(office.asked(handle.id, "one").id, by=MANAGER)
    seen = office.until(
        handle.id, lambda seen: seen.status == "paused" and seen.paused_step_id == "paid"
    )
    assert (seen.next_step_id, office.app.resume_options(handle.id)) == ("two", ("publish",))
    office.app.publish("paid", {"id": "A17", "by": "card"})
    office.app.approve(office.asked(handle.id, "two").id, by=Actor("bob", ("boss",)))
    assert handle.result(WAIT) == [["ann"], "card", ["bob"]]
    assert [request.triggered_by for request in office.app.resume_requests(handle.id)] == [
        "approval",
        "event",
        "approval",
    ]
    office.doctor()


def test_branches_are_executions_of_their_own_and_one_that_is_blocked_blocks_all(
    office: Office,
) -> None:
    steps = (
        parallel("both", {"money": [approval("ask")], "goods": [wait("w", **{"for": "1d"})]}),
        end("end"),
    )
    handle = office.start(document(*steps), BIG)
    office.until(
        handle.id, lambda seen: seen.paused_step_id == "both" or seen.status == "suspended"
    )
    asked = office.asked_by_anyone()
    assert office.app.status(asked.execution_id).paused_step_id == "ask"
    office.app.reject(asked.id, by=MANAGER)
    with pytest.raises(rhythm.ExecutionFailed, match="rejected"):
        handle.result(WAIT)
    assert handle.status() == "blocked"
    office.doctor()


def test_a_parent_sees_a_blocked_child_as_failed_with_the_reason(office: Office) -> None:
    office.app.register(ORDER)
    parent = """workflow parent(inputs) {
      try { return await workflow("order_approval", inputs) } catch (e) { return [e.code, e.message, e.data.error.code] }
    }"""
    handle = office.start(parent, BIG)
    asked = office.asked_by_anyone()
    office.app.reject(asked.id, by=MANAGER)
    assert handle.result(WAIT) == [
        "ChildFailed",
        "`order_approval` was blocked: Order requires approval: rejected",
        "Blocked",
    ]


def test_a_blocked_child_stays_blocked_when_its_parent_is_retried(office: Office) -> None:
    office.app.register(document(block("no", reason="closed")))
    handle = office.start(
        'workflow parent(inputs) {\n  return await workflow("main", inputs)\n}', {}
    )
    with pytest.raises(rhythm.ExecutionFailed, match="`main` was blocked: closed"):
        handle.result(WAIT)
    with pytest.raises(rhythm.NotRetryable, match="failed when what it had waited for was done"):
        office.app.retry(handle.id)


def test_an_event_starts_the_steps_that_are_on_it(office: Office) -> None:
    office.app.register(
        document(end("end", "${order.total}"), on=["order.created", "order.changed"])
    )
    office.app.publish("order.created", BIG)
    for _ in range(12_000):
        if (found := office.app.list("main").items) and found[0].ended:
            break
        threading.Event().wait(0.01)
    assert [(execution.result, execution.attributes["event_type"]) for execution in found] == [
        (15000, "order.created")
    ]


def test_folders_give_their_steps_files_and_no_other_json(
    make_app: MakeApp, tmp_path: Path
) -> None:
    text = ORDER.read_text(encoding="utf-8")
    (tmp_path / "order.steps.json").write_text(text, encoding="utf-8")
    (tmp_path / "package.json").write_text('{"name": "x"}', encoding="utf-8")
    (tmp_path / "add.flow").write_text("return 1", encoding="utf-8")
    (tmp_path / "named.json").write_text(
        json.dumps({**json.loads(text), "workflow_id": "named"}), encoding="utf-8"
    )
    app = make_app()
    assert app.register(tmp_path) == ("add", "order_approval")
    assert app.register(tmp_path / "named.json") == ("named",)
    with pytest.raises(
        rhythm.FlowError,
        match=r"two workflows are called `order_approval`: .*order.steps.json:2 and .*text 2.json:",
    ):
        app.register(tmp_path / "order.steps.json", text)
    with pytest.raises(rhythm.FlowError, match=r'error\[S005\]: a workflow needs "workflow_id"'):
        app.register(tmp_path / "package.json")


def test_data_of_a_resume_does_not_stand_for_a_decision(office: Office) -> None:
    handle = office.start(
        document(approval(), wait("rest", **{"for": "1h"}), end("end", "${approval.by}")), BIG
    )
    office.app.approve(office.asked(handle.id, "ask").id, by=MANAGER)
    office.until(handle.id, lambda seen: seen.paused_step_id == "rest")
    office.app.pause(handle.id)
    for data in ({"approval": {"by": ["the chief"]}}, {"ask": 1}, {"rest": None}):
        with pytest.raises(ValueError, match="which is the result of a step"):
            office.app.resume(handle.id, data=data)
    assert office.app.resume(handle.id, data={"order": {"total": 1}})
