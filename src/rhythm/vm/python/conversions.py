"""Values of another type: `int`, `float`, `list`, `dict`, JSON text, and questions about types."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rhythm.vm.json_text import read_json
from rhythm.vm.prices import LONG, characters, walked
from rhythm.vm.python.raised import check_keys, named, number
from rhythm.vm.python.walking import items_of
from rhythm.vm.values import Fault, LimitFault, check_entries, check_text, measure

if TYPE_CHECKING:
    from rhythm.vm.machine import Machine

DIGITS = 4300  # Python's own limit, whatever the application that runs the worker has set
DEEPEST_INDENT = 100
_TYPES = ("str", "int", "float", "bool", "list", "dict", "NoneType")


def _int(m: Machine, x: Any, *base: Any) -> int:
    if type(x) is str:
        m.charge(len(x) // 16)
        if len(digits := x.strip()) > DIGITS:
            raise ValueError(
                f"Exceeds the limit ({DIGITS} digits) for integer string conversion: value has "
                f"{len(digits)} digits"
            )
    value: int = number(int(x, *base))
    return value


def _float(m: Machine, x: Any) -> float:
    m.charge(characters(x) // 16)
    value = float(x)
    if value - value != 0:
        raise ValueError(f"could not convert to a float that is a number: {value}")
    return value or 0.0  # a database keeps no sign of zero


def _list(m: Machine, *x: Any) -> list[Any]:
    return items_of(m, *x) if x else []


def _dict(m: Machine, *x: Any) -> dict[str, Any]:
    return entries_of(m, *x) if x else {}


def entries_of(m: Machine, x: Any) -> dict[str, Any]:
    """Returns the dict of a dict or of pairs. Raises what `dict(x)` raises."""
    if type(x) is dict:
        return x
    if type(x) is list:
        check_entries(len(x), m.limits)
        keys = sum(characters(pair[0]) for pair in x if type(pair) is list and pair)
        # What is no list is made one, before Python sees that it is no pair.
        others = sum(len(pair) for pair in x if type(pair) in (str, dict))
        m.charge(4 * len(x) + keys // LONG + others)
    made = dict(x)
    check_keys(made)
    return made


def _isinstance(m: Machine, x: Any, names: Any) -> bool:
    if type(names) is not list:
        raise Fault("TypeError", "a list of names of types")
    m.charge(len(names))
    for name in names:
        if name not in _TYPES:
            raise Fault(
                "TypeError", f"a type must be one of {', '.join(_TYPES)}, not '{named(name)}'"
            )
    return type(x).__name__ in names or (type(x) is bool and "int" in names)


def _dumps(m: Machine, x: Any, sort_keys: Any = False, indent: Any = None) -> str:
    size, parts = measure(x, m.limits.text_bytes, "the JSON text", m.limits.depth)
    m.charge(2 * walked(parts, size))
    if indent is not None:
        step = _indent(indent)
        m.charge(8 * parts)
        if size + step * _indentation(x) > m.limits.text_bytes:
            raise LimitFault(f"a text over {m.limits.text_bytes // 1024:,} KiB")
    return check_text(json.dumps(x, sort_keys=bool(sort_keys), indent=indent), m.limits)


def _indent(indent: Any) -> int:
    step = len(indent) if type(indent) is str else indent
    if not isinstance(step, int) or step > DEEPEST_INDENT:
        raise Fault("ValueError", f"`indent` is a number or text up to {DEEPEST_INDENT}")
    return max(step, 0)


def _indentation(value: Any) -> int:
    """Returns how many steps of indentation the lines of the value have together."""
    total, depth, level = 0, 0, [value]
    while level := [item for item in level if type(item) in (list, dict)]:
        total += depth * len(level)  # of the closing brackets
        depth += 1
        level = [part for item in level for part in (item.values() if type(item) is dict else item)]
        total += depth * len(level)
    return total


def _loads(m: Machine, text: Any) -> Any:
    if type(text) is not str:
        raise TypeError(
            f"the JSON object must be str, bytes or bytearray, not {type(text).__name__}"
        )
    return read_json(m, text)


CONVERSIONS: dict[str, Callable[..., Any]] = {
    "int": _int, "float": _float, "list": _list, "dict": _dict, "isinstance": _isinstance,
    "dumps": _dumps, "loads": _loads,
}  # fmt: skip
