"""The codec between Python types and JSON: what each type becomes, how hints bring it back, and
what does not fit."""

from __future__ import annotations

import enum
import inspect
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rhythm.engine.payload import dump, load
from rhythm.engine.typed import Misfit, TypedInputs, kind_of


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Corner(enum.Enum):
    NEAR = (0, 0)
    FAR = (1, 1)


class Word(enum.StrEnum):
    YES = "yes"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True)
class Size:
    cm: int


class Shirt(enum.Enum):
    SMALL = Size(90)
    LARGE = Size(110)


class Point(NamedTuple):
    x: int
    y: Decimal = Decimal(0)


@dataclass
class Item:
    sku: str
    price: Decimal
    count: int = 1
    total: Decimal = field(init=False)

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError("a count cannot be negative")
        self.total = self.price * self.count


@dataclass
class Order:
    id: UUID
    items: list[Item]
    due: datetime | None = None
    tags: set[str] = field(default_factory=set)
    parent: Order | None = None


class Address(TypedDict):
    street: str
    since: NotRequired[date]


class Model:
    """As those of pydantic."""

    def __init__(self, n: int) -> None:
        self.n = n

    @classmethod
    def model_validate(cls, value: Any) -> Model:
        if not isinstance(value, dict) or set(value) != {"n"}:
            raise ValueError("1 validation error for Model")
        return cls(value["n"])

    def model_dump(self, mode: str) -> Any:
        assert mode == "json"
        return {"n": self.n}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.n == other.n

    __hash__ = None  # type: ignore[assignment]


class Struct:
    """As those of msgspec."""

    __struct_fields__ = ("n", "when")
    __struct_encode_fields__ = ("n", "atTime")
    n: int
    when: datetime

    def __init__(self, n: int, when: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.n, self.when = n, when

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and (self.n, self.when) == (other.n, other.when)

    __hash__ = None  # type: ignore[assignment]


class Name(str):
    __slots__ = ()


UserId = NewType("UserId", int)
T = TypeVar("T")
BERLIN = timezone(timedelta(hours=1))
ID = UUID("12345678-1234-5678-1234-567812345678")

ROUND_TRIPS: list[tuple[Any, Any, Any]] = [  # hint, value, JSON
    (datetime, datetime(2026, 1, 31, 9, 30, tzinfo=UTC), "2026-01-31T09:30:00Z"),
    (datetime, datetime(2026, 1, 31, 9, 30, 0, 5, tzinfo=BERLIN),
        "2026-01-31T09:30:00.000005+01:00"),
    (datetime, datetime(2026, 1, 31, 9, 30), "2026-01-31T09:30:00"),
    (date, date(2026, 1, 31), "2026-01-31"),
    (time, time(9, 30), "09:30:00"),
    (timedelta, timedelta(hours=1, minutes=30), 5400),
    (timedelta, timedelta(milliseconds=-250), -0.25),
    (Decimal, Decimal("12.50"), "12.50"),
    (UUID, ID, "12345678-1234-5678-1234-567812345678"),
    (Colour, Colour.RED, "red"),
    (Level, Level.HIGH, 2),
    (Corner, Corner.FAR, [1, 1]),
    (Word, Word.YES, "yes"),
    (Shirt, Shirt.LARGE, {"cm": 110}),
    (Rights, Rights.READ | Rights.WRITE, 3),
    (bytes, b"\x00\xff", "AP8="),
    (bytearray, bytearray(b"ab"), "YWI="),
    (set[str], {"b", "a"}, ["a", "b"]),
    (frozenset[int], frozenset({3, 1}), [1, 3]),
    (tuple[int, ...], (1, 2), [1, 2]),
    (tuple[date, int], (date(2026, 1, 1), 2), ["2026-01-01", 2]),
    (tuple, (1, "a"), [1, "a"]),
    (list[Decimal], [Decimal(1)], ["1"]),
    (dict[str, date], {"a": date(2026, 1, 1)}, {"a": "2026-01-01"}),
    (Sequence[Colour], [Colour.RED], ["red"]),
    (Mapping[str, UUID], {"x": ID}, {"x": str(ID)}),
    (Point, Point(1, Decimal("2.5")), {"x": 1, "y": "2.5"}),
    (Item, Item("a", Decimal("1.5"), 2), {"sku": "a", "price": "1.5", "count": 2, "total": "3.0"}),
    (
        Order,
        Order(ID, [Item("a", Decimal(1))], datetime(2026, 1, 1, tzinfo=UTC), {"x"}, Order(ID, [])),
        {"id": str(ID), "items": [{"sku": "a", "price": "1", "count": 1, "total": "1"}],
            "due": "2026-01-01T00:00:00Z", "tags": ["x"],
         "parent": {"id": str(ID), "items": [], "due": None, "tags": [], "parent": None}},
    ),
    (Address, {"street": "S", "since": date(2026, 1, 1)}, {"street": "S", "since": "2026-01-01"}),
    (Model, Model(3), {"n": 3}),
    (Struct, Struct(1), {"n": 1, "atTime": "2026-01-01T00:00:00Z"}),
    (date | None, None, None),
    (date | int, 5, 5),
    (Literal["a", 1, None], 1, 1),
    (Annotated[date, "noted"], date(2026, 1, 1), "2026-01-01"),
    (UserId, 5, 5),
]  # fmt: skip


@pytest.mark.parametrize(
    ("hint", "value", "form"),
    ROUND_TRIPS,
    ids=[f"{hint}-{form}"[:60] for hint, _, form in ROUND_TRIPS],
)
def test_value_becomes_its_json_form_and_comes_back_by_its_hint(
    hint: Any, value: Any, form: Any
) -> None:
    stored = load(dump(value, "result"))
    assert stored == form
    kind = kind_of(hint)
    assert kind is not None
    back = kind.fit(stored)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (Name("x"), "x"), (True, True), (OrderedDict(a=1), {"a": 1}),
        (MappingProxyType({"a": 1}), {"a": 1}), ({Word.YES: 1}, {"yes": 1}),
        ({1, "a"}, [1, "a"]), ({}.keys(), []), (memoryview(b"a"), "YQ=="), ([(1, {2})], [[1, [2]]]),
    ],
)  # fmt: skip
def test_relatives_of_json_types_become_those(value: Any, form: Any) -> None:
    assert load(dump(value, "result")) == form


