"""The language suite: every case of `tests/programs`, straight through and through JSON at every
suspension."""

from __future__ import annotations

from typing import Any

import pytest

from rhythm.lang.flow.compile import Compilation, compile_flow
from rhythm.limits import DEFAULT_LIMITS
from rhythm.vm import commands as c
from tests.support.cases import Case, all_cases
from tests.support.world import Execution, World

CASES = all_cases()


def run(case: Case, compilation: Compilation, *, through_json: bool) -> tuple[World, Execution]:
    limits = DEFAULT_LIMITS.replace(**case.settings.get("limits", {}))
    world = World(list(compilation.programs), through_json=through_json, limits=limits)
    world.decisions = list(case.settings.get("decisions", []))
    name = compilation.programs[0].name
    execution = world.run(
        name,
        case.settings.get("inputs"),
        case.settings.get("signals"),
        cancel_at=case.settings.get("cancel_at"),
    )
    return world, execution


def found(compilation: Compilation, wanted: Case) -> list[tuple[str, int, int, str]]:
    codes = {code for code, *_ in wanted.diagnostics}
    shown = [d for d in compilation.diagnostics if d.severity == "error" or d.code in codes]
    return [
        (d.code, *compilation.source.position(d.start), " ".join((d.message, d.label, *d.help)))
        for d in shown
    ]


def check_end(case: Case, world: World, execution: Execution) -> None:
    if case.failure:
        code, line, column, message = case.failure
        assert execution.status == "failed", f"ended {execution.status}: {execution.value}"
        assert (execution.value["code"], execution.program.position(execution.at)) == (
            code,
            (line, column),
        ), execution.value
        assert message in execution.value["message"]
    elif case.result == "cancelled":
        assert execution.status == "cancelled", execution.value
    else:
        assert (execution.status, execution.value) == ("completed", case.result)
        assert same_types(execution.value, case.result), (
            f"{execution.value!r} is not {case.result!r} to the type"
        )
    if "log" in case.settings:
        assert [entry.message for entry in world.log if isinstance(entry, c.Log)] == case.settings[
            "log"
        ]


def same_types(left: Any, right: Any) -> bool:
    """1, 1.0 and true are equal in Python; they are not the same JSON."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return all(same_types(left[key], right[key]) for key in left)
    return not isinstance(left, list) or all(
        same_types(a, b) for a, b in zip(left, right, strict=True)
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_program(case: Case) -> None:
    compilation = compile_flow(case.text, f"{case.file.removesuffix('.flow')}.flow")
    actual = found(compilation, case)
    expected = case.diagnostics
    assert [a[:3] for a in actual] == [e[:3] for e in expected], actual
    for got, wanted in zip(actual, expected, strict=True):
        assert wanted[3] in got[3], got
    if compilation.errors:
        return
    straight_world, straight = run(case, compilation, through_json=False)
    check_end(case, straight_world, straight)
    stored_world, stored = run(case, compilation, through_json=True)
    check_end(case, stored_world, stored)
    assert (stored.status, stored.value, stored.at, stored.turns) == (
        straight.status,
        straight.value,
        straight.at,
        straight.turns,
    )
