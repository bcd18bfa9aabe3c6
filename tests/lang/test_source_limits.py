"""What a case file cannot show of the limits of a source: its size, and a mistake at the very end of a line."""

from __future__ import annotations

from rhythm.lang.flow.compile import compile_flow
from rhythm.limits import DEFAULT_LIMITS


def codes(text: str) -> list[tuple[str, int]]:
    return [(d.code, d.start) for d in compile_flow(text).errors]


def test_a_source_of_exactly_the_limit_compiles() -> None:
    text = "return 1 //"
    assert codes(text.ljust(DEFAULT_LIMITS.source_bytes, "x")) == []


def test_a_source_over_the_limit_is_one_problem() -> None:
    assert codes("return oops //".ljust(DEFAULT_LIMITS.source_bytes + 1, "x")) == [("F006", 0)]


def test_the_bytes_of_a_source_count_and_not_its_characters() -> None:
    assert codes("return 1 //".ljust(DEFAULT_LIMITS.source_bytes - 5, "é")) == [("F006", 0)]


def test_a_backslash_at_the_end_of_a_line_belongs_to_the_text_that_never_ends() -> None:
    assert codes('let a = "b\\\nreturn a') == [("F002", 8)]
