"""Converts Python values to JSON, and back by type hint.

This is the one codec between a user's types and what is stored. `json_form` goes one level down: it
returns the JSON-like form of a value that JSON does not know. `kind_of` reads a hint, once: which
values pass as they are, and how any other is made into what the hint asks for. A hint that says
nothing about JSON changes nothing.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import enum
import inspect
import sys
import types
import typing
from collections import abc
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any
from uuid import UUID

import orjson

from rhythm.durations import duration_s
from rhythm.record import Record

WORDS: dict[type, str] = {
    type(None): "null", bool: "true or false", int: "a number", float: "a number", str: "text",
    list: "a list", dict: "an object",
}  # fmt: skip
VALUE_CHARACTERS = 60  # longest value in a message
MAX_CHOICES = 10

Form = Callable[[Any], Any]


# from Python to JSON


def json_form(value: Any) -> Any:
    """Returns a simpler form of the value, such as a dict for a dataclass; repeat it to get JSON.

    Raises `NoForm` if its type has no such form.
    """
    cls: type = type(value)
    form = _form_of(cls)
    if form is None:
        raise NoForm(cls.__qualname__)
    return form(value)


class NoForm(TypeError):
    """A type that neither JSON nor this codec knows."""


def show_time(value: datetime | time) -> str:
    """Returns a time as ISO text, with `Z` for UTC."""
    return value.isoformat().replace("+00:00", "Z")


def _seconds(value: timedelta) -> int | float:
    seconds = value.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def _decimal_text(value: Decimal) -> str:
    if not value.is_finite():
        raise ValueError(f"Decimal({str(value)!r}) is not a number")
    return str(value)


def _base64(value: Any) -> str:
    return base64.b64encode(value).decode("ascii")


def _in_order(value: abc.Set[Any]) -> list[Any]:
    """Returns the members of a set, always in the same order."""
    try:
        return sorted(value)
    except TypeError:
        return sorted(value, key=lambda item: (type(item).__name__, repr(item)))


FORMS: tuple[tuple[type, Form], ...] = (  # the first one that fits is used
    (enum.Enum, lambda value: value.value),
    (datetime, show_time), (date, date.isoformat), (time, show_time), (timedelta, _seconds),
    (Decimal, _decimal_text), (UUID, str),
    (bool, bool), (str, lambda value: str.__str__(value)), (int, int), (float, float),
    (bytes, _base64), (bytearray, _base64), (memoryview, _base64),
    (dict, dict), (types.MappingProxyType, dict), (list, list), (tuple, list), (abc.Set, _in_order),
)  # fmt: skip


@lru_cache(maxsize=1024)
def _form_of(cls: type) -> Form | None:
    """Returns the function that makes values of a class simpler; None if there is none."""
    if callable(getattr(cls, "model_dump", None)):
        return lambda value: value.model_dump(mode="json")
    if not issubclass(cls, enum.Enum) and (fields := fields_of(cls)) is not None:
        return lambda value: {field.key: getattr(value, field.name) for field in fields}
    return next((form for base, form in FORMS if issubclass(cls, base)), None)


# from JSON to Python


class Misfit(Exception):
    """A value that is not what a hint asks for. `path` leads to it from the input."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.problem, self.path = problem, path

    def inside(self, step: str) -> Misfit:
        """Returns the same problem with a path that begins one step further out."""
        return Misfit(self.problem, step + self.path)


class HintKind:
    """What a hint asks for.

    Values of the types in `exact` fit as they are. Any other value is converted by `convert`, or
    refused with `Misfit`. `takes` names the JSON types that may fit; empty if any may.
    """

    __slots__ = ("convert", "exact", "takes")

    def __init__(
        self, takes: abc.Set[str], convert: Callable[[Any], Any], exact: abc.Set[type] = frozenset()
    ) -> None:
        self.takes, self.convert, self.exact = frozenset(takes), convert, frozenset(exact)

    def fit(self, value: Any) -> Any:
        """Returns the value as the hint asks for it. Raises `Misfit` if it does not fit."""
        return value if type(value) in self.exact else self.convert(value)


