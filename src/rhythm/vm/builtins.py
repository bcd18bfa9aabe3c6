"""The builtin functions: pure, over JSON values. `ir.operations.BUILTINS` says how each is called.

`now`, `uuid` and `random` use the turn's inputs, so a turn that is computed twice gets the same
values. Sizes are checked before anything large is made.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rhythm.durations import duration_s
from rhythm.vm.inputs import check_inputs
from rhythm.vm.json_text import UnstorableText, read_json
from rhythm.vm.prices import LONG, walked
from rhythm.vm.python.table import PYTHON_FUNCTIONS
from rhythm.vm.values import (
    Fault,
    LimitFault,
    as_json,
    as_text,
    check_entries,
    check_number,
    check_text,
    contains,
    equal,
    is_number,
    kind,
    measure,
    member,
    truthy,
    whole,
)

if TYPE_CHECKING:
    from rhythm.vm.machine import Machine

_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,19}\s*", re.ASCII)
_POSITION = re.compile(r"[0-9]{1,9}", re.ASCII)
_DECIMAL = re.compile(r"\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*", re.ASCII)
_MONTHS = (
    "January February March April May June July August September October November December".split()
)
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def _wrong(name: str, wanted: str, value: Any) -> Fault:
    return Fault("TypeMismatch", f"`{name}` takes {wanted}, not {kind(value)}")


def _list(name: str, value: Any) -> list[Any]:
    if type(value) is not list:
        raise _wrong(name, "a list", value)
    return value


def _object(name: str, value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise _wrong(name, "an object", value)
    return value


def _text(name: str, value: Any) -> str:
    if type(value) is not str:
        raise _wrong(name, "text", value)
    return value


def _number(name: str, value: Any) -> int | float:
    if not is_number(value):
        raise _wrong(name, "a number", value)
    return value  # type: ignore[no-any-return]  # is_number says so


# lists, objects, numbers


def _len(m: Machine, x: Any) -> int:
    if type(x) not in (list, dict, str):
        raise _wrong("len", "a list, an object or text", x)
    return len(x)


def range_bounds(m: Machine, *args: Any) -> tuple[int, int, int]:
    """Returns start, stop and step of a `range` call."""
    numbers = [whole(arg, "an argument of `range`") for arg in args]
    start, stop = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    step = numbers[2] if len(numbers) > 2 else 1
    if step == 0:
        raise Fault("InvalidArgument", "the step of `range` cannot be 0")
    # `len(range(…))` fails beyond 63 bits
    check_entries(max(0, -((start - stop) // step)), m.limits)
    return start, stop, step


def _range(m: Machine, *args: Any) -> list[int]:
    return list(range(*range_bounds(m, *args)))


def _keys(m: Machine, x: Any) -> list[str]:
    return list(_object("keys", x))


def _values(m: Machine, x: Any) -> list[Any]:
    return list(_object("values", x).values())


def _entries(m: Machine, x: Any) -> list[list[Any]]:
    return [[key, value] for key, value in _object("entries", x).items()]


def _comparable(m: Machine, name: str, items: list[Any], rounds: int = 1) -> list[Any]:
    """Returns the items if they can be compared. `rounds`: about how often each one is."""
    if items and type(items[0]) is str:
        m.charge(rounds * (sum(len(item) for item in items if type(item) is str) // LONG))
    if not all(is_number(item) for item in items) and not all(type(item) is str for item in items):
        raise Fault("TypeMismatch", f"`{name}` compares numbers with numbers or texts with texts")
    return items


def _extreme(name: str, pick: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    def extreme(m: Machine, *args: Any) -> Any:
        items = _list(name, args[0]) if len(args) == 1 else list(args)
        if not items:
            raise Fault("InvalidArgument", f"`{name}` of nothing")
        return pick(_comparable(m, name, items))

    return extreme


def _sum(m: Machine, x: Any) -> int | float:
    total: int | float = 0
    for item in _list("sum", x):
        total = check_number(total + _number("sum", item))
    return total


def _round(m: Machine, x: Any, digits: Any = 0) -> int | float:
    places = whole(digits, "the number of digits")
    if not 0 <= places <= 15:
        raise Fault("InvalidArgument", "`round` takes 0 to 15 digits")
    if type(x) is int:
        return x
    scaled = _number("round", x) * 10**places
    if not math.isfinite(scaled) or abs(scaled) >= 2**53:
        return x if places else _whole_float(x)
    below = math.floor(scaled)
    rounded = below + (scaled - below >= 0.5)  # adding 0.5 first would round 0.49999999999999994 up
    return float(rounded / 10**places) if places else rounded


def _whole_float(x: float) -> int:
    return int(check_number(int(x)))


def _floor(m: Machine, x: Any) -> int:
    return int(check_number(math.floor(_number("floor", x))))


def _ceil(m: Machine, x: Any) -> int:
    return int(check_number(math.ceil(_number("ceil", x))))


def _abs(m: Machine, x: Any) -> int | float:
    return check_number(abs(_number("abs", x)))


def _sort(m: Machine, x: Any, key: Any = None) -> list[Any]:
    items = _list("sort", x)
    rounds = len(items).bit_length()
    if key is None:
        return sorted(_comparable(m, "sort", items, rounds))
    name = _text("sort", key)
    by = _comparable(m, "sort", [member(item, name) for item in items], rounds)
    return [items[i] for i in sorted(range(len(items)), key=by.__getitem__)]


def _unique(m: Machine, x: Any) -> list[Any]:
    found: dict[Any, Any] = {}
    for item in _list("unique", x):
        nested = type(item) is list or type(item) is dict
        found.setdefault(canonical(m, item) if nested else (type(item) is bool, item), item)
    return list(found.values())


def _reverse(m: Machine, x: Any) -> Any:
    if type(x) not in (list, str):
        raise _wrong("reverse", "a list or text", x)
    return x[::-1]


def _slice(m: Machine, x: Any, start: Any, end: Any = None) -> Any:
    if type(x) not in (list, str):
        raise _wrong("slice", "a list or text", x)
    return x[
        whole(start, "the start of `slice`") : None
        if end is None
        else whole(end, "the end of `slice`")
    ]


def _concat(m: Machine, *lists: Any) -> list[Any]:
    check_entries(sum(len(_list("concat", x)) for x in lists), m.limits)
    return [item for x in lists for item in x]


def _flatten(m: Machine, x: Any) -> list[Any]:
    items = _list("flatten", x)
    check_entries(sum(len(item) if type(item) is list else 1 for item in items), m.limits)
    return [inner for item in items for inner in (item if type(item) is list else [item])]


def _contains(m: Machine, container: Any, x: Any) -> bool:
    return contains(x, container, m.charge)


def _find_index(m: Machine, container: Any, x: Any) -> int:
    if type(container) is str:
        return container.find(_text("find_index", x))
    found = (i for i, item in enumerate(_list("find_index", container)) if equal(item, x, m.charge))
    return next(found, -1)


def _get(m: Machine, container: Any, key: Any, default: Any = None) -> Any:
    if type(key) is str and not (type(container) is dict and key in container):
        path: list[Any] = key.split(".")
    else:
        path = key if type(key) is list else [key]
    value = container
    for part in path:
        position = int(part) if type(part) is str and _POSITION.fullmatch(part) else part
        if type(value) is dict and type(part) is str and part in value:
            value = value[part]
        elif (
            type(value) in (list, str)
            and type(position) is int
            and -len(value) <= position < len(value)
        ):
            value = value[position]
        else:
            return default
    return value


def _merge(m: Machine, *objects: Any) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for item in objects:
        merged.update(_object("merge", item))
        check_entries(len(merged), m.limits)
    return merged


def _pick(m: Machine, x: Any, names: Any) -> dict[str, Any]:
    source = _object("pick", x)
    return {
        name: source[name]
        for name in (_text("pick", n) for n in _list("pick", names))
        if name in source
    }


def _omit(m: Machine, x: Any, names: Any) -> dict[str, Any]:
    leave = {_text("omit", name) for name in _list("omit", names)}
    return {name: value for name, value in _object("omit", x).items() if name not in leave}


# text


def _upper(m: Machine, x: Any) -> str:
    return check_text(_text("upper", x).upper(), m.limits)  # "ß" becomes "SS"


def _lower(m: Machine, x: Any) -> str:
    return check_text(_text("lower", x).lower(), m.limits)


def _trim(m: Machine, x: Any) -> str:
    return _text("trim", x).strip()


def _split(m: Machine, x: Any, separator: Any = None) -> list[str]:
    text = _text("split", x)
    if separator is None:
        check_entries(len(text) // 2 + 1 if len(text) > m.limits.entries else 0, m.limits)
        return text.split()
    mark = _text("split", separator)
    check_entries(text.count(mark) + 1 if mark else len(text), m.limits)
    return text.split(mark) if mark else list(text)


def _join(m: Machine, x: Any, separator: Any = "") -> str:
    mark, parts = _text("join", separator), []
    size = 0
    for item in _list("join", x):
        if type(item) in (list, dict):
            raise _wrong("join", "a list of texts and numbers", item)
        parts.append(as_text(item, m.limits, m.charge))
        size += len(parts[-1]) + len(mark)
        if size - len(mark) > m.limits.text_bytes:
            raise LimitFault(f"a text over {m.limits.text_bytes // 1024:,} KiB")
    return check_text(mark.join(parts), m.limits)


def _replace(m: Machine, x: Any, old: Any, new: Any) -> str:
    text, before, after = _text("replace", x), _text("replace", old), _text("replace", new)
    if not before:
        raise Fault("InvalidArgument", "`replace` needs something to look for")
    if len(text) + text.count(before) * (len(after) - len(before)) > m.limits.text_bytes:
        raise LimitFault(f"a text over {m.limits.text_bytes // 1024:,} KiB")
    return check_text(text.replace(before, after), m.limits)


def _starts_with(m: Machine, x: Any, prefix: Any) -> bool:
    return _text("starts_with", x).startswith(_text("starts_with", prefix))


def _ends_with(m: Machine, x: Any, suffix: Any) -> bool:
    return _text("ends_with", x).endswith(_text("ends_with", suffix))


# conversions


def _str(m: Machine, x: Any) -> str:
    return as_text(x, m.limits, m.charge)


def _int(m: Machine, x: Any) -> int:
    if type(x) is str and len(x) < 400 and _INTEGER.fullmatch(x):
        return int(check_number(int(x)))
    if is_number(x):
        return int(check_number(int(x)))
    if type(x) is bool:
        return int(x)
    raise Fault("InvalidArgument", f"`int` cannot read {_shown(x)}")


def _float(m: Machine, x: Any) -> float:
    if type(x) is str and len(x) < 400 and _DECIMAL.fullmatch(x):
        return float(check_number(float(x)))
    if is_number(x):
        return float(x)
    raise Fault("InvalidArgument", f"`float` cannot read {_shown(x)}")


def _shown(value: Any) -> str:
    return f'"{value[:40]}"' if type(value) is str else kind(value)


def _bool(m: Machine, x: Any) -> bool:
    return truthy(x)


def _json(m: Machine, x: Any) -> str:
    return as_json(x, m.limits, m.charge)


def _parse_json(m: Machine, x: Any) -> Any:
    try:
        return read_json(m, _text("parse_json", x))
    except UnstorableText as problem:
        raise Fault("InvalidArgument", f"not JSON that can be stored: {problem}") from None
    except ValueError as problem:
        raise Fault("InvalidArgument", f"not JSON: {problem}") from None


# Time: ISO 8601 text in UTC.


def parse_time(value: Any) -> datetime:
    """Returns the time in a text. Raises Fault if it is none.

    Without an offset it is UTC, without a time of day it is midnight.
    """
    try:
        if type(value) is not str or len(value) > 64:
            raise ValueError
        time = datetime.fromisoformat(value)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Fault(
            "InvalidArgument",
            f"not a time: {_shown(value)}; write ISO 8601, as in 2026-11-15T09:30:00Z",
        ) from None


def show_time(time: datetime) -> str:
    """Returns the time as text, in UTC, with fractions of a second only if there are any."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _now(m: Machine) -> str:
    m.drew = True
    return m.inputs.now


