"""The check of inputs against a JSON Schema: its words, its bounds, and hostile schemas."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rhythm.errors import InvalidInputs
from rhythm.ir.input_schema import (
    MAX_DEPTH,
    MAX_PARTS,
    DeclaredInputs,
    InvalidSchema,
    WrongValue,
    _hashable,
    check_inputs,
    fitted,
    words_taken,
)

TEXT = {"type": "string"}
ITEM = {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}
ORDER = {
    "type": "object",
    "properties": {
        "order": {
            "type": "object",
            "properties": {"items": {"type": "array", "items": ITEM}},
            "required": ["items"],
            "additionalProperties": False,
        },
        "size": {"enum": ["s", "l"], "default": "s"},
        "wait": {"type": ["number", "string"], "format": "duration", "default": 60},
        "either": {"anyOf": [{"type": "integer"}, TEXT, {"type": "null"}], "default": None},
        "pair": {"type": "array", "prefixItems": [TEXT, TEXT], "default": ["a", "b"]},
    },
    "required": ["order"],
    "additionalProperties": False,
}


def property_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"value": schema}}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            None,
            "workflow `w` also needs the input `order`; it takes order, size, wait, either, pair",
        ),
        (
            [1],
            "the inputs of workflow `w` must be an object, not a list; it takes order, size, wait",
        ),
        ({"oder": 1}, "workflow `w` has no input `oder`; did you mean `order`?"),
        ({"frobnicate": 1}, "has no input `frobnicate`; it takes order, size"),
        ({"order": "x"}, "the input `order` of workflow `w` must be an object, not text"),
        ({"order": {}}, "the input `order` of workflow `w` also needs `items`"),
        (
            {"order": {"items": [], "itms": 1}},
            "has `itms`, which is not known; did you mean `items`?",
        ),
        (
            {"order": {"items": [{"price": 1}, {"price": 2}, {"price": "3"}]}},
            "the input `order.items[2].price` of workflow `w` must be a number, not text",
        ),
        (
            {"order": {"items": [{}]}},
            "the input `order.items[0]` of workflow `w` also needs `price`",
        ),
        (
            {"order": {"items": []}, "size": "m"},
            '`size` of workflow `w` must be one of "s", "l", not "m"',
        ),
        ({"order": {"items": []}, "size": 1}, "`size` of workflow `w` must be one of"),
        ({"order": {"items": []}, "wait": "soon"}, "must be a duration: seconds, or text"),
        ({"order": {"items": []}, "either": 1.5}, "must be a whole number, not 1.5"),
        ({"order": {"items": []}, "either": []}, "must be a number or text or null, not a list"),
        (
            {"order": {"items": []}, "pair": ["a"]},
            "`pair` of workflow `w` must be a list of 2, not of 1",
        ),
        (
            {"order": {"items": []}, "pair": ["a", 1]},
            "the input `pair[1]` of workflow `w` must be text, not a number",
        ),
    ],
)
def test_refusal_says_where_and_what(given: Any, problem: str) -> None:
    with pytest.raises(InvalidInputs) as refused:
        check_inputs("w", ORDER, given)
    assert problem in str(refused.value)


def test_defaults_are_filled_in_and_formats_are_kept_in_one_form() -> None:
    kept = check_inputs("w", ORDER, {"order": {"items": []}, "wait": "1h30m"})
    assert kept == {
        "order": {"items": []},
        "size": "s",
        "wait": 5400,
        "either": None,
        "pair": ["a", "b"],
    }


def test_the_given_inputs_are_not_changed() -> None:
    inputs = {"order": {"items": [{"price": 1}]}, "wait": "1h"}
    check_inputs("w", ORDER, inputs)
    assert inputs == {"order": {"items": [{"price": 1}]}, "wait": "1h"}


def test_long_texts_and_names_are_cut_in_messages() -> None:
    for inputs in ({"order": "x", "size": "m" * 5000}, {"k" * 5000: 1}):
        with pytest.raises(InvalidInputs) as refused:
            check_inputs("w", ORDER, inputs)
        assert len(str(refused.value)) < 300


def test_a_schema_that_says_nothing_allows_anything() -> None:
    assert check_inputs("w", {}, [1]) == [1]
    assert check_inputs("w", property_of({}), {"value": object}) == {"value": object}
    assert fitted({"default": 1}, "x") == "x"


@pytest.mark.parametrize(
    "schema",
    [
        [], "x", {"type": "strng"}, {"type": [5]}, {"type": {}}, {"anyOf": []}, {"anyOf": {}},
        {"enum": []}, {"enum": "ab"}, {"type": "object", "properties": []}, {"type": []},
        {"type": "object", "required": "ab"}, {"type": "object", "properties": {"a": 1}},
        {"type": "array", "items": 5}, {"type": "array", "prefixItems": []},
        {"type": "object", "x-positional": 5}, {"type": "object", "additionalProperties": 5},
    ],
)  # fmt: skip
def test_what_is_no_schema_is_refused(schema: Any) -> None:
    with pytest.raises(InvalidSchema):
        DeclaredInputs(schema)


def test_a_schema_is_bounded_in_depth_and_size() -> None:
    deep: dict[str, Any] = {}
    for _ in range(MAX_DEPTH + 2):
        deep = {"type": "array", "items": deep}
    wide = {"anyOf": [TEXT] * (MAX_PARTS + 1)}
    for schema in (deep, wide, {"enum": list(range(MAX_PARTS + 1))}):
        with pytest.raises(InvalidSchema, match="at most 2,000 parts"):
            DeclaredInputs(property_of(schema))


@pytest.mark.long
def test_the_work_of_a_check_is_bounded() -> None:
    schema: dict[str, Any] = {
        "type": "array",
        "items": {"anyOf": [*[{"type": "array", "items": TEXT}] * 500, {"type": "array"}]},
    }
    with pytest.raises(InvalidInputs, match="too large to be checked"):
        check_inputs("w", property_of(schema), {"value": [[1]] * 100_000})


def test_unions_inside_unions_meet_each_part_of_a_value_once() -> None:
    """A schema is a tree: nothing is tried again and again, however deep the value is."""
    schema: dict[str, Any] = TEXT
    value: Any = 1
    for _ in range(8):
        schema = {"anyOf": [{"type": "array", "items": schema} for _ in range(2)]}
        value = [value]
    spent: list[int] = []
    with pytest.raises(InvalidInputs):
        DeclaredInputs(property_of(schema)).check("w", {"value": value}, spent.append)
    assert sum(spent) < 20 * DeclaredInputs(property_of(schema)).parts


def test_large_inputs_that_are_allowed_are_checked_within_the_work_of_a_statement() -> None:
    rows = [{"price": n} for n in range(75_000)]  # a payload of a megabyte
    assert check_inputs("w", ORDER, {"order": {"items": rows}})["order"]["items"] == rows
    texts = property_of({"type": "array", "items": TEXT})
    assert check_inputs("w", texts, {"value": ["x"] * 250_000})


def test_deep_values_are_not_walked_further_than_the_schema_says() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    assert check_inputs("w", property_of({"type": "array"}), {"value": value})
    for schema in (TEXT, {"enum": ["a", [1]]}, {"type": "array", "uniqueItems": True}):
        with pytest.raises(InvalidInputs):
            check_inputs("w", property_of(schema), {"value": [value]})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, 1.0]) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
KEYS = st.sampled_from(
    "type enum anyOf items prefixItems uniqueItems properties required additionalProperties "
    "default format x-positional".split()
)
TYPES = st.sampled_from("null boolean integer number string array object".split())
SCHEMAS = st.recursive(
    st.just({}) | st.builds(lambda name: {"type": name}, TYPES),
    lambda inner: st.dictionaries(KEYS, inner | TYPES | st.lists(inner, max_size=2) | JSON, max_size=4),
    max_leaves=8,
)  # fmt: skip


@given(SCHEMAS, JSON)
def test_whatever_the_schema_and_the_value_are_the_answer_is_a_value_or_a_refusal(
    schema: Any, value: Any
) -> None:
    try:
        kept = fitted(schema, value)
    except (InvalidSchema, WrongValue):
        return
    assert exact_twice(schema, kept)


def exact_twice(schema: Any, kept: Any) -> bool:
    """A default that does not fit may be there: then what is kept is refused."""
    try:
        return bool(fitted(schema, kept) == kept)
    except WrongValue:
        return "default" in str(schema)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({}, set()),
        (TEXT, {"text"}),
        ({"type": "integer"}, {"a number"}),
        ({"type": ["number", "string"], "format": "duration"}, {"a number", "text"}),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, {"true or false", "null"}),
        ({"enum": [1, "a"]}, {"a number", "text"}),
        ({"type": "object", "properties": {"a": {}}}, {"an object"}),
    ],
)
def test_the_types_that_may_fit_are_known(schema: Any, words: set[str]) -> None:
    assert words_taken(schema) == words


def _colliding_pairs(count: int) -> list[list[int]]:
    """Pairs of integers that have one hash as tuples of CPython."""
    first, second, start, size = (
        11400714785074694791,
        14029467366897019727,
        2870177450012600261,
        2**64,
    )
    inverse, found, left = pow(second, -1, size), list[list[int]](), 0
    while len(found) < count:
        left += 1
        lane = (start + left * second) % size
        lane = ((lane << 31) | (lane >> 33)) % size * first % size
        right = (12345 - lane) * inverse % size
        right -= size if right >= size // 2 else 0
        if abs(right) < 2**61 - 2:
            found.append([left, right])
    return found


def test_members_of_a_set_are_told_apart_by_text_that_nobody_can_make_collide() -> None:
    pairs = _colliding_pairs(100)
    assert len({hash(tuple(pair)) for pair in pairs}) == 1
    assert len({hash(_hashable(pair, lambda work: None)) for pair in pairs}) == 100


def test_a_set_keeps_what_pythons_sets_keep() -> None:
    unique = {"type": "array", "uniqueItems": True}
    assert fitted(unique, [[1, "a"], [1.0, "a"], [True, "a"], ["1", "a"]]) == [["1", "a"], [1, "a"]]
    assert fitted(unique, [1, True, 1.0, "1"]) == [1, "1"]


HOSTILE: dict[str, dict[str, Any]] = {
    "many types": {"type": ["string"] * 20_000},
    "names that parts share": {
        "type": "object",
        "properties": {str(i): {"type": "object", "required": ["a"] * 100} for i in range(300)},
    },
    "many positions": {"type": "object", "x-positional": ["a"] * 20_000},
}


@pytest.mark.parametrize("what", HOSTILE)
def test_names_in_the_lists_of_a_schema_are_counted(what: str) -> None:
    with pytest.raises(InvalidSchema, match="names in its lists"):
        DeclaredInputs(HOSTILE[what])


def test_properties_that_nothing_reads_may_be_anything() -> None:
    assert DeclaredInputs({"enum": [{}], "properties": 5}).check("w", {}, lambda work: None) == {}


def test_a_choice_that_is_a_list_is_compared_as_scalars_are() -> None:
    assert fitted({"enum": [[1, {"a": "b"}]]}, [1, {"a": "b"}]) == [1, {"a": "b"}]
    for other in ([True, {"a": "b"}], [1], [1, {"b": "b"}], [1, {"a": []}]):
        with pytest.raises(WrongValue):
            fitted({"enum": [[1, {"a": "b"}]]}, other)


def test_comparing_with_a_choice_is_counted() -> None:
    def shared() -> Any:
        value: Any = [0]
        for _ in range(60):
            value = [value, value]
        return value

    with pytest.raises(InvalidInputs, match="too large"):
        fitted({"enum": [shared()]}, shared())


def test_a_message_cuts_long_names() -> None:
    schema = {"type": "object", "required": ["a" * 10**5], "properties": {"b" * 10**5: {}}}
    with pytest.raises(InvalidInputs) as caught:
        check_inputs("w", schema, {})
    assert len(str(caught.value)) < 500
