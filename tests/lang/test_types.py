"""Types of headers: a schema that types can say is written and read back as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rhythm.ir.input_schema import DeclaredInputs
from rhythm.lang.flow.compile import compile_flow
from rhythm.lang.flow.format import format_source
from rhythm.lang.flow.types import NULL, TYPES, TYPES_FROM_ELSEWHERE, parameters_text, type_text

WORDS = [schema for word, schema in TYPES.items() if word not in ("any", "null")]
KEYS = st.sampled_from(["id", "items", "unit price", "in", "größe", "a"])


def shapes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda properties, missing, others: {
            "type": "object",
            "properties": properties,
            "required": [key for key in properties if key not in missing],
            **({} if others == {} else {"additionalProperties": others or False}),
        },
        st.dictionaries(KEYS, inner, min_size=1, max_size=3),
        st.sets(KEYS),
        st.none() | inner | st.just({}),
    )


def unions(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Alternatives are neither alternatives themselves, nor values side by side."""
    plain = inner.filter(lambda part: part and "anyOf" not in part and "enum" not in part)
    return st.lists(plain, min_size=2, max_size=3).map(lambda parts: {"anyOf": parts})


def lists(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    one = inner.map(lambda item: {"type": "array", **({"items": item} if item else {})})
    several = st.lists(inner, min_size=2, max_size=3)
    return one | several.map(lambda items: {"type": "array", "prefixItems": items})


# No database keeps NUL or half of a character.
CHARACTERS = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
VALUES = st.text(CHARACTERS, max_size=5) | st.integers(-5, 5) | st.booleans() | st.just(1.5)
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([*WORDS, {}, NULL])
    | st.lists(VALUES, min_size=1, max_size=3).map(lambda values: {"enum": values}),
    lambda inner: shapes(inner) | unions(inner) | lists(inner),
    max_leaves=6,
)


def declared(header: str) -> Any:
    (program,) = compile_flow(f"workflow w({header}) {{ return null }}").programs_or_raise()
    return program.options["inputs"]


def exact(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@given(SCHEMAS)
def test_schema_is_written_as_a_type_that_means_it(schema: Any) -> None:
    inputs = {
        "type": "object",
        "properties": {"value": schema},
        "required": ["value"],
        "additionalProperties": False,
    }
    header = parameters_text(inputs)
    assert exact(declared(header)) == exact(inputs), header
    assert DeclaredInputs(inputs)
    text = f"workflow w({header}) {{ return null }}\n"
    assert format_source(format_source(text)) == format_source(text)


@pytest.mark.parametrize("word", TYPES)
def test_every_word_is_a_type_and_its_own_text(word: str) -> None:
    assert type_text(declared(f"x: {word}")["properties"]["x"]) == word


@pytest.mark.parametrize(("word", "meant"), TYPES_FROM_ELSEWHERE.items())
def test_word_of_another_language_is_refused_with_ours(word: str, meant: str) -> None:
    assert word not in TYPES
    (wrong,) = compile_flow(f"workflow w(x: {word}) {{ return x }}").diagnostics
    assert (wrong.code, wrong.help) == ("F035", (f"did you mean `{meant}`?",))


def test_types_of_a_header_are_bounded() -> None:
    for inner in (", ".join(f"k{n}: text" for n in range(1001)), "k: " + "|".join(["1"] * 1001)):
        found = compile_flow(f"workflow w(x: {{ {inner} }}) {{ return x }}").diagnostics
        assert [wrong.code for wrong in found] == ["F006"]
    deep = "[" * 100 + "text" + "]" * 100
    found = compile_flow(f"workflow w(x: {deep}) {{ return x }}").diagnostics
    assert [wrong.code for wrong in found] == ["F006"]


def test_formatter_sets_types_as_one_would() -> None:
    assert format_source(
        'workflow w( id:text,n:integer|null=-1,s:"a"|"b"?,xs:[text]=[],o:{a?:text,...:number},p:{...}) {}'
    ) == (
        'workflow w(id: text, n: integer | null = -1, s: "a" | "b"?, xs: [text] = [], '
        "o: { a?: text, ...: number }, p: { ... }) {}\n"
    )
