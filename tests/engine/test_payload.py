"""The gate of every stored value: what it refuses and how it says so, what it lets through, and
that its two ways agree."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rhythm.engine import payload
from rhythm.engine.payload import dump, dump_trusted, load, parse
from rhythm.errors import InvalidPayload
from rhythm.limits import DEFAULT_LIMITS

NAN, INF = float("nan"), float("inf")


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def shared(depth: int) -> Any:
    value: Any = [1]
    for _ in range(depth):
        value = [value, value]
    return value


def circle() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


REFUSED: dict[str, tuple[Any, str]] = {
    "NaN": (NAN, "inputs is NaN: JSON has no such number"),
    "NaN deep inside": ({"order": {"items": [0, 1, 2, {"price": NAN}]}},
        "inputs.order.items[3].price is NaN: JSON has no such number"),
    "infinity": ([INF], "inputs[0] is Infinity: JSON has no such number"),
    "minus infinity": ({"unit price": -INF},
        'inputs["unit price"] is -Infinity: JSON has no such number'),
    "NUL": ({"note": "a\0b"},
        "inputs.note has the character NUL at character 1: databases cannot store it"),
    "NUL in a key": ({"a\0b": 1},
        'inputs["a\\u0000b"] has the character NUL at character 1: databases cannot store it'),
    "half of a pair": (["ok \ud800"],
        "inputs[0] has half of a surrogate pair at character 3: it is no Unicode text"),
    "half of a pair in a key": (
        {"\udfff": 1}, ('inputs["\\udfff"] has half of a surrogate pair at character 0: it is no '
                'Unicode text'),
    ),
    "integer over 64 bits": ({"n": 2**63}, "inputs.n is an integer over 64 bits: pass it as text"),
    "integer under 64 bits": (-(2**63) - 1, "inputs is an integer over 64 bits: pass it as text"),
    "key that is a number": ({"a": {1: 2}}, "inputs.a has the key '1' of type int: keys are text"),
    "keys true and 1": ({True: 1}, "inputs has the key 'True' of type bool: keys are text"),
    "too deep": (nested(65), "inputs is nested more than 64 deep"),
    "circle": (circle(), "inputs is nested more than 64 deep"),
    "too many parts": (shared(40),
        "inputs has more than 1,048,576 parts: store it elsewhere and pass a reference"),
    "too many entries": ({"x": [0] * 100_001},
        "inputs.x has 100,001 entries; the limit for one list or object is 100,000"),
    "too large": (["x" * 2**19] * 3,
        ("inputs has 1,572,874 bytes; the limit is 1,048,576: store it elsewhere and pass a "
            "reference")),
    "unknown type": ({"f": object()},
        ("inputs.f is of type object, which has no JSON form: make it a dict, list, text or "
            "number")),
    "generator": ((i for i in [1]),
        ("inputs is of type generator, which has no JSON form: make it a dict, list, text or "
            "number")),
}  # fmt: skip
ACCEPTED: dict[str, Any] = {
    "largest integers": [2**63 - 1, -(2**63), 2**53 + 1],
    "largest numbers": [1.7976931348623157e308, 5e-324],
    "text that looks like an escape": "\\u0000 and -0.0",
    "other planes": ["𝄞", {"ключ": "ß"}],
    "empty things": [None, {}, [], "", {"": ""}],
    "deepest": nested(64),
    "most entries": [0] * 100_000,
}


@pytest.mark.parametrize(("value", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_value_is_named_with_its_path(value: Any, message: str) -> None:
    with pytest.raises(InvalidPayload) as refused:
        dump(value, "inputs")
    assert str(refused.value) == message


@pytest.mark.parametrize("value", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted_value_comes_back_as_it_was(value: Any) -> None:
    assert load(dump(value, "inputs")) == value


@pytest.mark.parametrize("value", [-0.0, {"a": [1, -0.0]}])
def test_minus_zero_is_zero(value: Any) -> None:
    assert "-" not in dump(value, "inputs")


PARSE_REFUSED = {
    '{"a": {"b": 1, "c": 2, "b": 3}}': 'inputs.a has the key "b" twice',
    '{"x": [NaN]}': "inputs.x[0] is NaN: JSON has no such number",
    "-Infinity": "inputs is -Infinity: JSON has no such number",
    '{"x": 1e400}': "inputs.x is 1e400, which is too large for a number",
    f"[{', '.join(['1e131071'] * 200)}]": "inputs[0] is 1e131071, which is too large for a number",
    "9223372036854775808": "inputs is an integer over 64 bits: pass it as text",
    f'{{"n": 1{"0" * 5000}}}': "inputs.n is an integer over 64 bits: pass it as text",
    '"a\\u0000b"': "inputs has the character NUL at character 1: databases cannot store it",
    '{"t": "\\ud800"}': "inputs.t has half of a surrogate pair at character 0: it is no Unicode text",
    "[" * 65 + "]" * 65: "inputs is nested more than 64 deep",
    "[" * 200_000: "inputs is nested more than 64 deep",
    '{"a":' * 5000 + "1" + "}" * 5000: "inputs is nested more than 64 deep",
    '"'
    + '\\"'
    * 300_000: "inputs is not JSON: Unterminated string starting at: line 1 column 1 (char 0)",
    "": "inputs is not JSON: Expecting value: line 1 column 1 (char 0)",
    "{'a': 1}": (
        "inputs is not JSON: Expecting property name enclosed in double quotes: line 1 column "
        "2 (char 1)"
    ),
}


@pytest.mark.parametrize(
    ("text", "message"), PARSE_REFUSED.items(), ids=[text[:20] for text in PARSE_REFUSED]
)
def test_text_from_outside_is_refused_with_the_path(text: str, message: str) -> None:
    for given_text in (text, text.encode()):
        with pytest.raises(InvalidPayload) as refused:
            parse(given_text, "inputs")
        assert str(refused.value) == message


def test_text_from_outside_that_is_too_long_is_not_even_read() -> None:
    with pytest.raises(InvalidPayload, match="more than 1,048,576 bytes"):
        parse("x" * (2**20 + 1), "inputs")


def test_a_text_is_measured_in_bytes_as_bytes_are() -> None:
    limits = DEFAULT_LIMITS.replace(payload_bytes=12)
    for text, fits in (('"ßßßßß"', True), ('"ßßßßßß"', False), ('"1234567890"', True)):
        for given_text in (text, text.encode()):
            assert verdict(lambda t: parse(t, "inputs", limits), given_text)[0] == fits, text
    with pytest.raises(InvalidPayload, match="half of a surrogate pair"):
        parse('"\ud800aaaaa"', "inputs", limits)


def test_bytes_from_outside_are_utf_8() -> None:
    assert parse('"ß"'.encode(), "inputs") == "ß"
    with pytest.raises(InvalidPayload, match="not UTF-8 text: byte 1 cannot be read"):
        parse(b'"\xff"', "inputs")


def test_brackets_in_texts_are_no_depth() -> None:
    value = ["[" * 500, '"{' * 500, "\\" * 499]
    assert parse(json.dumps(value), "inputs") == value


def test_plain_text_from_outside_is_not_looked_at_part_by_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = list[Any]()
    monkeypatch.setattr(payload._Careful, "plain", lambda self, value, *where: looks.append(value))
    value = {"lists": [[]] * 10_000, "texts": ["ß"] * 100, "numbers": [1, 1.5, -2, None, True]}
    assert parse(json.dumps(value), "inputs") == value
    assert looks == []


def test_a_text_has_its_own_limit_where_more_may_come_around_it() -> None:
    limits = DEFAULT_LIMITS.replace(text_bytes=10, payload_bytes=100)
    assert parse('["1234567890", "ßßßßß"]', "inputs", limits) == ["1234567890", "ßßßßß"]
    for text, where in (('["12345678901"]', r"\[0\]"), ('{"ßßßßßß": 1}', ".ßßßßßß")):
        with pytest.raises(
            InvalidPayload, match=f"inputs{where} is a text of 1[12] bytes; the limit is 10"
        ):
            parse(text, "inputs", limits)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec=None), max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


def careful(value: Any) -> str:
    """The answer of the closer look alone."""
    return dump_trusted(payload._Careful("inputs", DEFAULT_LIMITS).plain(value, None, 0))


def verdict(gate: Any, value: Any) -> tuple[bool, str]:
    try:
        return True, gate(value)
    except InvalidPayload as problem:
        return False, str(problem)


@given(JSON)
def test_quick_and_closer_look_give_one_verdict(value: Any) -> None:
    assert verdict(lambda v: dump(v, "inputs"), value) == verdict(careful, value)


@given(JSON)
def test_both_doors_give_one_verdict(value: Any) -> None:
    text = json.dumps(value)
    assert (
        verdict(lambda v: dump(v, "inputs"), value)[0]
        == verdict(lambda t: dump_trusted(parse(t, "inputs")), text)[0]
    )


@given(JSON)
def test_what_passes_is_json_of_every_kind_of_reader(value: Any) -> None:
    passed, text = verdict(lambda v: dump(v, "inputs"), value)
    if passed:
        assert load(text) == json.loads(text) == value
        assert parse(text, "inputs") == value
        assert "\\u0000" not in text or "\\\\u0000" in text
        assert all(math.isfinite(x) for x in [value] if type(x) is float)


def test_limits_are_those_that_are_given() -> None:
    small = DEFAULT_LIMITS.replace(payload_bytes=10, depth=2)
    with pytest.raises(InvalidPayload, match="has 12 bytes; the limit is 10"):
        dump("1234567890", "inputs", small)
    with pytest.raises(InvalidPayload, match="more than 2 deep"):
        dump([[[1]]], "inputs", small)


def test_broken_conversion_is_a_refusal() -> None:
    class Odd:
        def model_dump(self, mode: str) -> Any:
            raise ZeroDivisionError("odd")

    with pytest.raises(
        InvalidPayload, match=r"result\.x cannot be turned into JSON: ZeroDivisionError: odd"
    ):
        dump({"x": Odd()}, "result")


def test_conversion_that_never_ends_is_a_refusal() -> None:
    class Endless:
        def model_dump(self, mode: str) -> Any:
            return self

    with pytest.raises(InvalidPayload, match="which does not become JSON"):
        dump(Endless(), "result")


def test_values_of_the_users_types_are_checked_inside() -> None:
    with pytest.raises(InvalidPayload, match=r"result\[1\]\[0\] is NaN"):
        dump((datetime(2026, 1, 1, tzinfo=UTC), (NAN,)), "result")
