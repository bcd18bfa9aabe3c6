"""From the JSON of an answer to the views that `rhythm.app` returns. Pure.

A view says by its hints what its fields are. A field that this version does not know is left out:
the server may be newer. One that is missing or of another type is refused.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, NoReturn, TypeVar, cast

from rhythm.record import Record

R = TypeVar("R", bound=Record)
Reader = Callable[[Any], Any]
# lists and objects in one another; what is stored has at most 64, and an answer some around it
MOST_NESTED = 100


class NotUnderstood(Exception):
    """An answer is not what this version of Rhythm understands; the text says what is wrong."""


def parsed(data: bytes) -> Any:
    """Returns the value of a JSON document. Raises `NotUnderstood` if it is none."""
    try:
        value = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError) as problem:
        raise NotUnderstood(f"it is not JSON: {problem}") from None
    if _is_deeper(value, MOST_NESTED):
        raise NotUnderstood(f"its JSON is nested more than {MOST_NESTED} deep")
    return value


def decoded(kind: type[R], value: Any) -> R:
    """Returns the view that an object stands for. Raises `NotUnderstood` if it does not fit."""
    if not isinstance(value, dict):
        raise NotUnderstood(f"{kind.__name__} is {_named(value)}, not an object")
    found = dict[str, Any]()
    for name, read in _fields(cast(Any, kind)).items():
        if name in value:
            try:
                found[name] = read(value[name])
            except NotUnderstood as problem:
                raise NotUnderstood(f"{kind.__name__}.{name}: {problem}") from None
        elif name in kind._required:
            raise NotUnderstood(f"{kind.__name__} has no field {name}")
    return kind(**found)


def field(value: Any, name: str, kind: Any) -> Any:
    """Returns a field of an object, which must be of this type. Raises `NotUnderstood` if not."""
    if not isinstance(value, dict) or name not in value:
        raise NotUnderstood(f"it has no field {name}")
    try:
        return _reader(kind)(value[name])
    except NotUnderstood as problem:
        raise NotUnderstood(f"{name}: {problem}") from None


@cache
def _fields(kind: type[Record]) -> dict[str, Reader]:
    hints = typing.get_type_hints(kind)
    return {name: _reader(hints[name]) for name in kind._fields}


@cache
def _reader(hint: Any) -> Reader:
    """Returns the function that reads a value of this type from JSON."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return lambda value: value
    if isinstance(hint, type) and issubclass(hint, Record):
        return lambda value: decoded(hint, value)
    if hint is datetime:
        return _moment
    if origin in (typing.Union, types.UnionType):
        return _either([_reader(one) for one in args])
    if origin in (tuple, list):
        read = _reader(args[0])
        return lambda value: origin(map(read, _of_type(value, list)))
    if origin in (dict, Mapping):
        return lambda value: _of_type(value, dict)
    if hint is float:
        return _float
    return lambda value: _of_type(value, hint)


def _either(readers: list[Reader]) -> Reader:
    """Returns a function that reads a value as the first of several types that fits."""

    def read(value: Any) -> Any:
        for one in readers[:-1]:
            try:
                return one(value)
            except NotUnderstood:
                continue
        return readers[-1](value)

    # None first: so what is said of a wrong value is about the type that it should have
    readers.sort(key=lambda one: one is not _reader(cast(Any, types.NoneType)))
    return read


def _of_type(value: Any, wanted: type | tuple[type, ...]) -> Any:
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        _refuse(value)
    return value


def _float(value: Any) -> float:
    try:
        return float(_of_type(value, (int, float)))
    except OverflowError:
        _refuse(value)


def _moment(value: Any) -> datetime:
    try:
        found = datetime.fromisoformat(_of_type(value, str))
    except ValueError:
        _refuse(value)
    return found if found.tzinfo is not None else _refuse(value)


def _refuse(value: Any) -> NoReturn:
    raise NotUnderstood(f"{_named(value)} does not fit")


def _named(value: Any) -> str:
    """Returns a value in a few words: what a server has sent is not repeated at length."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return f"{value!r:.40}"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no value")


def _is_deeper(value: Any, most: int) -> bool:
    """Returns whether lists and objects lie more than `most` deep in one another."""
    level = [value]
    for _ in range(most):
        level = [
            inner
            for each in level
            for inner in (
                each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
            )
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True
