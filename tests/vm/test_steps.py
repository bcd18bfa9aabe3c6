"""What steps do, on the interpreter alone. Every snapshot goes through JSON."""

from __future__ import annotations

from typing import Any

import pytest

from rhythm.ir.program import position_of
from rhythm.vm import commands as c
from tests.support.steps import allow, approval, block, choice, compiled, end, parallel, task, wait
from tests.support.world import Execution, World

YES = {"decision": "approved", "by": ["ann"], "comment": "fine", "at": "2026-11-15T09:00:01Z"}
NO = {"decision": "rejected", "by": ["bob"], "comment": "too much", "at": "2026-11-15T09:00:01Z"}


def run(
    *steps: dict[str, Any], inputs: Any = None, decisions: Any = (), signals: Any = None, **top: Any
) -> Execution:
    world = World(
        [compiled(*steps, **top)], through_json=True, tasks={"notify": lambda given: None}
    )
    world.decisions = list(decisions)
    return world.run("main", inputs, signals)


def ended(*steps: dict[str, Any], **given: Any) -> Any:
    execution = run(*steps, **given)
    assert execution.status == "completed", (execution.status, execution.value)
    return execution.value


def asked(*steps: dict[str, Any], inputs: Any = None) -> list[c.Command]:
    world = World([compiled(*steps)], tasks={"notify": lambda given: None})
    world.run("main", inputs, cancel_at=10**6)
    return world.commands


# conditions

ORDER = {
    "total": 100,
    "tags": ["new", "big"],
    "name": "ab-7",
    "note": None,
    "lines": [{"sku": "x"}],
    "a.b": 1,
}
COMPARED: list[tuple[str, str, Any, bool]] = [
    ("order.total", "eq", 100, True),
    ("order.total", "eq", "100", False),
    ("order.lines.0", "eq", {"sku": "x"}, True),
    ("order.total", "neq", 100, False),
    ("order.total", "neq", 101, True),
    ("order.total", "gt", 99, True),
    ("order.total", "gt", 100, False),
    ("order.total", "gte", 100, True),
    ("order.total", "gte", 101, False),
    ("order.total", "lt", 101, True),
    ("order.total", "lt", 100, False),
    ("order.total", "lte", 100, True),
    ("order.total", "lte", 99, False),
    ("order.total", "in", [1, 100], True),
    ("order.total", "in", [1], False),
    ("order.total", "not_in", [1], True),
    ("order.total", "not_in", [100], False),
    ("order.tags", "contains", "big", True),
    ("order.tags", "contains", "bi", False),
    ("order.name", "contains", "b-", True),
    ("order", "contains", "total", True),
    ("order.name", "matches_prefix", "ab-", True),
    ("order.name", "matches_prefix", "b-", False),
    ("order.lines.-1.sku", "eq", "x", True),
    ("order.total", "eq", "${limit}", True),
    ("order.tags.0", "eq", "${first}", True),
    ("order.tags.0", "in", "${order.tags}", True),
    ("ctx.workflow", "eq", "main", True),
]


@pytest.mark.parametrize(("field", "operator", "value", "holds"), COMPARED)
def test_a_comparison_decides_where_to_go(
    field: str, operator: str, value: Any, holds: bool
) -> None:
    steps = [
        choice("if", {"field": field, "operator": operator, "value": value}, "yes", "no"),
        end("yes"),
        end("no"),
    ]
    assert ended(*steps, inputs={"order": ORDER, "limit": 100, "first": "new"}) == (
        "yes" if holds else "no"
    )


@pytest.mark.parametrize(
    ("field", "there"),
    [
        ("order", True),
        ("order.total", True),
        ("order.note", False),
        ("order.x", False),
        ("x.y.z", False),
        ("order.lines.7", False),
    ],
)
@pytest.mark.parametrize("wanted", [None, True, False])
def test_exists_is_for_what_may_be_absent(field: str, there: bool, wanted: bool | None) -> None:
    condition = {
        "field": field,
        "operator": "exists",
        **({} if wanted is None else {"value": wanted}),
    }
    steps = [choice("if", condition, "yes", "no"), end("yes"), end("no")]
    assert ended(*steps, inputs={"order": ORDER}) == ("no" if there == (wanted is False) else "yes")


