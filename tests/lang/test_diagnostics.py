"""What cases of `tests/programs` cannot show: characters and sizes that do not belong in a file,
and that every code has a case."""

from __future__ import annotations

import pytest

from rhythm.lang.flow.compile import compile_flow
from rhythm.lang.flow.problems import CODES
from rhythm.limits import DEFAULT_LIMITS
from tests.support.cases import all_cases

NEED_A_REGISTRY = {"F103", "F104", "F106"}  # tests/lang/test_known.py


def test_every_code_has_a_case() -> None:
    shown = {code for case in all_cases() for code, *_ in case.diagnostics}
    assert CODES.keys() - NEED_A_REGISTRY == shown


def test_every_message_has_help() -> None:
    found = [
        (case.title, problem)
        for case in all_cases()
        for problem in compile_flow(case.text).diagnostics
    ]
    assert len(found) > 500
    assert [(title, problem.message) for title, problem in found if not problem.help] == []


def test_character_that_changes_the_reading_direction_is_refused_even_inside_text() -> None:
    [problem] = compile_flow('let x = "a\u202eb"').errors
    assert (problem.code, problem.start) == ("F003", 10)
    assert "U+202E" in problem.message


def test_text_may_hold_that_character_as_an_escape() -> None:
    assert not compile_flow('return "a\\u202eb"').errors


def test_file_over_the_limit_is_refused_before_it_is_read() -> None:
    limits = DEFAULT_LIMITS.replace(source_bytes=10)
    [problem] = compile_flow('return "é" + x', limits=limits).errors
    assert (problem.code, problem.message) == ("F006", "the file has 15 bytes; the limit is 10")


def test_reading_stops_at_the_limit_of_problems() -> None:
    limits = DEFAULT_LIMITS.replace(diagnostics=5)
    assert len(compile_flow("\n".join(f"log(x{i})" for i in range(50)), limits=limits).errors) == 5


def test_parentheses_of_a_statement_that_could_not_be_read_say_nothing_about_later_ones() -> None:
    unread, assigned = (
        "".join(f"let a{i} = (b{i}) c\n" for i in range(20)),
        "".join(f"x{i} = 1\n" for i in range(20)),
    )
    found = compile_flow(f"workflow w() {{\n{unread}{assigned}}}", "w.flow").diagnostics
    assert [d.code for d in found] == ["F001"] * 20


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('workflow a() {\n  let x = task("t", { a: "b })\n  return x\n}', ["this text never ends"]),
        ("workflow a() {\n  let x = `b ${1}\n  return x\n}", ["this template never ends"]),
        ("workflow a() {\n  /* b\n  return 1\n}", ["this comment never ends"]),
        (
            "workflow a() {\n  if (1) {\n    return `b\n",
            ["this block never ends"] * 2 + ["this template never ends"],
        ),
        ("workflow a() {\n  if (1) {\n  return 1\n}", ["this block never ends"]),
    ],
)
def test_what_follows_from_something_that_never_ends_is_not_reported(
    text: str, found: list[str]
) -> None:
    assert [each.message for each in compile_flow(text).errors] == found
