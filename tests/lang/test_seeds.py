"""The original sketch holds: its workflow code runs as it says or as `docs/differences.md` says,
what it forbids is refused.

Every case runs straight through and with program, snapshots and values through JSON.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from rhythm.lang.flow.compile import Compilation, compile_flow
from rhythm.lang.flow.problems import CODES
from rhythm.vm import commands as c
from rhythm.vm.snapshot import Snapshot, encode_snapshot
from tests.seeds import sketch_000, sketch_003, sketch_004
from tests.seeds.block import Legal, Refused, Table, gives, line_in_block, text_of
from tests.support.world import Execution, World

DIFFERENCES = Path(__file__).parents[2] / "docs" / "differences.md"
SKETCH: dict[str, Table] = {
    "000": sketch_000.BLOCKS,
    "003": sketch_003.BLOCKS,
    "004": sketch_004.BLOCKS,
}
BLOCKS_PER_DOCUMENT = {"000": 18, "003": 38, "004": 12}
WITH_WORKFLOW_CODE = {"000": 7, "003": 11, "004": 2}
CASES = [
    case
    for table in SKETCH.values()
    for cases in table.values()
    if isinstance(cases, tuple)
    for case in cases
]
LEGAL = [case for case in CASES if isinstance(case, Legal)]
REFUSED = [case for case in CASES if isinstance(case, Refused)]


class Watched(World):
    """A world that keeps the snapshot of every suspension of the execution it was asked to run."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.suspensions: list[Snapshot] = []

    def turn(self, e: Execution) -> None:
        was_running = e.status == "running"
        super().turn(e)
        if e is self.root and was_running and e.status == "running":
            self.suspensions.append(e.snapshot)


def described(plan: dict[str, Any] | None) -> str:
    """What a snapshot waits for, as a phrase: `all(task charge, sleep)`."""
    assert plan is not None, "suspended without waiting for anything"
    if "items" in plan:
        return f"{plan['op']}({', '.join(described(item) for item in plan['items'])})"
    if "of" in plan:
        return f"{plan['op']}({plan['count']} × {described(plan['of'])})"
    return " ".join(filter(None, (plan["op"], plan.get("name"))))


def compiled(case: Legal | Refused) -> Compilation:
    return compile_flow(text_of(case), "workflow.flow")


def run(case: Legal, *, through_json: bool) -> tuple[Watched, Execution]:
    programs = list(compiled(case).programs_or_raise())
    world = Watched(programs, through_json=through_json, tasks=dict(case.tasks))
    return world, world.run(programs[0].name, case.inputs, list(case.signals))


def ended(case: Legal, execution: Execution) -> tuple[str, Any]:
    """Status, and the result, or the failure's code and line."""
    if execution.status != "failed":
        return execution.status, execution.value
    line, _ = execution.program.position(execution.at)
    return "failed", (execution.value["code"], line_in_block(case, line))


@pytest.mark.parametrize("through_json", [False, True], ids=["straight", "stored"])
@pytest.mark.parametrize("case", LEGAL, ids=lambda case: case.id)
def test_legal_block_does_what_it_says(case: Legal, through_json: bool) -> None:
    world, execution = run(case, through_json=through_json)
    assert ended(case, execution) == (
        ("failed", case.failure) if case.failure else ("completed", case.result)
    )
    assert [
        (start.name, start.inputs) for start in world.commands if isinstance(start, c.StartTask)
    ] == list(case.started)
    assert [
        (cancel.first, cancel.last) for cancel in world.commands if isinstance(cancel, c.Cancel)
    ] == list(case.cancelled)
    assert [described(snapshot.awaiting) for snapshot in world.suspensions] == list(case.waits)
    assert world.clock == case.lasts