def _date_add(m: Machine, time: Any, duration: Any) -> str:
    try:
        negative = type(duration) is str and duration.startswith("-")
        seconds = (
            duration if is_number(duration) else duration_s(duration[1:] if negative else duration)
        )
        return show_time(parse_time(time) + timedelta(seconds=-seconds if negative else seconds))
    except ValueError as problem:
        raise Fault("InvalidArgument", f"`date_add`: {problem}") from None
    except OverflowError:
        raise Fault("InvalidArgument", "`date_add`: a time outside the years 1 to 9999") from None


def _date_diff(m: Machine, later: Any, earlier: Any) -> int | float:
    seconds = (parse_time(later) - parse_time(earlier)).total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def _format_date(m: Machine, time: Any, form: Any) -> str:
    moment, pattern = parse_time(time), _text("format_date", form)
    pieces = {
        "%Y": f"{moment.year:04}",
        "%y": f"{moment.year % 100:02}",
        "%m": f"{moment.month:02}",
        "%d": f"{moment.day:02}",
        "%H": f"{moment.hour:02}",
        "%M": f"{moment.minute:02}",
        "%S": f"{moment.second:02}",
        "%j": f"{_day_of_year(moment):03}",
        "%B": _MONTHS[moment.month - 1],
        "%b": _MONTHS[moment.month - 1][:3],
        "%A": _DAYS[moment.weekday()],
        "%a": _DAYS[moment.weekday()][:3],
        "%%": "%",
    }
    unknown = [code for code in re.findall("%.?", pattern) if code not in pieces]
    if unknown:
        raise Fault(
            "InvalidArgument",
            f"`format_date` does not know {unknown[0]}; it knows {' '.join(sorted(pieces))}",
        )
    return check_text(re.sub("%.", lambda code: pieces[code[0]], pattern), m.limits)