MISFITS: list[tuple[Any, Any, str, str]] = [  # hint, value, path, problem
    (int, "2", "", 'must be a whole number, not "2"'),
    (int, 2.5, "", "must be a whole number, not 2.5"),
    (int, True, "", "must be a whole number, not true"),
    (float, "2", "", 'must be a number, not "2"'),
    (bool, 1, "", "must be true or false, not 1"),
    (str, None, "", "must be text, not null"),
    (list, {}, "", "must be a list, not {}"),
    (dict, [], "", "must be an object, not []"),
    (list[int], [1, "a"], "[1]", 'must be a whole number, not "a"'),
    (dict[str, int], {"a": None}, ".a", "must be a whole number, not null"),
    (datetime, "tomorrow", "", 'must be a date and time such as "2026-01-31T09:30:00Z", not "tomorrow"'),
    (date, 5, "", 'must be a date such as "2026-01-31", not 5'),
    (time, "25:00", "", 'must be a time of day such as "09:30:00", not "25:00"'),
    (timedelta, "soon", "", 'must be a duration: seconds, or text such as "1h30m", not "soon"'),
    (Decimal, "1,5", "", 'must be a decimal number such as "12.50", not "1,5"'),
    (Decimal, "NaN", "", 'must be a decimal number such as "12.50", not "NaN"'),
    (UUID, "x", "", 'must be a UUID, not "x"'),
    (bytes, "a", "", 'must be bytes as base64, not "a"'),
    (Colour, "blue", "", 'must be one of "red", "green", not "blue"'),
    (Level, 3, "", "must be one of 1, 2, not 3"),
    (Rights, 8, "", "must be a sum of 1, 2, not 8"),
    (Literal["a"], "b", "", 'must be "a", not "b"'),
    (Literal[1], True, "", "must be 1, not true"),
    (tuple[int, int], [1], "", "must be a list of 2, not [1]"),
    (set[str], [["a"]], "[0]", 'must be text, not ["a"]'),
    (set, [["a"]], "", "is a list with members that cannot be in a set"),
    (Item, {"sku": "a"}, "", "has no `price`, which Item needs"),
    (
        Item, {"sku": "a", "price": 1, "cuont": 2}, "",
        "has `cuont`, which Item does not take; it takes sku, price, count, total",
    ),
    (Item, {"sku": "a", "price": 1, "count": -1}, "",
        "is refused by Item: ValueError: a count cannot be negative"),
    (Item, "a", "", 'must be an object with the fields of Item, not "a"'),
    (Order, {"id": str(ID), "items": [{"sku": "a", "price": "x"}]}, ".items[0].price",
        'must be a decimal number such as "12.50", not "x"'),
    (Address, {}, "", "has no `street`, which Address needs"),
    (Model, {}, "", "is refused by Model: 1 validation error for Model"),
    (date | None, "x", "", 'must be a date such as "2026-01-31", not "x"'),
    (date | int, None, "", "must be text or a number, not null"),
    (int | str, [1], "", "must be a number or text, not [1]"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("hint", "value", "path", "problem"), MISFITS, ids=[f"{m[0]}-{m[1]}"[:60] for m in MISFITS]
)
def test_misfit_says_where_and_what_was_expected(
    hint: Any, value: Any, path: str, problem: str
) -> None:
    kind = kind_of(hint)
    assert kind is not None
    with pytest.raises(Misfit) as misfit:
        kind.fit(value)
    assert (misfit.value.path, misfit.value.problem) == (path, problem)


@pytest.mark.parametrize(
    ("hint", "value", "fitted"),
    [
        (int, 2.0, 2), (float, 2, 2.0), (Decimal, 0.1, Decimal("0.1")), (Decimal, 3, Decimal(3)),
        (timedelta, "1h30m", timedelta(hours=1.5)),
        (Point, [1], Point(1)), (Level, 2.0, Level.HIGH),
        (datetime, "2026-01-31", datetime(2026, 1, 31)), (date | str, "x", "x"),
        (date | str, "2026-01-31", date(2026, 1, 31)), (str | date, "2026-01-31", "2026-01-31"),
        (str | None, "x", "x"), (int | float, 2.5, 2.5),
        (Address, {"street": "S", "zip": 1}, {"street": "S", "zip": 1}),
    ],
)  # fmt: skip
def test_what_is_meant_is_taken(hint: Any, value: Any, fitted: Any) -> None:
    kind = kind_of(hint)
    assert kind is not None
    back = kind.fit(value)
    assert (back, type(back)) == (fitted, type(fitted))


@pytest.mark.parametrize("hint", [Any, object, T, type, Name, int | object, "Unknown", [1]])
def test_hint_that_says_nothing_about_json_changes_nothing(hint: Any) -> None:
    assert kind_of(hint) is None


def test_values_of_plain_hints_pass_untouched() -> None:
    hint, value = dict[str, list[int]], {"a": [1, 2]}
    kind = kind_of(hint)
    assert kind is not None
    assert kind.fit(value)["a"] is value["a"]


def fit(function: Any, *args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return TypedInputs(function, inspect.signature(function)).fit(args, kwargs)


def test_arguments_are_fitted_by_name_or_as_the_first() -> None:
    def function(
        day: date, *rest: int, count: int = 0, other: Any = None, **more: Decimal
    ) -> None: ...

    assert fit(function, "2026-01-31") == ((date(2026, 1, 31),), {})
    given = {"day": "2026-01-31", "count": 1, "other": "x", "price": "1"}
    assert fit(function, **given) == (
        (),
        {"day": date(2026, 1, 31), "count": 1, "other": "x", "price": Decimal(1)},
    )
    with pytest.raises(Misfit) as misfit:
        fit(function, day="2026-01-31", price="dear")
    assert misfit.value.path == "price"


def test_null_is_taken_where_it_is_the_default() -> None:
    def function(day: date = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013 - as people write it

    assert fit(function, day=None) == ((), {"day": None})


def test_hint_that_only_a_type_checker_can_find_changes_nothing_else() -> None:
    def function(day: date, other: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    assert fit(function, day="2026-01-31", other="x") == (
        (),
        {"day": date(2026, 1, 31), "other": "x"},
    )


def test_function_without_hints_needs_no_fitting() -> None:
    def function(a, *b: Any, c: object = 1) -> None: ...  # type: ignore[no-untyped-def]

    assert not TypedInputs(function, inspect.signature(function))


MOMENTS = st.datetimes(timezones=st.sampled_from([UTC, BERLIN])) | st.datetimes()


@given(
    st.builds(
        Order,
        id=st.uuids(),
        items=st.lists(
            st.builds(
                Item,
                sku=st.text(st.characters(codec="utf-8", exclude_characters="\0")),
                price=st.decimals(allow_nan=False, allow_infinity=False),
                count=st.integers(0, 9),
            ),
            max_size=3,
        ),
        due=st.none() | MOMENTS,
        tags=st.sets(st.sampled_from(["a", "b", "c"])),
        parent=st.none(),
    )
)
def test_whatever_a_dataclass_holds_comes_back(order: Order) -> None:
    kind = kind_of(Order)
    assert kind is not None
    assert kind.fit(load(dump(order, "result"))) == order