@pytest.mark.parametrize("case", LEGAL, ids=lambda case: case.id)
def test_legal_block_is_reported_only_as_expected(case: Legal) -> None:
    assert [d.code for d in compiled(case).diagnostics if d.severity != "note"] == list(
        case.warnings
    )


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_forbidden_block_is_refused_with_its_rewrite(case: Refused) -> None:
    compilation = compiled(case)
    (error,) = compilation.errors
    line, column = compilation.source.position(error.start)
    assert (error.code, line_in_block(case, line), column) == case.problem
    for piece in case.help:
        assert any(piece in shown for shown in error.help), error.help


def test_each_thing_that_the_sketch_forbids_has_a_code_of_its_own() -> None:
    forbidden = {
        case.id: case.problem[0]
        for case in REFUSED
        if case.id in ("003-nested-operation", "003-closure", "003-function")
    }
    assert len(forbidden) == len(set(forbidden.values())) == 3


@pytest.mark.parametrize("document", SKETCH)
def test_no_block_of_the_sketch_is_forgotten(document: str) -> None:
    table = SKETCH[document]
    assert list(table) == list(range(1, BLOCKS_PER_DOCUMENT[document] + 1))
    assert sum(isinstance(entry, tuple) for entry in table.values()) == WITH_WORKFLOW_CODE[document]
    assert all(table.values()), "a block has neither a case nor a reason"


def test_cases_are_named_once_and_after_their_document() -> None:
    ids = [case.id for case in CASES]
    assert len(ids) == len(set(ids))
    for document, table in SKETCH.items():
        assert all(
            case.id.startswith(f"{document}-")
            for cases in table.values()
            if isinstance(cases, tuple)
            for case in cases
        )


def test_state_is_one_flat_object() -> None:
    """Two blocks show the state as JSON: an index, the variables, what is awaited; no stack, no
    syntax."""
    case = Legal(
        "003-state",
        """
        orderId = inputs.orderId
        payment = task("charge", { orderId })
        results = all([task("check", { n: 1 }), task("check", { n: 2 })])
        task("ship", { orderId })
        """,
        inputs={"orderId": "123"},
        tasks={
            "charge": gives({"charged": 99.99}),
            "check": lambda inputs: {"success": inputs["n"] == 1},
            "ship": gives(None),
        },
    )
    world, _ = run(case, through_json=True)
    state = json.loads(encode_snapshot(world.suspensions[-1]))
    assert state.keys() == {
        "v",
        "statement_index",
        "locals",
        "awaiting",
        "next_child",
        "instructions",
        "cancelled",
    }
    assert state["statement_index"] == 3
    assert state["locals"] == {
        "orderId": "123",
        "payment": {"charged": 99.99},
        "results": [{"success": True}, {"success": False}],
    }
    assert state["awaiting"] == {"op": "task", "n": 5, "name": "ship"}


def test_state_moves_on_only_when_the_task_has_ended() -> None:
    """The index stays on the await; a variable is there once it has a value."""
    (case,) = (case for case in LEGAL if case.id == "004-snapshot-at-every-await")
    world, _ = run(case, through_json=True)
    assert [(s.statement_index, s.locals) for s in world.suspensions] == [
        (0, {}),
        (1, {"payment": {"orderId": "o-1"}}),
    ]


def test_version_is_the_hash_of_the_workflow() -> None:
    first, again, second = (
        compile_flow(text, "flow.flow").programs[0].version
        for text in (sketch_004.V1, sketch_004.V1, sketch_004.V2)
    )
    assert first == again != second
    assert len(first) == hashlib.sha256().digest_size * 2


def test_workflow_without_a_name_is_called_like_its_file() -> None:
    (program,) = compile_flow(sketch_004.V1, "flows/processOrder.flow").programs
    assert program.name == "processOrder"


def test_page_of_differences_names_the_code_of_everything_refused() -> None:
    named = set(re.findall(r"\bF\d{3}\b", DIFFERENCES.read_text(encoding="utf-8")))
    assert named <= CODES.keys()
    assert {case.problem[0] for case in REFUSED} - {"F020"} <= named, (
        "an unknown variable is no difference from the sketch"
    )