T, F = {"field": "x", "operator": "eq", "value": 1}, {"field": "x", "operator": "eq", "value": 2}
GROUPS: list[tuple[Any, bool]] = [
    ({"and": [T, T, T]}, True), ({"and": [T, F, T]}, False), ({"or": [F, F, T]}, True),
    ({"or": [F, F]}, False), ({"not": F}, True),
    ({"not": {"not": F}}, False), ({"and": [T, {"or": [F, {"not": F}]}]}, True),
    ({"and": [T]}, True), ({"or": [F]}, False),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "holds"), GROUPS)
def test_groups_of_conditions(condition: Any, holds: bool) -> None:
    assert ended(choice("if", condition, "yes", "no"), end("yes"), end("no"), inputs={"x": 1}) == (
        "yes" if holds else "no"
    )


def test_a_long_group_is_no_deep_one() -> None:
    condition = {"or": [*({"field": "x", "operator": "eq", "value": i} for i in range(3000)), T]}
    assert (
        ended(choice("if", condition, "yes", "no"), end("yes"), end("no"), inputs={"x": 1}) == "yes"
    )


def test_a_field_that_is_absent_is_a_failure_unless_there_is_a_default() -> None:
    compared = {"field": "order.totl", "operator": "gte", "value": 5}
    failed = run(
        choice("if", compared, "yes", "no"), end("yes"), end("no"), inputs={"order": ORDER}
    )
    assert (failed.status, failed.value["code"], failed.value["message"]) == (
        "failed",
        "MissingProperty",
        "there is no property `totl`; did you mean `total`?",
    )
    steps = choice("if", {**compared, "default": 9}, "yes", "no"), end("yes"), end("no")
    assert ended(*steps, inputs={"order": ORDER}) == "yes"


def test_what_a_condition_does_not_name_is_the_next_step() -> None:
    assert ended(choice("if", F, "yes"), end("no"), end("yes"), inputs={"x": 1}) == "no"
    assert ended(choice("if", T, None, "no"), end("yes"), end("no"), inputs={"x": 1}) == "yes"


# the context


def test_the_context_is_the_inputs_and_what_steps_have_given() -> None:
    steps = (
        task("a", inputs={"n": "${n}"}),
        task("b", inputs={"a": "${a.n}"}, into="kept"),
        end("end", {"all": ["${n}", "${a}", "${kept.a}"]}),
    )
    assert ended(*steps, inputs={"n": 5}) == {"all": [5, {"n": 5}, 5]}


@pytest.mark.parametrize(
    ("value", "gives"),
    [
        ("${n}", 5),
        ("n is ${n}", "n is 5"),
        ("${n}${n}", "55"),
        ("$${n} ${n}", "${n} 5"),
        ("$${n}", "${n}"),
        ("no $ {n}", "no $ {n}"),
        (["${n}", {"k": "${o.k}"}], [5, {"k": [1]}]),
        ({"o": "${o}", "of": "${ctx.workflow}"}, {"o": {"k": [1]}, "of": "main"}),
        (7, 7),
        ([], []),
    ],
)
def test_values_are_filled_from_the_context(value: Any, gives: Any) -> None:
    assert (
        ended({"id": "end", "type": "end", "result": value}, inputs={"n": 5, "o": {"k": [1]}})
        == gives
    )


def test_no_inputs_are_an_empty_context() -> None:
    assert (
        ended(
            choice("if", {"field": "x", "operator": "exists"}, "yes", "no"),
            end("yes"),
            end("no"),
            inputs=None,
        )
        == "no"
    )


def test_inputs_that_are_no_object_are_refused_in_plain_words() -> None:
    failed = run(task("a"), inputs=[1])
    assert (failed.status, failed.value["code"]) == ("failed", "TypeMismatch")
    assert (
        failed.value["message"]
        == "the inputs of a workflow of JSON steps are an object: its context"
    )


# ends


def test_allow_completes_as_allowed() -> None:
    assert ended(allow()) == {"outcome": "allowed"}
    assert ended(allow(reason="small: ${n}"), inputs={"n": 1}) == {
        "outcome": "allowed",
        "reason": "small: 1",
    }


def test_block_ends_blocked_with_its_reason() -> None:
    blocked = run(block("stop", reason="order ${id}"), inputs={"id": 7})
    assert (blocked.status, blocked.value) == (
        "blocked",
        {"code": "Blocked", "message": "order 7", "data": {"step": "stop"}},
    )
    assert run(block("stop")).value["message"] == "blocked at step stop"


