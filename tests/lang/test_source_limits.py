"""What a case file cannot show of the limits of a source: its size, and a mistake at the very end
of a line."""

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


def test_file_with_more_tokens_than_the_limit_is_refused_where_it_is_reached() -> None:
    limits = DEFAULT_LIMITS.replace(tokens=10)
    assert [
        (d.code, d.start) for d in compile_flow("a = [1, 2, 3, 4, 5]", limits=limits).diagnostics
    ] == [("F006", 15)]
    assert not compile_flow("a = [1, 2, 3]", limits=limits).diagnostics


def test_ways_out_through_finally_are_limited_and_branches_begin_anew() -> None:
    limits = DEFAULT_LIMITS.replace(exits=4)

    def codes_of(body: str) -> list[str]:
        nested = f"try {{ try {{\n{body}\n}} finally {{ log(1) }} }} finally {{ log(2) }}"
        return [d.code for d in compile_flow(nested, limits=limits).errors]

    two = "if (inputs.a) { return 1 }\nif (inputs.b) { return 2 }\n"
    assert codes_of(two) == []
    assert codes_of(f"{two}return 3") == ["F006"]
    assert (
        codes_of("await all([branch { return 1 }, branch { return 2 }, branch { return 3 }])") == []
    )
