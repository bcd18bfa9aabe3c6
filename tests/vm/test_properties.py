"""Laws that hold for every program, tried on generated ones (`tests.support.generate`).

`RHYTHM_EXAMPLES=2000 pytest tests/vm/test_properties.py` tries more of them, and other ones each
time.
"""

from __future__ import annotations

import os
import random
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from rhythm.ir.program import Program
from rhythm.lang.flow import nodes
from rhythm.lang.flow.compile import compile_flow
from rhythm.lang.flow.format import format_source
from rhythm.lang.flow.grammar.parser import Parser
from rhythm.lang.flow.lexer import Lexer
from rhythm.lang.flow.problems import Problems
from rhythm.lang.source import render_all
from rhythm.limits import DEFAULT_LIMITS
from rhythm.vm import interpreter
from rhythm.vm.snapshot import encode_snapshot
from tests.support.generate import programs
from tests.support.length import sampled, sweep
from tests.support.reference import Expected
from tests.support.world import Execution, World

EXAMPLES = os.environ.get("RHYTHM_EXAMPLES")
law = settings(
    max_examples=int(EXAMPLES or sampled(12, 150)),
    derandomize=not EXAMPLES,
    database=None,
    # making a failing program small takes minutes
    phases=(Phase.generate, Phase.shrink) if EXAMPLES else (Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
pytestmark = sweep
PLACES = {"start", "end", "op_start", "name_start", "name_end"}


def compiled(text: str) -> list[Program]:
    compilation = compile_flow(text)
    assert not compilation.errors, (
        render_all(compilation.source, compilation.errors) + "\n\n" + text
    )
    return list(compilation.programs)


def ending(execution: Execution) -> Expected:
    return Expected(
        execution.status,
        execution.value["code"] if execution.status == "failed" else execution.value,
    )


def run(text: str, **how: Any) -> Execution:
    found = compiled(text)
    return World(found, **how).run(found[0].name)


@law
@given(programs())
def test_result_is_the_reference_s(case: tuple[str, Expected]) -> None:
    text, expected = case
    assert repr(ending(run(text))) == repr(expected)  # as text: 1, 1.0 and true are equal in Python


@law
@given(programs())
def test_result_is_the_same_through_json_at_every_suspension(case: tuple[str, Expected]) -> None:
    text, expected = case
    straight, stored = run(text), run(text, through_json=True)
    assert repr(ending(stored)) == repr(expected)
    assert (stored.value, stored.at, stored.turns) == (straight.value, straight.at, straight.turns)


@law
@given(programs())
def test_result_does_not_depend_on_the_order_in_which_tasks_end(case: tuple[str, Expected]) -> None:
    text, expected = case
    for seed in range(3):
        assert repr(ending(run(text, shuffle=seed))) == repr(expected)


@law
@given(programs())
def test_result_is_the_same_when_every_instruction_is_a_turn_of_its_own(
    case: tuple[str, Expected],
) -> None:
    text, expected = case
    with mock.patch.object(interpreter, "CHUNK", 1):
        ended = run(text, through_json=True, limits=DEFAULT_LIMITS.replace(turn_instructions=1))
    assert repr(ending(ended)) == repr(expected)
    assert ended.turns > 1


@law
@given(programs())
def test_result_is_the_same_wherever_the_time_of_a_turn_is_over(case: tuple[str, Expected]) -> None:
    text, expected = case
    for seed in range(3):
        chance = random.Random(seed)
        with mock.patch.object(interpreter, "CHUNK", 1):
            assert repr(
                ending(
                    run(text, through_json=True, over=lambda chance=chance: chance.random() < 0.3)
                )
            ) == repr(expected)


class Recording(World):
    """Keeps the bytes of every snapshot that a turn left behind."""

    def turn(self, e: Execution) -> None:
        super().turn(e)
        self.__dict__.setdefault("bytes", []).append((e.id, encode_snapshot(e.snapshot)))


@law
@given(programs())
def test_same_inputs_give_the_same_snapshots_and_commands(case: tuple[str, Expected]) -> None:
    found = compiled(case[0])
    first, second = Recording(found), Recording(compiled(case[0]))
    first.run(found[0].name)
    second.run(found[0].name)
    assert first.__dict__["bytes"] == second.__dict__["bytes"]
    assert first.commands == second.commands


def tree(text: str) -> Any:
    problems = Problems(DEFAULT_LIMITS.diagnostics)
    file = Parser(
        text, Lexer(text, problems, DEFAULT_LIMITS).run(), problems, DEFAULT_LIMITS, "workflow"
    ).parse_file()
    assert not problems.errors
    return without_places(file)


def without_places(value: Any) -> Any:
    if isinstance(value, nodes.Node):
        return type(value).__name__, {
            name: without_places(item)
            for name, item in value.__dict__.items()
            if name not in PLACES
        }
    return [without_places(item) for item in value] if isinstance(value, tuple) else value


@law
@given(programs())
def test_formatting_changes_neither_the_program_nor_what_is_formatted(
    case: tuple[str, Expected],
) -> None:
    text, _ = case
    formatted = format_source(text)
    assert repr(tree(formatted)) == repr(tree(text))
    assert format_source(formatted) == formatted


@pytest.mark.parametrize("text", ["return 1 + 2 * 3", "return (1 + 2) * 3"])
def test_trees_that_differ_are_seen_to_differ(text: str) -> None:
    assert tree(text) != tree("return 1 * 2 + 3")