def kind_of(hint: Any) -> HintKind | None:
    """Returns what a hint asks for; None if any value may pass as it is."""
    if hint is None or hint is type(None):
        return _NULL
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return kind_of(args[0])
    if origin in (typing.Union, types.UnionType):
        return _union([kind_of(part) for part in args])
    if origin is typing.Literal:
        return _choice([(value, value) for value in args])
    if isinstance(hint, typing.NewType):
        return kind_of(hint.__supertype__)
    cls = origin or hint
    return _class_kind(cls, args) if isinstance(cls, type) else None


def _class_kind(cls: type, args: tuple[Any, ...]) -> HintKind | None:
    if cls in PLAIN_KINDS:
        return PLAIN_KINDS[cls]
    if cls in LISTS:
        return _list(LISTS[cls], kind_of(args[0]) if args else None)
    if cls is tuple:
        return _tuple(args)
    if cls in OBJECTS:
        return _object(kind_of(args[1]) if len(args) == 2 else None)
    return _user_kind(cls)


# Cached because a class may contain itself. Hints are not cached: `int | str` and `str | int` are
# equal, but do not mean the same.
@lru_cache(maxsize=1024)
def _user_kind(cls: type) -> HintKind | None:
    """Returns what a user's class asks for; None if any value may pass as it is."""
    if typing.is_typeddict(cls):
        return HintKind({"an object"}, _TypedDict(cls))
    if callable(getattr(cls, "model_validate", None)):
        return HintKind(set(), _model(cls))
    if issubclass(cls, enum.Enum):
        return _enum(cls)
    if fields_of(cls) is not None:
        return HintKind(
            {"an object", "a list"} if issubclass(cls, tuple) else {"an object"}, _Fields(cls)
        )
    return None


def _refuse(value: Any, expected: str) -> Misfit:
    """Returns the error for a value that is not what was expected."""
    return Misfit(f"must be {expected}, not {shown(value)}")


def shown(value: Any) -> str:
    """Returns a value as JSON for a message, cut short."""
    text = orjson.dumps(value, repr).decode()
    return text if len(text) <= VALUE_CHARACTERS else f"{text[:VALUE_CHARACTERS]}…"


def _only(cls: type, expected: str) -> HintKind:
    """Returns a kind that takes values of just this type."""

    def refuse(value: Any) -> Any:
        raise _refuse(value, expected)

    return HintKind({WORDS[cls]}, refuse, {cls})


def _is_whole(value: float) -> bool:
    return value.is_integer() and abs(value) < 2**63


def _whole(value: Any) -> int:
    if type(value) is float and _is_whole(value):
        return int(value)
    raise _refuse(value, "a whole number")


def _float(value: Any) -> float:
    if type(value) is int:
        return float(value)
    raise _refuse(value, "a number")