def _day_of_year(moment: datetime) -> int:
    return (moment.date() - date(moment.year, 1, 1)).days + 1


# Derived from the turn's seed.


def _uuid(m: Machine) -> str:
    bits = bytearray(m.draw()[:16])
    bits[6], bits[8] = bits[6] & 0x0F | 0x40, bits[8] & 0x3F | 0x80
    text = bits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _random(m: Machine) -> float:
    return (int.from_bytes(m.draw()[:8]) >> 11) / 2**53


def canonical(m: Machine, value: Any) -> str:
    """Returns JSON text that is the same for equal values: sorted keys, 1.0 as 1."""
    size, parts = measure(value, m.limits.text_bytes, "the value", m.limits.depth)
    m.charge(2 * walked(parts, size))
    return json.dumps(
        _plain_numbers(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True
    )


def _plain_numbers(value: Any) -> Any:
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is list:
        return [_plain_numbers(item) for item in value]
    return (
        {key: _plain_numbers(item) for key, item in value.items()} if type(value) is dict else value
    )


def _hash(m: Machine, x: Any) -> str:
    return hashlib.sha256(canonical(m, x).encode("utf-8", "surrogatepass")).hexdigest()


def _base64(m: Machine, x: Any) -> str:
    return check_text(
        base64.b64encode(_text("base64", x).encode("utf-8", "surrogatepass")).decode(), m.limits
    )


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": _len, "range": _range, "keys": _keys, "values": _values, "entries": _entries,
    "min": _extreme("min", min),
    "max": _extreme("max", max), "sum": _sum, "round": _round, "floor": _floor, "ceil": _ceil,
    "abs": _abs, "sort": _sort,
    "unique": _unique, "reverse": _reverse, "slice": _slice, "concat": _concat, "flatten": _flatten,
    "contains": _contains,
    "find_index": _find_index, "upper": _upper, "lower": _lower, "trim": _trim, "split": _split,
    "join": _join, "replace": _replace,
    "starts_with": _starts_with, "ends_with": _ends_with, "str": _str, "int": _int, "float": _float,
    "bool": _bool, "json": _json,
    "parse_json": _parse_json, "get": _get, "merge": _merge, "pick": _pick, "omit": _omit,
    "now": _now, "date_add": _date_add,
    "date_diff": _date_diff, "format_date": _format_date, "uuid": _uuid, "random": _random,
    "hash": _hash, "base64": _base64, "check_inputs": check_inputs, **PYTHON_FUNCTIONS,
}  # fmt: skip
