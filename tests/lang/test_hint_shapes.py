"""Shapes of hints and the codec of hints agree: what can never fit, the codec refuses."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict
from uuid import UUID

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rhythm.engine.typed import Misfit, kind_of
from rhythm.lang.hint_shapes import shape_of
from rhythm.lang.shapes import misfit, of_value


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


class Bits(enum.Flag):
    A = 1
    B = 2


@dataclass
class Line:
    sku: str
    count: int = 1
    tags: list[str] = field(default_factory=list)


@dataclass
class Tree:
    value: int
    below: list[Tree] = field(default_factory=list)


class Order(TypedDict):
    id: str
    total: float
    lines: NotRequired[list[Line]]


class Point(NamedTuple):
    x: int
    y: float = 0


class Struct:
    """A class as those of msgspec are, with names of its own in JSON."""

    __struct_fields__ = ("first_name", "age")
    __struct_encode_fields__ = ("firstName", "age")
    first_name: str
    age: int

    def __init__(self, first_name: str, age: int = 0) -> None:
        self.first_name, self.age = first_name, age


class Model(pydantic.BaseModel):
    id: int
    name: str = ""


class Strict(pydantic.BaseModel, extra="forbid"):
    id: int


class Lenient(pydantic.BaseModel):
    id: int

    @pydantic.model_validator(mode="before")
    @classmethod
    def _any(cls, value: Any) -> Any:
        return {"id": 1}


class Aliased(pydantic.BaseModel):
    id: int = pydantic.Field(alias="ID")


HINTS: list[Any] = [
    int, float, bool, str, None, Any, object, dict, list, tuple, dict[str, int], list[str],
    tuple[int, ...], tuple[int, str], set[str], frozenset[int], Sequence[int], Mapping[str, float],
    int | None, int | str, str | list[int], Literal["a", 1, None], Literal[1.5],
    Colour, Bits, datetime, date, time, timedelta, Decimal, UUID, bytes, Annotated[int, "x"],
    NewType("UserId", str), Line, Tree, Order, Point, Struct, Model, Strict, Lenient, Aliased,
    list[Line], dict[str, Order], Line | None, list[int | None],
]  # fmt: skip
KEYS = st.sampled_from(
    "sku count tags id total lines x y firstName first_name age name ID value below a".split()
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([1.5, 2.0])
    | st.sampled_from(["", "a", "red", "2026-01-01", "1h", "7"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=6,
)  # fmt: skip


def refused(hint: Any, value: Any) -> bool:
    kind = kind_of(hint)
    try:
        if kind is not None:
            kind.fit(value)
    except Misfit:
        return True
    return False


@pytest.mark.parametrize("hint", HINTS, ids=str)
@given(value=JSON)
def test_what_never_fits_is_refused_when_it_comes(hint: Any, value: Any) -> None:
    if misfit(of_value(value), shape_of(hint)):
        assert refused(hint, value)


@pytest.mark.parametrize("hint", HINTS, ids=str)
def test_types_of_json_are_those_that_the_codec_takes(hint: Any) -> None:
    kind, shape = kind_of(hint), shape_of(hint)
    if shape is not None and kind is not None and kind.takes:
        assert {one.word for one in shape.kinds} == kind.takes
    elif not isinstance(hint, type) or not issubclass(hint, pydantic.BaseModel):
        assert (shape is None) is (kind is None)


GIVEN = [
    Line("a"), Tree(1, [Tree(2)]), Point(1), Struct("a"), Model(id=1), Colour.RED, Decimal("1.5"),
    timedelta(seconds=5), {"id": "1", "total": 1.0},
]  # fmt: skip


@pytest.mark.parametrize("value", GIVEN, ids=lambda value: type(value).__name__)
def test_what_a_task_gives_has_the_shape_of_its_hint(value: Any) -> None:
    from rhythm.engine.payload import dump, load

    hint = Order if isinstance(value, dict) else type(value)
    stored = load(dump(value, "the result"))
    shape = shape_of(hint, given=True)
    assert shape is not None
    assert misfit(of_value(stored), shape) is None
    for kind in shape.kinds:
        if kind.fields is not None and isinstance(stored, dict):
            assert stored.keys() <= kind.fields.keys()
