"""Filters: what is printed is read as what was printed, whatever is in it; every mistake is told with
its place; and what is completed can be read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rhythm.filters.complete import complete
from rhythm.filters.fields import FIELDS, STATUSES, refuse_line_of_several, refuse_without_index
from rhythm.filters.parse import parse_filter, term_of
from rhythm.filters.terms import (
    DAY_US,
    EVERYTHING,
    LATEST_US,
    MS,
    ExecutionFilter,
    FilterError,
    Term,
)
from rhythm.limits import TEXTS

HUNDRED_YEARS_MS = 100 * 366 * 86_400_000
LATEST_TIME_US = LATEST_US - DAY_US

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
odd = st.text(' "\\,:=<>.-é\u202e\x1b\n\t', max_size=8)
words = st.one_of(texts, odd)
times = st.one_of(
    st.integers(0, LATEST_TIME_US),
    st.integers(0, LATEST_TIME_US // DAY_US).map(lambda day: day * DAY_US),
)
FEW = st.lists(words.filter(bool), min_size=1, max_size=4, unique=True).map(tuple)


@st.composite
def spans(draw: Any) -> dict[str, int | None]:
    after, before = draw(st.none() | times), draw(st.none() | times)
    if after is None and before is None:
        after = 0
    if after is not None and before is not None:
        after, before = min(after, before), max(after, before) + (after == before)
    return {"after": after, "before": None if before is None else max(before, 1)}


def terms_of(name: str) -> st.SearchStrategy[Term]:
    field = FIELDS[name]
    negative = st.booleans() if field.may_negate else st.just(False)
    match field.kind:
        case "status":
            values = st.lists(st.sampled_from(STATUSES), min_size=1, unique=True).map(tuple)
            return st.builds(Term, st.just(name), values=values, negative=negative)
        case "number":
            lines = st.integers(1, 9_999_999).map(str)
            values = st.lists(lines, min_size=1, max_size=3, unique=True).map(tuple)
            return st.builds(Term, st.just(name), values=values)
        case "length":
            op = st.just("over") if name == "stuck" else st.sampled_from(["over", "under"])
            us = st.integers(0, HUNDRED_YEARS_MS).map(lambda ms: ms * MS)
            return st.builds(Term, st.just(name), op, us=us)
        case "span":
            return spans().map(lambda span: Term(name, "within", **span))
        case "beginning":
            return st.builds(Term, st.just(name), values=FEW)
    may_be_empty = st.lists(words, min_size=1, max_size=4, unique=True).map(tuple)
    own = words.filter(bool) if name == "attr" else st.just("")
    return st.builds(Term, st.just(name), values=may_be_empty, name=own, negative=negative)


@st.composite
def filters(draw: Any) -> ExecutionFilter:
    terms = draw(st.lists(st.sampled_from(list(FIELDS)).flatmap(terms_of), max_size=8))
    return ExecutionFilter(tuple({(t.field, t.name, t.negative): t for t in terms}.values()))


@given(filters())
def test_what_is_printed_is_read_as_what_it_was(wanted: ExecutionFilter) -> None:
    text = str(wanted)
    if len(text) <= TEXTS.filter:
        assert parse_filter(text) == wanted
        assert str(parse_filter(f"\t {text}\n ")) == text


@given(st.text(max_size=60) | odd)
def test_any_text_is_read_or_refused_with_a_place_in_it(text: str) -> None:
    try:
        read = parse_filter(text)
    except FilterError as problem:
        place, told = problem.at, problem.text
    else:
        assert parse_filter(str(read)) == read
        return
    assert 0 <= place <= len(text)
    assert told == text


@given(st.lists(st.sampled_from([*FIELDS, "attr.n", ":", "=", ">", "failed", '"', ",", " ", "-"])))
def test_any_pieces_of_filters_are_read_or_refused(pieces: list[str]) -> None:
    test_any_text_is_read_or_refused_with_a_place_in_it.hypothesis.inner_test("".join(pieces))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("status:failed workflow:order attr.customer=acme age>2h", None),
        ("  status=failed\n attr.customer:acme ", "status:failed attr.customer=acme"),
        ("status:failed,cancelled,failed", "status:failed,cancelled"),
        ("-status:completed -workflow:tick", None),
        ('workflow:"my flow","a,b"', None),
        ('error:"plain"', "error:plain"),
        ('attr."two words"="a \\"b\\" \\\\ c"', None),
        ('attr.note=""', None),
        ("attr.url=https://x/?a=b", None),
        ("age>90m", "age>1h30m"),
        ("age<0.5s", "age<500ms"),
        ("age>PT15M", "age>15m"),
        ("age>7d", None),
        ("finished:2026-11-18", None),
        ("finished:2026-11-18..2026-11-18", "finished:2026-11-18"),
        ("finished:2026-11-18..2026-11-19", None),
        ("created:2026-11-18..", None),
        ("created:..2026-11-18", None),
        ("created:2026-11-18T08:00+01:00..", "created:2026-11-18T07:00:00Z.."),
        ("created:..2026-11-19T00:00Z", "created:..2026-11-18"),
        ("workflow:a line:042,7", "workflow:a line:42,7"),
        ("id:ord- key:invoice-17 started_by:schedule:nightly", None),
        ("queue:mail version:3f2a stuck>1h", None),
    ],
)
def test_filter_has_one_canonical_text(text: str, canonical: str | None) -> None:
    expected = text if canonical is None else canonical
    assert str(parse_filter(text)) == expected
    assert str(parse_filter(expected)) == expected


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        (
            "stauts:failed",
            1,
            "there is no field `stauts`; did you mean `status`, as in status:failed?",
        ),
        ("a=1 name:x", 1, "there is no field `a`; there are status, workflow"),
        ("status:failed name:order", 15, "did you mean `workflow`"),
        ("status:faild", 8, "there is no status `faild`; did you mean `failed`?"),
        ("status:x", 8, "it is one of pending, running"),
        ("acme", 1, "`acme` is no term: write FIELD:VALUE, such as status:failed"),
        ("status", 7, "`:` and a value are missing, as in status:failed"),
        ("status:", 8, "a value is missing here, as in status:failed"),
        ("status: failed", 8, "a value is missing here"),
        ("status:failed,", 15, "a value is missing here"),
        ("status:failed status:paused", 15, "`status:failed` says something about this already"),
        ("attr.a=1 attr.a=2", 10, "says something about this already"),
        ("attr:acme", 1, "say which attribute: attr.customer=acme"),
        ("attr.=acme", 6, "the name of the attribute is missing"),
        ("attr.customer", 14, "`:` and a value are missing, as in attr.customer=acme"),
        ("status>2h", 7, "`status` is written with :"),
        ("age:2h", 4, "`age` is written with > or <: age>2h"),
        ("age>=2h", 4, "there is no sign `>=`"),
        ("attr.n:=5", 7, "there is no sign `:=`"),
        ("stuck<2h", 6, "it is written with >: stuck>1h"),
        ("age>2 hours", 5, '"2" is not a duration'),
        ("age>1h,2h", 7, "`age` has one value"),
        ("finished:yesterday", 10, "`yesterday` is no span: write a day (2026-11-18)"),
        ("finished:2026-02-30", 10, "`2026-02-30` is no day"),
        ("finished:2026-11-18T08:00..", 10, "no time with its zone"),
        ("finished:2026-11-19..2026-11-18", 10, "ends before it begins"),
        ("finished:..", 10, "has a beginning or an end"),
        ("created:0001-01-01..", 9, "is not between 1970 and 9999"),
        ("created:..9999-12-31", 11, "is not between 1970 and 9999"),
        ("-age>2h", 1, "`age` cannot be negated; these can: status"),
        ('workflow:"a', 10, "the closing quote is missing"),
        ('workflow:"a"b', 13, "after the closing quote comes a space or a comma"),
        ('workflow:a"b', 11, "stands in quotes itself"),
        ('workflow:"a\\n"', 12, 'a \\ stands before " or \\ only'),
        ("line:0", 6, "`0` is no line"),
        ("line:x", 6, "`x` is no line"),
        ('id:""', 4, "`id` needs a beginning"),
        ("workflow:" + "x" * 601, 10, "at most 600 bytes"),
        ("workflow:a\0b", 10, "NUL"),
        ("workflow:\ud800", 10, "surrogate"),
        ("x" * 2001, 2001, "at most 2,000 are read"),
        ("workflow:" + ",".join(map(str, range(21))), 60, "at most 20 values"),
        (" ".join(f"attr.a{n}=1" for n in range(21)), 211, "at most 20 terms"),
        ("or", 1, "`or` is no term"),
        ("(status:failed)", 1, "there is no field `(status`; did you mean `status`"),
        (":x", 1, "there is no field ``"),
        ('"x"', 1, '`"` is no term'),
    ],
)
def test_mistake_is_told_with_its_place_and_what_to_do(text: str, at: int, says: str) -> None:
    with pytest.raises(FilterError) as found:
        parse_filter(text)
    assert says in str(found.value)
    assert f"at character {at}:" in str(found.value)


def test_filter_that_is_no_text_is_refused() -> None:
    with pytest.raises(FilterError, match="a filter is a text, not 5"):
        parse_filter(5)


@pytest.mark.parametrize(
    "text",
    [
        "version:3f",
        "queue:mail",
        "-workflow:tick",
        "-attr.a=1 -error:X",
        "queue:mail version:3f",
    ],
)
def test_filter_that_no_index_answers_is_refused(text: str) -> None:
    with pytest.raises(FilterError, match="alone would read every execution: add a term"):
        refuse_without_index(parse_filter(text))


@pytest.mark.parametrize("text", ["line:4", "line:4 status:failed", "line:4 workflow:a,b"])
def test_line_needs_the_workflow_whose_line_it_is(text: str) -> None:
    with pytest.raises(FilterError, match="`line:4` needs the workflow whose source"):
        refuse_line_of_several(parse_filter(text))


@pytest.mark.parametrize("name", [name for name, field in FIELDS.items() if field.alone])
def test_field_with_an_index_may_stand_alone(name: str) -> None:
    wanted = parse_filter(FIELDS[name].example)
    refuse_without_index(wanted)
    refuse_without_index(wanted.joined(*parse_filter("queue:mail -workflow:tick").terms))


def test_filter_without_terms_and_statuses_that_it_leaves_are_searches() -> None:
    refuse_without_index(EVERYTHING)
    refuse_without_index(parse_filter("-status:completed"))


def test_term_given_apart_is_one_of_the_filter_and_is_given_once() -> None:
    given = parse_filter("status:failed").joined(term_of("workflow", ["a, b"]))
    assert str(given) == 'status:failed workflow:"a, b"'
    with pytest.raises(ValueError, match="`status` is given twice, as status:paused and in the"):
        given.joined(term_of("status", ["paused"]))
    with pytest.raises(FilterError, match="there is no status `x`"):
        term_of("status", ["x"])


NAMES = {"workflow": ["order", "order line", "refund"], "queue": ["mail"]}


@pytest.mark.parametrize(
    ("begun", "offered"),
    [
        ("stat", ["status:"]),
        ("st", ["status:", "started_by:", "stuck>"]),
        ("age", ["age>", "age<"]),
        ("at", ["attr."]),
        ("-q", ["-queue:"]),
        ("-ag", []),
        ("status:f", ["status:failed"]),
        ("status:failed,c", ["status:failed,completed", "status:failed,cancelled"]),
        (
            "status:failed workflow:o",
            ["status:failed workflow:order", 'status:failed workflow:"order line"'],
        ),
        ("workflow:order,", ['workflow:order,"order line"', "workflow:order,refund"]),
        ("-workflow:r", ["-workflow:refund"]),
        ('workflow:"order l', []),
        ("nothing:x", []),
        ("error:", []),
    ],
)
def test_last_word_is_completed(begun: str, offered: list[str]) -> None:
    assert complete(begun, lambda field: NAMES.get(field, ())) == offered


@given(st.lists(words.filter(bool), min_size=1, max_size=3, unique=True))
def test_completed_value_can_be_read(names: list[str]) -> None:
    for text in complete("status:failed workflow:", lambda field: names):
        assert parse_filter(text).of("workflow") in [term_of("workflow", [n]) for n in names]


def test_every_field_is_offered_and_has_an_example_that_is_canonical() -> None:
    offered = complete("")
    for name, field in FIELDS.items():
        assert any(text.startswith(name) for text in offered)
        assert str(parse_filter(field.example)) == field.example
