"""Reads JSON text into a value that the interpreter can hold and a database can store."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from rhythm.limits import INT_MAX, INT_MIN
from rhythm.vm.values import check_entries, unstorable, weigh

if TYPE_CHECKING:
    from rhythm.vm.machine import Machine


class UnstorableText(ValueError):
    """The text is JSON, and holds a text that no database can store."""


def read_json(m: Machine, text: str) -> Any:
    """Returns the value of a JSON text.

    Raises ValueError if it is not JSON, or has a key twice or a number that does not fit;
    LimitFault if the value is too large.
    """
    try:
        value = json.loads(
            text,
            parse_constant=_no_constant,
            object_pairs_hook=_unique_keys,
            parse_int=_parse_int,
            parse_float=_parse_float,
        )
    except RecursionError as problem:
        raise ValueError(str(problem)) from None
    weigh(value, m.limits.text_bytes, "the value", m.limits.depth)
    if text.count(",") >= m.limits.entries:
        _check_every_size(m, value)
    if "\\u" in text and (found := unstorable(value)):
        raise UnstorableText(found)
    return value


def _check_every_size(m: Machine, value: Any) -> None:
    level = [value]
    while level := [item for item in level if type(item) in (list, dict)]:
        for item in level:
            check_entries(len(item), m.limits)
        level = [
            inner for item in level for inner in (item.values() if type(item) is dict else item)
        ]


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is written twice")
    return found


def _parse_int(digits: str) -> int:
    if len(digits) > 20 or not INT_MIN <= int(digits) <= INT_MAX:
        raise ValueError("an integer over 64 bits")
    return int(digits)


def _parse_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number too large to hold")
    return value
