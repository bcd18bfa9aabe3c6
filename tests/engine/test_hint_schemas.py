"""What a hint asks for, said as JSON Schema: it accepts what the codec of tasks accepts, and keeps
it in the form in which that codec would store it."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict
from uuid import UUID, uuid4

import pydantic
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rhythm.engine import hint_schemas
from rhythm.engine.declared_inputs import declared_inputs
from rhythm.engine.hint_schemas import PLAIN_SCHEMAS, HintSchemas
from rhythm.engine.payload import dump, load
from rhythm.engine.typed import PLAIN_KINDS, Misfit, TypedInputs
from rhythm.errors import InvalidInputs
from rhythm.ir.input_schema import DeclaredInputs, check_inputs

OrderId = NewType("OrderId", str)


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"
    NUMBER = 3


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


@dataclass
class Item:
    sku: str
    price: float
    qty: int = 1
    tags: list[str] = field(default_factory=list)
    wait: timedelta = timedelta(hours=1)


@dataclass
class Order:
    id: OrderId
    items: list[Item]
    due: date | None = None
    size: Size = Size.SMALL


class Point(NamedTuple):
    x: int
    y: float = 0.5


class Address(TypedDict):
    street: str
    zip: NotRequired[int]


class Struct:
    """As those of msgspec."""

    __struct_fields__ = ("a", "b")
    a: int
    b: str | None

    def __init__(self, a: int, b: str | None = None) -> None:
        self.a, self.b = a, b


class Model(pydantic.BaseModel):
    name: str
    points: list[int] = []
    nested: Item | None = None


@dataclass
class Tree:
    value: int
    below: list[Tree] = field(default_factory=list)


@dataclass
class Stamped:
    id: str = field(default_factory=lambda: str(uuid4()))


HINTS: list[Any] = [
    Any, None, str, bool, int, float, datetime, date, time, timedelta, Decimal, UUID, bytes,
    list, dict, tuple, list[int], list[Any], Sequence[str], set[int], frozenset[str],
    dict[str, float], Mapping[str, list[int]], tuple[int, str], tuple[int, ...], tuple[int | None],
    int | None, int | str, str | int, float | int, int | float | None, bool | int,
    list[int] | dict[str, int], date | int, timedelta | None, list[int | None],
    Literal["a", "b"], Literal[1, "1", None, True], Size, Size | None, list[Size], Access,
    OrderId, Annotated[int, "positive"], list[tuple[str, int]],
    Item, Order, list[Item], Item | None, dict[str, Item], Point, list[Point], Address, Struct,
    Item | Point, Struct | str, object, "NotThere",
]  # fmt: skip
SCALARS: list[Any] = [
    None, True, False, 0, 1, -3, 2**62, 1.0, 1.5, -0.25, 1e300, "", "a", "b", "s", "l", "5", "1h30m",
    "2026-01-31", "2026-01-31T09:30:00+00:00", "2026-01-31T09:30", "09:30", "09:30:00Z", "PT15M",
    "12.50", "aGVsbG8=", "not base64!", "00000000-0000-0000-0000-00000000002A",
    "{0000000000000000000000000000002a}", "soon", "1e400000", "NaN",
]  # fmt: skip
FIELDS = "sku price qty tags wait id items due size x y street zip a b more".split()
VALUES = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3)
    ),
    max_leaves=6,
)
FITTING: list[Any] = [
    {"sku": "a", "price": 3}, {"sku": "a", "price": 3.5, "qty": 2.0, "wait": "1h30m"},
    {"id": "7", "items": [{"sku": "a", "price": 1}], "due": "20260131", "size": 3},
    {"id": "7", "items": [{"sku": "a"}]}, {"x": 1}, {"x": 1, "y": 2}, [1, 2], [1], [1, 2, 3],
    {"street": "x", "zip": 5.0, "more": None}, {"a": 1, "b": None}, {"a": 1, "c": 1}, [], {},
    [[1, "x"]], [["a", 1]], {"k": [1, 2]}, {"k": {"sku": "a", "price": 1}}, [3, 1, 3, 2],
    ["b", "a", "b"], [1, None],
]  # fmt: skip


def function_with(hint: Any, default: Any = inspect.Parameter.empty) -> tuple[Any, Any]:
    def function(value: Any) -> None: ...

    function.__annotations__ = {"value": hint}
    parameter = inspect.Parameter("value", inspect.Parameter.KEYWORD_ONLY, default=default)
    return function, inspect.Signature([parameter])


def is_negative(value: Any) -> bool:
    return type(value) in (int, float) and value < 0


def by_codec(hint: Any, value: Any) -> tuple[Any, ...]:
    """What a task would be given, as JSON; empty if its codec refuses the value."""
    function, signature = function_with(hint)
    try:
        _, kwargs = TypedInputs(function, signature).fit((), {"value": value})
    except Misfit:
        return ()
    return (load(dump(kwargs["value"], "value")),)


def by_schema(hint: Any, value: Any) -> tuple[Any, ...]:
    function, signature = function_with(hint)
    try:
        return (check_inputs("w", declared_inputs(function, signature), {"value": value})["value"],)
    except InvalidInputs:
        return ()


def exact(value: Any) -> str:
    """The value as text, in which 1, 1.0 and true differ, and keys have no order."""
    import json

    return json.dumps(value, sort_keys=True)


def test_schema_and_codec_agree_on_every_plain_hint() -> None:
    assert PLAIN_SCHEMAS.keys() == PLAIN_KINDS.keys()


@pytest.mark.parametrize("hint", HINTS, ids=str)
def test_schema_accepts_what_the_codec_of_tasks_accepts_and_keeps_what_it_keeps(hint: Any) -> None:
    for value in [*SCALARS, *FITTING]:
        if hint is Access and is_negative(value):
            continue  # Python counts the flags that are not set
        assert exact(by_schema(hint, value)) == exact(by_codec(hint, value)), value


@given(st.sampled_from(HINTS), VALUES)
def test_schema_and_codec_agree_on_any_value(hint: Any, value: Any) -> None:
    assume(hint is not Access or not is_negative(value))
    assert exact(by_schema(hint, value)) == exact(by_codec(hint, value))


@pytest.mark.parametrize("hint", HINTS, ids=str)
def test_what_is_kept_fits_again_and_stays_the_same(hint: Any) -> None:
    for value in [*SCALARS, *FITTING]:
        for kept in by_schema(hint, value):
            assert exact(by_schema(hint, kept)) == exact((kept,))


def test_pydantic_model_is_described_by_its_fields() -> None:
    assert by_schema(Model, {"name": "a"}) == ({"name": "a", "points": [], "nested": None},)
    assert by_schema(Model, {"name": "a", "points": ["1"]}) == ()
    # pydantic itself would make a number of the text: a workflow has JSON, and no pydantic
    assert by_codec(Model, {"name": "a", "points": ["1"]}) != ()
    nested = by_schema(Model, {"name": "a", "nested": {"sku": "x", "price": 1}})
    assert nested[0]["nested"]["wait"] == 3600


def test_what_a_pydantic_model_decides_itself_may_be_anything() -> None:
    class Before(pydantic.BaseModel):
        n: int
        m: int = 0

        @pydantic.field_validator("n", mode="before")
        @classmethod
        def read(cls, value: Any) -> Any:
            return int(value)

    class Whole(pydantic.BaseModel):
        n: int

        @pydantic.model_validator(mode="before")
        @classmethod
        def read(cls, value: Any) -> Any:
            return value if isinstance(value, dict) else {"n": value}

    class Named(pydantic.BaseModel):
        n: int = pydantic.Field(alias="number")

    assert by_schema(Before, {"n": "5"}) != ()
    assert by_schema(Before, {"n": "5", "m": "5"}) == ()
    assert by_schema(Whole, 5) == (5,)
    assert by_schema(Named, {"number": 5}) != ()
    assert by_schema(Named, {"n": 5}) != ()
    assert by_schema(pydantic.RootModel[list[int]], [1]) == ([1],)


def test_default_none_allows_null_as_it_does_for_tasks() -> None:
    declared = declared_inputs(*function_with(int, None))
    assert check_inputs("w", declared, {"value": None}) == {"value": None}
    assert check_inputs("w", declared, {}) == {"value": None}


def test_defaults_of_other_types_are_kept_as_json() -> None:
    for default, kept in [
        (timedelta(minutes=5), 300),
        (Size.LARGE, "l"),
        (Point(1), {"x": 1, "y": 0.5}),
    ]:
        declared = declared_inputs(*function_with(Any, default))
        assert check_inputs("w", declared, {}) == {"value": kept}


def test_default_that_is_made_anew_each_time_is_left_to_the_class() -> None:
    schema = HintSchemas().schema(Stamped)
    assert schema["properties"] == {"id": {"type": "string"}}
    assert schema["required"] == []


def test_class_that_contains_itself_is_described_once() -> None:
    schema = HintSchemas().schema(Tree)
    assert schema["properties"]["below"] == {"type": "array", "default": []}


def test_large_hints_are_cut_and_can_still_be_checked() -> None:
    many = TypedDict("many", {f"key{n}": int for n in range(5000)})  # type: ignore[misc]  # made here
    wide = TypedDict("wide", {f"key{n}": Item for n in range(400)})  # type: ignore[misc]  # made here
    deep: Any = int
    for _ in range(100):
        deep = list[deep]
    choices = Literal[tuple(range(5000))]
    nested: Any = int
    for n in range(20):
        fields = {"inner": nested, **{f"key{i}": int for i in range(900)}}
        nested = TypedDict(f"nested{n}", fields)  # type: ignore[misc]  # made here
    for hint in (many, wide, deep, choices, list[many] | wide, nested):
        declared = declared_inputs(*function_with(hint))
        assert DeclaredInputs(declared).parts <= hint_schemas.MAX_PARTS + 10
