"""What `check` passes, a database runs; and what a database refuses, `check` refuses.

Every option of every await has values that work and values that cannot work, also at its limits.
Written out, the compilers tell them apart, in each language. Computed, `rhythm run`, SQLite and
PostgreSQL do, when the workflow runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rhythm.ir.operations import GROUPS, OPERATIONS
from rhythm.lang.flow.compile import compile_flow
from rhythm.lang.languages import compile_text
from tests.python.modules import compiled
from tests.support.length import sampled, sweep
from tests.support.stores import MakeStore, Stores, sqlite_in_memory
from tests.worker.test_language import Checkpointing, InProcess

LONGEST, TOO_LONG = "n" * 200, "n" * 201
NAMES = ["slow", LONGEST], ["", 5, TOO_LONG]
DURATIONS = [0, 1.5, "1h30m", "PT15M", "36600d"], [-1, "soon", "36601d", True, [1]]
FLAGS: tuple[list[Any], list[Any]] = [True, False], []
# For each option: values that work, and values that cannot work.
OPTIONS: dict[str, tuple[list[Any], list[Any]]] = {
    "retries": ([0, 3, 1_000_000, None], [-1, 1_000_001, 1.5, "3", True]),
    "backoff": (
        [2, "2s", {}, {"initial": 1, "factor": 100, "max": "1m", "jitter": False}, None],
        ["soon", -1, {"factor": 101}, {"factor": 0}, {"start": 1}, {"max": "never"}],
    ),
    "timeout": (["1h", 90, None], ["never", -1, "40000d", True, {}]),
    "queue": ([*NAMES[0], None], NAMES[1]),
    "priority": ([0, 32767, -32768, None], [32768, -32769, 1.5, "high"]),
    "settle": FLAGS,
    "keep": FLAGS,
    "version": ([None], NAMES[1]),
    "concurrency": ([1, 1_000_000, None], [0, -1, 1_000_001, "2"]),
    "need": ([1, None], [0, 1_000_001, 1.5]),
    "default": ([None, 1, "x", {"a": [1]}], []),
    "where": (
        [{}, {"order.id": 7}, {"a": "x" * 4000}, None],
        ["x", [1], 5, {"a": "x" * 5000}],
    ),
    "role": NAMES,
    "reason": (["", "because", "r" * 4000, None], ["r" * 4001]),
    "quorum": ([1, 3, 1_000_000], [0, 1_000_001, "2", 1.5]),
    "four_eyes": FLAGS,
    "data": ([None, {"a": 1}, [1]], []),
    "escalate": (
        [None, "boss", ["a", {"role": "b", "after": "1h", "timeout": "2h"}], ["r"] * 20],
        ["", 5, TOO_LONG, {"after": "1h"}, {"role": "b", "when": 1}, {"role": "b", "after": "x"},
         ["r"] * 21],
    ),
    "notify": (["nothing", None], ["", 5, TOO_LONG]),
    # There are none of these.
    "key": ([], ["k"]),
    "id": ([], ["mine"]),
}  # fmt: skip
CALLS = {
    "task": 'task("nothing", {{}}, {0})',
    "workflow": 'workflow("child", {{}}, {0})',
    "signal": 'signal("go", {0})',
    "event": 'event("paid", {0})',
    "approval": "approval({0})",
    "all": 'all([task("nothing")], {0})',
    "any": 'any([task("nothing")], {0})',
    "race": 'race([task("nothing")], {0})',
}
ARGUMENTS: dict[str, tuple[list[Any], list[Any]]] = {
    "await race([sleep({0}), sleep(1)])": DURATIONS,
    "await race([sleep_until({0}), sleep(1)])": (
        ["2027-01-01", "2027-01-01T09:30:00Z", "2027-01-01T09:30:00.5+02:00", "9999-12-31"],
        ["tomorrow", 5, None, "2027-13-01", "0001-01-01T00:00:00+14:00"],
    ),
    "await race([signal({0}), sleep(1)])": NAMES,
    "await race([event({0}), sleep(1)])": NAMES,
    "publish({0})": NAMES,
    'send("x", {0})': NAMES,
    "set_attribute({0}, 1)": NAMES,
    'set_attribute("a", {0})': ([None, 1, "x" * 4000, True], [[], {}, "x" * 5000]),
    "progress({0})": ([0, 0.5, 1], [-0.1, 2, "half", None]),
    'log("a", {0})': ([None, {}, {"a": 1}], [5, "x", [1]]),
    "await race({0})": ([], [[]]),
}


def called(operation: str, options: dict[str, Any] | str) -> str:
    """A call with these options, or with those of a variable, that ends soon in any case."""
    given = options if isinstance(options, str) else json.dumps(options)
    return f"await race([{CALLS[operation].format(given)}, sleep(1)])"


def with_role(operation: str, option: str, value: Any) -> dict[str, Any]:
    return {**({"role": "boss"} if operation == "approval" else {}), option: value}


def cases() -> Iterator[tuple[str, str, bool]]:
    """Each call with a value that is written out, the same with a computed one, and if it works."""
    for operation in CALLS:
        signature = OPERATIONS.get(operation) or GROUPS[operation]
        for option in sorted(
            signature.options | ({"key", "id"} if "queue" in signature.options else set())
        ):
            for works in (True, False):
                for value in OPTIONS[option][0 if works else 1]:
                    options = with_role(operation, option, value)
                    written = called(operation, options)
                    computed = f"let o = {json.dumps(options)}\n{called(operation, 'o')}"
                    yield written, computed, works
    for call, (good, bad) in ARGUMENTS.items():
        for works, values in ((True, good), (False, bad)):
            for value in values:
                text = json.dumps(value)
                yield call.format(text), f"let v = {text}\n{call.format('v')}", works


CASES = list(cases())
CHILD = "workflow child { return 1 }"


def refusal(text: str, make_store: MakeStore | None) -> str:
    """Why a workflow with these statements fails, on a database or in `rhythm run`; or nothing."""
    file = f"workflow main {{\n{text}\n}}\n{CHILD}"
    programs = compile_flow(file).programs_or_raise()
    if make_store is None:
        runner: Any = InProcess(programs, sqlite_in_memory)
    else:
        runner = Checkpointing(programs, make_store, file)
    status, value, _ = runner.end(runner.start("main", None, "run"))
    return "" if status == "completed" else str(value["message"])


def test_every_option_of_every_await_is_tried() -> None:
    known = {name for each in (OPERATIONS, GROUPS) for s in each.values() for name in s.options}
    assert OPTIONS.keys() == known | {"key", "id"}
    assert CALLS.keys() == (OPERATIONS.keys() | GROUPS.keys()) - {
        "sleep",
        "sleep_until",
        "completed",
    }


def short(value: Any) -> str:
    return str(value)[:60]


@pytest.mark.parametrize(("written", "computed", "works"), CASES, ids=short)
def test_the_compiler_and_rhythm_run_say_the_same(written: str, computed: str, works: bool) -> None:
    errors = compile_flow(f"workflow main {{\n{written}\n}}\n{CHILD}").errors
    assert bool(errors) is not works, errors
    assert bool(refusal(computed, None)) is not works


@sweep
def test_a_database_says_the_same(stores: Stores) -> None:
    wrong = [
        (computed[:80], said)
        for _, computed, works in CASES[:: sampled(5, 1)]
        if bool(said := refusal(computed, stores.empty_store)) is works
    ]
    assert wrong == []


def test_what_is_written_out_and_passes_runs_on_a_database(stores: Stores) -> None:
    """All that work in one workflow, since each of them may wait for a second."""
    text = "\n".join(written for written, _, works in CASES if works)
    assert refusal(text, stores.empty_store) == ""


# The other languages.

PYTHON = {
    "task": 'rhythm.run_task("nothing", {{}}, {0})',
    "workflow": 'rhythm.run_workflow("child", {{}}, {0})',
    "signal": 'rhythm.signal("go", {0})',
    "event": 'rhythm.event("paid", {0})',
    "approval": "rhythm.approval({0})",
    "all": 'rhythm.all([rhythm.run_task("nothing")], {0})',
    "any": 'rhythm.any([rhythm.run_task("nothing")], {0})',
    "race": 'rhythm.race([rhythm.run_task("nothing")], {0})',
}


@pytest.mark.parametrize("operation", PYTHON)
def test_python_refuses_the_same(operation: str, tmp_path: Path) -> None:
    signature = OPERATIONS.get(operation) or GROUPS[operation]
    for option in sorted(
        signature.options - {"settle" if operation in ("task", "workflow") else ""}
    ):
        for works, values in zip((True, False), OPTIONS[option], strict=True):
            for value in values:
                given = with_role(operation, option, value)
                keywords = ", ".join(f"{name}={value!r}" for name, value in given.items())
                call = PYTHON[operation].format(keywords)
                text = f"import rhythm\nasync def workflow():\n    await {call}\n"
                found = compiled(text, tmp_path).errors
                assert bool(found) is not works, (call[:90], found)
                assert {error.code for error in found} <= {"P034"}


STEPS: dict[str, dict[str, Any]] = {
    "task": {"type": "task", "task": "nothing"},
    "event": {"type": "wait", "event": "paid"},
    "requires": {"type": "action", "action": "block"},
}


def document(kind: str, option: str, value: Any) -> str:
    step = {"id": "a", **STEPS[kind]}
    if kind == "requires":
        step["requires"] = {"type": "approval", "role": "boss", option: value}
    else:
        step[option] = value
    return json.dumps({"workflow_id": "main", "steps": [step]})


@pytest.mark.parametrize("kind", STEPS)
def test_json_steps_refuse_the_same(kind: str) -> None:
    operation = {"requires": "approval"}.get(kind, kind)
    elsewhere = {"settle", "default", "reason"}  # what a step does not have
    for option in sorted(OPERATIONS[operation].options - elsewhere):
        for works, values in zip((True, False), OPTIONS[option], strict=True):
            for value in values:
                # null is written by leaving it out, and `${…}` only may be of another type
                if value is None or (option == "timeout" and value == 0):
                    continue
                found = compile_text(document(kind, option, value), "main.steps.json").errors
                assert bool(found) is not works, (kind, option, str(value)[:80], found)