def _from_text(expected: str, make: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Returns a function that converts a text with `make`, and refuses anything else."""

    def convert(value: Any) -> Any:
        try:
            if type(value) is str:
                return make(value)
        except (ValueError, OverflowError):
            pass
        raise _refuse(value, expected)

    return convert


def _timedelta(value: Any) -> timedelta:
    try:
        if type(value) in (int, float) and abs(value) < 86400 * 999_999_999:
            return timedelta(seconds=value)
        return timedelta(seconds=duration_s(value))
    except ValueError:
        raise _refuse(value, 'a duration: seconds, or text such as "1h30m"') from None


def _decimal(value: Any) -> Decimal:
    try:
        number = (
            Decimal(repr(value) if type(value) is float else value)
            if type(value) in (int, float, str)
            else Decimal("NaN")
        )
        if number.is_finite():
            return number
    except InvalidOperation:
        pass
    raise _refuse(value, 'a decimal number such as "12.50"')


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError from None


_NULL = _only(type(None), "null")
PLAIN_KINDS: dict[Any, HintKind] = {
    str: _only(str, "text"),
    bool: _only(bool, "true or false"),
    int: HintKind({"a number"}, _whole, {int}),
    float: HintKind({"a number"}, _float, {float}),
    datetime: HintKind(
        {"text"},
        _from_text('a date and time such as "2026-01-31T09:30:00Z"', datetime.fromisoformat),
    ),
    date: HintKind({"text"}, _from_text('a date such as "2026-01-31"', date.fromisoformat)),
    time: HintKind({"text"}, _from_text('a time of day such as "09:30:00"', time.fromisoformat)),
    timedelta: HintKind({"a number", "text"}, _timedelta),
    Decimal: HintKind({"text", "a number"}, _decimal),
    UUID: HintKind({"text"}, _from_text("a UUID", UUID)),
    bytes: HintKind({"text"}, _from_text("bytes as base64", _bytes)),
    bytearray: HintKind(
        {"text"}, _from_text("bytes as base64", lambda text: bytearray(_bytes(text)))
    ),
}
LISTS: dict[Any, type | None] = {  # what a list becomes; None: it stays a list
    list: None, abc.Sequence: None, abc.MutableSequence: None, abc.Collection: None,
    abc.Iterable: None,
    set: set, abc.Set: set, abc.MutableSet: set, frozenset: frozenset,
}  # fmt: skip
OBJECTS = {dict, abc.Mapping, abc.MutableMapping}


def _list(make: type | None, item: HintKind | None) -> HintKind:
    def convert(value: Any) -> Any:
        if type(value) is not list:
            raise _refuse(value, "a list")
        items = _items(value, item)
        try:
            return items if make is None else make(items)
        except TypeError:
            raise Misfit("is a list with members that cannot be in a set") from None

    return HintKind({"a list"}, convert, {list} if item is None and make is None else set())


def _items(values: list[Any], item: HintKind | None) -> list[Any]:
    if item is None or item.exact.issuperset(map(type, values)):
        return values
    return [_step(item, value, f"[{i}]") for i, value in enumerate(values)]


def _step(kind: HintKind, value: Any, step: str) -> Any:
    """Fits a part of a value; the path of a `Misfit` gets this step."""
    try:
        return kind.fit(value)
    except Misfit as misfit:
        raise misfit.inside(step) from None


def _tuple(args: tuple[Any, ...]) -> HintKind:
    if not args or args[-1] is ...:
        return _list(tuple, kind_of(args[0]) if args else None)
    kinds = [kind_of(arg) for arg in args]

    def convert(value: Any) -> Any:
        if type(value) is not list or len(value) != len(kinds):
            raise _refuse(value, f"a list of {len(kinds)}")
        pairs = enumerate(zip(kinds, value, strict=True))
        return tuple(
            [item if kind is None else _step(kind, item, f"[{i}]") for i, (kind, item) in pairs]
        )

    return HintKind({"a list"}, convert)


def _object(inner: HintKind | None) -> HintKind:
    def convert(value: Any) -> Any:
        if type(value) is not dict:
            raise _refuse(value, "an object")
        if inner is None or inner.exact.issuperset(map(type, value.values())):
            return value
        return {key: _step(inner, item, f".{key}") for key, item in value.items()}

    return HintKind({"an object"}, convert, {dict} if inner is None else set())


def _union(parts: list[HintKind | None]) -> HintKind | None:
    """Returns a kind that takes the first part that fits.

    A value that one of the parts takes as it is, and that no part before it could convert, passes
    at once.
    """
    kinds = [part for part in parts if part is not None]
    if len(kinds) < len(parts):
        return None
    exact: set[type] = set()
    for i, part in enumerate(kinds):
        earlier = [before.takes for before in kinds[:i]]
        exact |= {
            cls for cls in part.exact if all(takes and WORDS[cls] not in takes for takes in earlier)
        }

    def convert(value: Any) -> Any:
        word, problems = WORDS.get(type(value), ""), []
        for part in kinds:
            try:
                return part.fit(value)
            except Misfit as misfit:
                if word in part.takes or not part.takes:
                    problems.append(misfit)
        raise (
            problems[0]
            if len(problems) == 1
            else _refuse(
                value, " or ".join(dict.fromkeys(word for k in kinds for word in sorted(k.takes)))
            )
        )

    takes = (
        frozenset[str]()
        if not all(part.takes for part in kinds)
        else frozenset().union(*(part.takes for part in kinds))
    )
    return HintKind(takes, convert, exact)


def _choice(pairs: list[tuple[Any, Any]]) -> HintKind | None:
    """Returns a kind that takes one of these values.

    Each pair is a value's JSON form, and what that stands for. None if one of them has no JSON
    form.
    """
    try:
        choices = {_as_json(form): meant for form, meant in pairs}
    except TypeError:
        return None
    texts = [text.decode() for text in choices]
    listed = ", ".join(texts[:MAX_CHOICES]) + (", …" if len(texts) > MAX_CHOICES else "")

    def convert(value: Any) -> Any:
        for form in (value, int(value)) if type(value) is float and _is_whole(value) else (value,):
            if (text := _as_json(form)) in choices:
                return choices[text]
        raise _refuse(value, listed if len(texts) == 1 else f"one of {listed}")

    return HintKind({WORDS[type(orjson.loads(text))] for text in choices}, convert)


def _as_json(value: Any) -> bytes:
    return orjson.dumps(
        value, json_form, orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
    )


def _enum(cls: type[enum.Enum]) -> HintKind | None:
    if issubclass(cls, enum.Flag):
        return HintKind({"a number"}, _flag(cls))
    return _choice([(member.value, member) for member in cls])


def _flag(cls: type[enum.Flag]) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        try:
            return cls(PLAIN_KINDS[int].fit(value))
        except ValueError:
            raise _refuse(
                value, f"a sum of {', '.join(str(member.value) for member in cls)}"
            ) from None

    return convert


def _model(cls: Any) -> Callable[[Any], Any]:
    """Returns a function that lets a model validate a value itself, as pydantic's models do."""

    def convert(value: Any) -> Any:
        try:
            return cls.model_validate(value)
        except Exception as problem:
            raise Misfit(f"is refused by {cls.__name__}: {str(problem)[:500]}") from None

    return convert


class ClassField(Record):
    """A field of a class: its name in Python, and its key in JSON."""

    name: str
    key: str
    required: bool
    given: bool = True  # passed to the constructor; otherwise it is computed there


def fields_of(cls: type) -> tuple[ClassField, ...] | None:
    """Returns the fields of a dataclass, NamedTuple or msgspec Struct; None for other classes."""
    if hasattr(cls, "__dataclass_fields__"):
        return tuple(_dataclass_field(field) for field in dataclasses.fields(cls))
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        given = cls._field_defaults  # type: ignore[attr-defined]  # it is a NamedTuple
        return tuple(ClassField(name, name, name not in given) for name in cls._fields)
    if hasattr(cls, "__struct_fields__"):
        names: tuple[str, ...] = cls.__struct_fields__
        keys = getattr(cls, "__struct_encode_fields__", names)
        params = inspect.signature(cls).parameters
        return tuple(
            ClassField(name, key, params[name].default is inspect.Parameter.empty)
            for name, key in zip(names, keys, strict=True)
        )
    return None


def _dataclass_field(field: dataclasses.Field[Any]) -> ClassField:
    without_default = (
        field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    )
    return ClassField(field.name, field.name, field.init and without_default, field.init)


def hints_of(thing: Any, include_extras: bool = False) -> dict[str, Any]:
    """Returns the hints of a function or class.

    Hints that refer to names which only a type checker can find are left out.
    """
    try:
        return typing.get_type_hints(thing, include_extras=include_extras)
    except Exception:
        names = vars(sys.modules.get(thing.__module__, types))
        alone = [
            types.SimpleNamespace(__annotations__={name: hint})
            for name, hint in inspect.get_annotations(thing).items()
        ]
        return {
            name: hint for one in alone for name, hint in _found(one, names, include_extras).items()
        }


def _found(thing: Any, names: dict[str, Any], include_extras: bool) -> dict[str, Any]:
    try:
        return typing.get_type_hints(thing, names, include_extras=include_extras)
    except Exception:
        return {}


class _Fields:
    """Makes an instance of a class from an object with its fields.

    What the fields ask for is looked up at the first use.
    """

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self._fields: dict[str, tuple[ClassField, HintKind | None]] | None = None

    def __call__(self, value: Any) -> Any:
        if type(value) is list and issubclass(self.cls, tuple) and len(value) <= len(self.fields()):
            value = dict(zip(self.fields(), value, strict=False))
        if type(value) is not dict:
            raise _refuse(value, f"an object with the fields of {self.cls.__name__}")
        self._check(value)
        given = {}
        for key, item in value.items():
            field, kind = self.fields()[key]
            if field.given:
                given[field.name] = item if kind is None else _step(kind, item, f".{key}")
        try:
            return self.cls(**given)
        except Exception as problem:  # from its own checks, in __post_init__ or __init__
            raise Misfit(
                f"is refused by {self.cls.__name__}: {type(problem).__name__}: {problem}"
            ) from None

    def fields(self) -> dict[str, tuple[ClassField, HintKind | None]]:
        """Returns the fields by their keys, with what each asks for."""
        if self._fields is None:
            hints = hints_of(self.cls)
            self._fields = {
                field.key: (field, kind_of(hints.get(field.name, Any)))
                for field in fields_of(self.cls) or ()
            }
        return self._fields

    def _check(self, value: dict[str, Any]) -> None:
        """Raises `Misfit` if a required key is missing, or a key is unknown."""
        for key, (field, _) in self.fields().items():
            if field.required and key not in value:
                raise Misfit(f"has no `{key}`, which {self.cls.__name__} needs")
        for key in value:
            if key not in self.fields():
                raise Misfit(
                    f"has `{key}`, which {self.cls.__name__} does not take; it takes "
                    f"{', '.join(self.fields())}"
                )


class _TypedDict:
    """Checks an object for the keys of a TypedDict; other keys are kept."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls
        self._keys: tuple[dict[str, HintKind | None], list[str]] | None = None

    def __call__(self, value: Any) -> Any:
        if type(value) is not dict:
            raise _refuse(value, "an object")
        kinds, required = self.keys()
        for key in required:
            if key not in value:
                raise Misfit(f"has no `{key}`, which {self.cls.__name__} needs")
        return {
            key: item if (kind := kinds.get(key)) is None else _step(kind, item, f".{key}")
            for key, item in value.items()
        }

    def keys(self) -> tuple[dict[str, HintKind | None], list[str]]:
        """Returns what each key asks for, and which keys are required.

        `__required_keys__` alone is not enough: it is wrong where hints are texts.
        """
        if self._keys is None:
            said = {
                key: typing.get_origin(hint)
                for key, hint in hints_of(self.cls, include_extras=True).items()
            }
            unsaid = self.cls.__required_keys__
            needed = [
                key
                for key, origin in said.items()
                if origin is typing.Required or (origin is not typing.NotRequired and key in unsaid)
            ]
            self._keys = {key: kind_of(hint) for key, hint in hints_of(self.cls).items()}, needed
        return self._keys


# the inputs of a function


class TypedInputs:
    """Converts the arguments of a call to the types of the function's hints."""

    def __init__(self, function: Callable[..., Any], signature: inspect.Signature) -> None:
        hints = hints_of(function)
        self.named: dict[str, HintKind | None] = {}
        self.first: tuple[str, HintKind] | None = None  # a single argument that is not named
        self.others: HintKind | None = None  # of `**kwargs`
        positional = False
        for p in signature.parameters.values():
            kind = kind_of(hints[p.name]) if p.name in hints else None
            if kind is not None and p.default is None:
                kind = _union([kind, _NULL])
            if not positional and p.kind in (
                p.POSITIONAL_ONLY,
                p.POSITIONAL_OR_KEYWORD,
                p.VAR_POSITIONAL,
            ):
                positional = True
                self.first = (p.name, kind) if kind else None
            if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
                self.named[p.name] = kind
            elif p.kind is p.VAR_KEYWORD:
                self.others = kind

    def __bool__(self) -> bool:
        return any(self.named.values()) or bool(self.first or self.others)

    def fit(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns the arguments as the hints ask for them. Raises `Misfit` if one does not fit."""
        if args and self.first:
            name, kind = self.first
            args = (_step(kind, args[0], name), *args[1:])
        changed = kwargs
        for key, value in kwargs.items():
            asked = self.named.get(key, self.others)
            if asked is not None and type(value) not in asked.exact:
                changed = {**changed, key: _step(asked, value, key)}
        return args, changed
