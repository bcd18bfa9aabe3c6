"""Stored programs: everything comes back as it was, and what is damaged or newer is refused in
words."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from rhythm.errors import InvalidProgram
from rhythm.ir import instructions as ir
from rhythm.ir.codec import decode_program, dump_program, encode_program, load_program
from rhythm.ir.instructions import IR_VERSION
from rhythm.ir.program import Program
from rhythm.ir.verify import verify
from rhythm.limits import Limits
from rhythm.record import Record
from rhythm.vm.interpreter import Continue, Suspended, advance
from rhythm.vm.machine import Inputs, Outcome, Signal
from rhythm.vm.snapshot import Snapshot, decode_snapshot, encode_snapshot
from tests.ir.samples import EXPRESSIONS, HANDLERS, INSTRUCTIONS, OPERANDS, ORDER, compiled

EVERYTHING = Program(
    name="every",
    language="flow",
    version="v",
    code=(*INSTRUCTIONS, *(ir.Set("x", e) for e in EXPRESSIONS), *(ir.Start(o) for o in OPERANDS)),  # type: ignore[arg-type]
    handlers=HANDLERS,
    branches=(3, 4),
    options={"queue": "q", "on": ["a"]},
    file="every.flow",
    lines=(0, 5, 9),
)


def classes_of_the_ir() -> set[type[Record]]:
    return {
        cls
        for cls in vars(ir).values()
        if isinstance(cls, type) and issubclass(cls, Record) and cls._fields
    }


def classes_in(value: Any) -> set[type[Record]]:
    if isinstance(value, tuple):
        return {cls for item in value for cls in classes_in(item)}
    if isinstance(value, Record):
        return {type(value)} | classes_in(tuple(value.__dict__.values()))
    return set()


def test_the_sample_holds_every_class_of_the_instruction_set() -> None:
    assert classes_of_the_ir() - classes_in(EVERYTHING) == set()


def test_every_instruction_and_expression_comes_back_as_it_was() -> None:
    assert load_program(dump_program(EVERYTHING)) == EVERYTHING


@pytest.mark.parametrize(
    "record", [*INSTRUCTIONS, *EXPRESSIONS, *OPERANDS], ids=lambda r: type(r).__name__
)
def test_each_alone_comes_back_with_its_defaults(record: Any) -> None:
    least = record.replace(
        **{
            name: getattr(type(record), name)
            for name in record._fields
            if hasattr(type(record), name)
        }
    )
    instruction = least if isinstance(least, ir.Instruction) else ir.Start(least)
    assert load_program(dump_program(EVERYTHING.replace(code=(instruction,)))).code == (
        instruction,
    )


def test_a_program_has_one_text() -> None:
    text = dump_program(compiled(ORDER))
    assert dump_program(load_program(text)) == text
    assert "\n" not in text


def refusal(load: Callable[[], object]) -> str:
    with pytest.raises(InvalidProgram) as refused:
        load()
    return str(refused.value)


def test_a_program_of_a_newer_version_is_refused_with_what_to_do() -> None:
    data = {**encode_program(EVERYTHING), "ir": IR_VERSION + 1}
    assert (
        refusal(lambda: decode_program(data))
        == "program 'every' has IR version 3, this Rhythm knows up to 2: upgrade the worker"
    )


def test_a_newer_program_is_refused_as_newer_whatever_else_is_in_it() -> None:
    assert "upgrade the worker" in refusal(
        lambda: decode_program({"ir": 99, "code": [{"is": "teleport"}]})
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"code": [{"is": "teleport"}]}, "it holds 'teleport', which this Rhythm does not know"),
        ({"code": [{"value": 1}]}, "it holds None, which"),
        ({"code": [{"is": ["set"]}]}, "it holds ['set'], which"),
        ({"code": [{"is": "jump"}]}, "`jump` has the fields ; it takes to, at"),
        (
            {"code": [{"is": "jump", "to": 0, "far": 1}]},
            "`jump` has the fields to, far; it takes to, at",
        ),
        ({"code": [{"is": "jump", "to": "0"}]}, "`to` of jump cannot be '0'"),
        ({"code": [{"is": "jump", "to": True}]}, "`to` of jump cannot be True"),
        (
            {"code": [{"is": "set", "name": "x", "value": {"is": "jump", "to": 0}}]},
            "`value` of set cannot be Jump(",
        ),
        ({"code": [{"is": "local", "name": "x"}]}, "`code` of program cannot be (Local("),
        ({"code": 5}, "`code` of program cannot be 5"),
        ({"handlers": [{"is": "jump", "to": 0}]}, "`handlers` of program cannot be (Jump("),
        ({"lines": []}, "`lines` is empty"),
        ({"lines": [0, "1"]}, "`lines` of program cannot be"),
        ({"branches": [None]}, "`branches` of program cannot be"),
        ({"options": []}, "`options` of program cannot be"),
        ({"name": None}, "`name` of program cannot be None"),
        ({"ir": "1"}, "`ir` is '1'"),
        ({"ir": 0}, "`ir` is 0"),
        ({"ir": True}, "`ir` is True"),
    ],
)
def test_damage_is_named(change: dict[str, Any], message: str) -> None:
    told = refusal(lambda: decode_program({**encode_program(EVERYTHING), **change}))
    assert told.startswith("not a stored program: ")
    assert message in told


@pytest.mark.parametrize(
    "missing",
    [
        "ir",
        "name",
        "language",
        "version",
        "file",
        "options",
        "lines",
        "branches",
        "handlers",
        "code",
    ],
)
def test_a_program_without_one_of_its_parts_is_refused(missing: str) -> None:
    data = encode_program(EVERYTHING)
    del data[missing]
    assert refusal(lambda: decode_program(data)) == f"not a stored program: KeyError: '{missing}'"


@pytest.mark.parametrize(
    "text", ["", "{", "[1,", "nope", b"\xff\xfe", '{"ir":1', "[" * 100_000, '{"a":' * 100_000]
)
def test_what_is_not_json_is_refused_as_such(text: str | bytes) -> None:
    assert refusal(lambda: load_program(text)).startswith("not JSON: ")


@pytest.mark.parametrize("text", ["null", "1", '"text"', "[]", "{}"])
def test_json_that_is_no_program_is_refused(text: str) -> None:
    assert refusal(lambda: load_program(text)).startswith("not a stored program: ")


def test_a_program_nested_too_deep_is_refused() -> None:
    deep: Any = {"is": "const", "value": 1}
    for _ in range(300):
        deep = {"is": "unary", "op": "!", "value": deep}
    data = {
        **encode_program(EVERYTHING),
        "handlers": [],
        "branches": [],
        "code": [{"is": "return", "value": deep}],
    }
    assert "deep" in refusal(lambda: verify(decode_program(data)))


# Mutations: whatever happens to a stored program, it is refused, or it runs without ever making
# `advance` raise.

LIMITS = Limits(turn_instructions=500, statement_work=20_000, lifetime_instructions=5_000)
INPUTS = {
    "id": "o1",
    "total": 3,
    "items": [{"skip": False, "big": True}, {"skip": True, "big": False}],
}


def places(data: Any, found: list[tuple[Any, Any]] | None = None) -> list[tuple[Any, Any]]:
    """Every container and key in it, of JSON data."""
    found = [] if found is None else found
    if isinstance(data, dict | list):
        for key in list(data) if isinstance(data, dict) else range(len(data)):
            found.append((data, key))
            places(data[key], found)
    return found


def mutate(data: Any, chance: random.Random) -> None:
    """Drops, replaces, swaps or doubles something in the data."""
    container, key = chance.choice(places(data))
    action = chance.choice(["drop", "replace", "replace", "number", "swap", "swap", "double"])
    if action == "drop":
        del container[key]
    elif action == "replace":
        container[key] = chance.choice(
            [
                None,
                True,
                -1,
                0,
                7,
                2**70,
                1.5,
                "",
                "x",
                "$m",
                "$for2",
                "inputs",
                [],
                {},
                [[]],
                float("nan"),
            ]
        )
    elif action == "number" and type(container[key]) is int:
        container[key] = max(0, container[key] + chance.choice([-3, -2, -1, 1, 2, 3]))
    elif action == "double" and isinstance(container, list):
        container.insert(key, copy.deepcopy(container[key]))
    elif action == "double":
        container[f"{key}2"] = container[key]
    else:
        other, its_key = chance.choice(
            [place for place in places(data) if type(place[0][place[1]]) is type(container[key])]
        )
        container[key], other[its_key] = (
            copy.deepcopy(other[its_key]),
            copy.deepcopy(container[key]),
        )


def drive(program: Program, chance: random.Random) -> None:
    """Runs the program and its branches for a while, whatever comes back from outside."""
    executions = [Snapshot()]
    executions += [
        Snapshot(entry, {name: [1] for name in captures_of(program, n)})
        for n, entry in enumerate(program.branches)
    ]
    for snapshot in executions:
        drive_one(program, snapshot, chance)


def captures_of(program: Program, branch: int) -> tuple[str, ...]:
    stack: list[Any] = [program.code]
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Branch) and node.entry == branch:
            return node.captures
        if isinstance(node, tuple):
            stack += node
        elif isinstance(node, Record):
            stack += node.__dict__.values()
    return ()


def drive_one(program: Program, snapshot: Snapshot, chance: random.Random) -> None:
    outcomes: dict[int, Outcome] = {}
    for _ in range(25):
        signals = [Signal("s1", "ready", {"ok": True}, 1.0)] if chance.random() < 0.3 else []
        inputs = Inputs(
            "2026-11-15T09:00:00Z",
            "seed",
            INPUTS,
            {"id": "run"},
            outcomes,
            signals,
            cancel=chance.random() < 0.05,
        )
        turn = advance(program, snapshot, inputs, LIMITS)
        if not isinstance(turn, Suspended | Continue):
            return
        snapshot = decode_snapshot(encode_snapshot(turn.snapshot))
        for n in range(1, snapshot.next_child):
            if n not in outcomes and chance.random() < 0.6:
                failure = {"code": "TaskFailed", "message": "no", "data": None}
                value = chance.choice([None, {"status": "ok"}, ["a"], 5])
                outcomes[n] = chance.choice(
                    [
                        Outcome("completed", value, n),
                        Outcome("failed", failure, n),
                        Outcome("cancelled", None, n),
                    ]
                )


def accepted(text: str) -> Program | None:
    """The program if it is one that may run; None if it is refused, and nothing else."""
    try:
        return verify(load_program(text))
    except InvalidProgram:
        return None


@pytest.mark.parametrize("seed", range(10))
def test_a_mutated_program_is_refused_or_runs_without_a_raise(seed: int) -> None:
    chance = random.Random(seed)
    text = dump_program(compiled(ORDER))
    ran = 0
    for _ in range(50):
        data = json.loads(text)
        for _ in range(chance.choice([1, 1, 2])):
            mutate(data, chance)
        program = accepted(json.dumps(data))
        if program:
            ran += 1
            drive(program, chance)
    assert 0 < ran < 50, "the mutations are too wild or too tame to show anything"