def test_end_completes_fails_or_blocks() -> None:
    assert ended(end("end", {"x": 1})) == {"x": 1}
    assert ended({"id": "end", "type": "end"}) == {"outcome": "completed"}
    assert ended({"id": "end", "type": "end", "status": "completed"}) == {"outcome": "completed"}
    failed = run(end("end", status="failed", reason="no ${x}"), inputs={"x": 1})
    assert (failed.status, failed.value) == (
        "failed",
        {"code": "Failed", "message": "no 1", "data": {"step": "end"}},
    )
    blocked = run(end("end", status="blocked", reason="no"))
    assert (blocked.status, blocked.value["message"]) == ("blocked", "no")


def test_the_end_of_the_list_completes() -> None:
    assert ended(task("a")) == {"outcome": "completed"}
    assert ended(
        choice("if", F, "if2"),
        choice("if2", F, "a"),
        task("a", next="b"),
        wait("b", **{"for": 1}),
        inputs={"x": 1},
    ) == {"outcome": "completed"}


# tasks


def test_options_of_a_task_reach_its_command() -> None:
    options = {
        "retries": 2,
        "backoff": {"initial": "1s"},
        "timeout": "30s",
        "queue": "slow",
        "priority": 3,
    }
    [first, *_] = asked(task("a", inputs={"x": 1}, **options))
    given = {
        "retries": 2,
        "backoff": {"initial_s": 1.0},
        "timeout_s": 30.0,
        "queue": "slow",
        "priority": 3,
    }
    assert first == c.StartTask(1, "echo", {"x": 1}, given)


def test_a_failed_task_fails_the_execution_or_leads_to_on_failure() -> None:
    broken = task("a", "fail", inputs={"message": "broken"})
    failed = run(broken)
    assert (failed.status, failed.value["message"]) == ("failed", "broken")
    steps = {**broken, "on_failure": "sorry"}, end("fine"), end("sorry", "${error.message}")
    assert ended(*steps) == "broken"


# waiting


def test_the_data_of_an_event_goes_into_the_context() -> None:
    told = block(
        "tell",
        reason="x",
        execute=[{"type": "publish", "event": "paid", "data": {"id": "${id}", "n": 5}}],
    )
    branches = [
        [
            wait("w", event="paid", where={"id": "${id}"}, timeout="1h"),
            end("e", ["${w.n}", "${event.n}"]),
        ],
        [wait("s", **{"for": 1}), {**told, "action": "allow"}],
    ]
    assert ended(parallel("p", branches), end("end", "${p.0}"), inputs={"id": 7}) == [5, 5]


def test_a_wait_that_takes_too_long_fails_or_leads_to_on_timeout() -> None:
    for kind in ("event", "signal"):
        late = wait("w", **{kind: "paid", "timeout": "1h"})
        failed = run(late)
        assert (failed.status, failed.value["code"]) == ("failed", "Timeout")
        assert ended({**late, "on_timeout": "late"}, end("fine"), end("late")) == "late"


def test_on_timeout_is_for_the_timeout_alone() -> None:
    steps = (
        wait("w", event="paid", where={"x": 1}, timeout="${n}", on_timeout="late"),
        end("fine"),
        end("late"),
    )
    failed = run(*steps, inputs={"n": "soon"})
    assert (failed.status, failed.value["code"]) == ("failed", "InvalidArgument")


def test_a_signal_goes_into_the_context() -> None:
    steps = (
        wait("w", signal="go", timeout="1h", on_timeout="late"),
        end("fine", ["${w}", "${signal}"]),
        end("late"),
    )
    assert ended(*steps, signals=[{"at": 5, "name": "go", "payload": {"by": "ann"}}]) == [
        {"by": "ann"},
        {"by": "ann"},
    ]


def test_a_wait_may_be_for_a_time_or_until_one() -> None:
    assert asked(wait("w", **{"for": "90s"}))[0] == c.StartTimer(1, 90.0)
    assert asked(wait("w", until="2026-11-16T00:00:00Z"))[0] == c.StartTimer(
        1, None, "2026-11-16T00:00:00Z"
    )


# approvals


def test_an_approval_is_asked_for_with_its_options() -> None:
    options = {
        "quorum": 2,
        "four_eyes": False,
        "escalate": "ceo",
        "notify": "tell",
        "data": {"total": "${total}"},
    }
    step = approval(
        on=options, reason="Order of ${total}", execute=[{"type": "notify", "to": ["${boss}"]}]
    )
    first, second, *_ = asked(step, inputs={"total": 5, "boss": "ann"})
    assert first == c.StartTask(1, "notify", {"to": ["ann"]}, {})
    assert second == c.RequestApproval(
        2, "boss", "Order of 5", {"total": 5}, 86400.0, 2, False, ({"role": "ceo"},), notify="tell"
    )


def test_who_decides_sees_the_context_unless_the_step_says_otherwise() -> None:
    [first, *_] = asked(approval(), inputs={"total": 5})
    assert isinstance(first, c.RequestApproval)
    assert (first.data, first.reason) == ({"total": 5}, "step ask requires approval")


def test_approved_goes_to_on_true_or_to_the_next_step() -> None:
    assert ended(approval(), end("next"), end("other"), decisions=[YES]) == "next"
    assert ended(approval(on_true="other"), end("next"), end("other"), decisions=[YES]) == "other"
    assert ended(approval(), decisions=[YES]) == {"outcome": "completed"}


def test_rejected_or_expired_goes_to_on_false_or_ends_blocked() -> None:
    for decisions, word in (([NO], "rejected"), ([], "expired")):
        assert (
            ended(
                approval(on_false="other"),
                end("next"),
                end("other", "${ask.decision}"),
                decisions=decisions,
            )
            == word
        )
        blocked = run(approval(reason="Order 7"), end("next"), decisions=decisions)
        assert (blocked.status, blocked.value["message"]) == ("blocked", f"Order 7: {word}")
        assert blocked.value["data"]["step"] == "ask"
        assert blocked.value["data"]["decision"] == word


def test_decisions_are_in_the_context_each_by_its_step_and_the_last_as_approval() -> None:
    steps = (
        approval("one"),
        approval("two", on_false="end"),
        end("end", ["${one.by}", "${two.by}", "${approval.by}"]),
    )
    assert ended(*steps, decisions=[YES, NO]) == [["ann"], ["bob"], ["bob"]]


# parallel


def test_branches_run_at_once_and_give_what_their_steps_gave() -> None:
    branches = {
        "a": [
            task("x", "value", inputs={"value": 1, "took": 9}),
            task("y", "value", inputs={"value": "${n}"}),
        ],
        "b": [task("z", "value", inputs={"value": 3})],
    }
    assert ended(parallel("p", branches), end("end", "${p}"), inputs={"n": 2}) == {
        "a": {"x": 1, "y": 2},
        "b": {"z": 3},
    }


def test_a_list_of_branches_gives_a_list() -> None:
    steps = (
        parallel("p", [[task("x", "value", inputs={"value": 1})], [allow("y")]], into="both"),
        end("end", "${both}"),
    )
    assert ended(*steps) == [{"x": 1}, {}]


def test_a_branch_that_is_blocked_blocks_the_execution() -> None:
    branches = {"a": [block("no", reason="no credit")], "b": [wait("w", **{"for": "1d"})]}
    for on_failure in ({}, {"on_failure": "end"}):
        blocked = run(parallel("p", branches, **on_failure), end("end"))
        assert (blocked.status, blocked.value["message"], blocked.value["data"]) == (
            "blocked",
            "no credit",
            {"step": "no"},
        )


def test_a_branch_that_fails_fails_the_execution_or_leads_to_on_failure() -> None:
    branches = [[task("x", "fail", inputs={"message": "broken"})]]
    failed = run(parallel("p", branches), end("end"))
    assert (failed.status, failed.value["code"]) == ("failed", "ChildFailed")
    assert (
        ended(
            parallel("p", branches, on_failure="sorry"),
            end("end"),
            end("sorry", "${error.data.error.message}"),
        )
        == "broken"
    )


def test_branches_nest() -> None:
    inner = parallel("inner", {"x": [task("t", "value", inputs={"value": 7})]})
    assert ended(parallel("outer", {"a": [inner]}), end("end", "${outer.a.inner.x.t}")) == 7


# positions


def test_each_await_is_at_its_step() -> None:
    branches = {"a": [wait("inner", **{"for": "1h"}), end("inner_end")]}
    steps = (
        task("t", next="w"),
        approval("ask", on_true="p"),
        wait("w", **{"for": "1h"}),
        parallel("p", branches),
        end("end"),
    )
    program = compiled(*steps)
    awaits = [pc for pc, instruction in enumerate(program.code) if hasattr(instruction, "keep")]
    assert [position_of(program, pc) for pc in awaits] == [
        ("t", "w"),
        ("ask", "p"),
        ("w", "p"),
        ("p", "end"),
        ("inner", "inner_end"),
    ]
