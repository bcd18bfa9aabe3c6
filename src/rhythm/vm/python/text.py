"""Values as Python writes them: `str`, `repr`, f-strings with formats, and `%`.

Widths and precisions are bounded, and what a text will be is measured before it is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rhythm.vm.prices import walked
from rhythm.vm.python.raised import named
from rhythm.vm.values import Fault, LimitFault, check_text, measure

if TYPE_CHECKING:
    from rhythm.vm.machine import Machine

MAX_WIDTH = 10_000  # the greatest width or precision of a format
LONGEST_NUMBER = 400  # characters of a number without a width: 1e308 has 309 digits
_CONVERSIONS: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}
_DIGITS = re.compile(r"\d+")
_FLAGS = "#0- +"
_BRACKETS = {"(": 1, ")": -1}


def written(m: Machine, value: Any, write: Callable[[Any], str]) -> str:
    """Returns the value as `str`, `repr` or `ascii` writes it."""
    if type(value) is list or type(value) is dict:
        size, parts = measure(value, m.limits.text_bytes, "the text", m.limits.depth)
        m.charge(walked(parts, size))
    elif type(value) is str:
        if write is str:
            return value
        m.charge(len(value) // 16)
    return check_text(write(value), m.limits)


def _str(m: Machine, x: Any) -> str:
    return written(m, x, str)


def _repr(m: Machine, x: Any) -> str:
    return written(m, x, repr)


def _format(m: Machine, x: Any, spec: Any, conversion: Any = "") -> str:
    """Returns what `f"{x!conversion:spec}"` gives."""
    if type(spec) is not str:
        raise TypeError(f"format() argument 2 must be str, not {type(spec).__name__}")
    if conversion:
        write = _CONVERSIONS.get(conversion) if type(conversion) is str else None
        if write is None:
            raise Fault("ValueError", f"a conversion must be r, s or a, not {named(conversion)}")
        x = written(m, x, write)
    if not spec:
        return written(m, x, str)
    m.charge(len(spec))
    m.charge(sum(_bounded(digits) for digits in _DIGITS.findall(spec)) // 4)
    if spec.endswith("n"):
        raise Fault("ValueError", "the format 'n' depends on the machine; write ',' or 'd'")
    text = format(x, spec)
    return check_text(_storable(text) if spec.endswith("c") else text, m.limits)


def _bounded(digits: str) -> int:
    if len(digits.lstrip("0")) > len(str(MAX_WIDTH)) or int(digits) > MAX_WIDTH:
        raise Fault(
            "ValueError", f"a width or precision is at most {MAX_WIDTH:,} here, not {digits:.20}"
        )
    return int(digits)


def _storable(text: str) -> str:
    """Returns the text. Raises Fault if `%c` has put a character into it that cannot be stored."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Fault("ValueError", "a character that cannot be stored") from None
    if "\0" in text:
        raise Fault("ValueError", "a character that cannot be stored")
    return text


def _percent(m: Machine, template: Any, values: Any) -> str:
    """Returns what `template % values` gives: the values are a list, or a dict for `%(key)s`."""
    if type(template) is not str or type(values) not in (list, dict):
        raise TypeError("a text and a list or dict of values")
    m.charge(len(template))
    size, position = len(template), 0
    for key, width, how in _conversions(template):
        m.charge(4 + width // 4)
        if how == "%":
            continue
        value = _value_for(values, key, position)
        position += 1
        size += width + _size(m, value, how)
        if size > m.limits.text_bytes:
            raise LimitFault(f"a text over {m.limits.text_bytes // 1024:,} KiB")
    text = template % (values if type(values) is dict else tuple(values))
    return check_text(_storable(text) if "c" in template else text, m.limits)


def _value_for(values: Any, key: str | None, position: int) -> Any:
    if type(values) is dict:
        return values if key is None else values.get(key)
    return values[position] if position < len(values) else None


def _size(m: Machine, value: Any, how: str) -> int:
    """Returns at least how many characters the value takes, without its width."""
    if how not in _CONVERSIONS:
        return LONGEST_NUMBER
    return len(written(m, value, _CONVERSIONS[how]))


def _conversions(template: str) -> Iterator[tuple[str | None, int, str]]:
    """Yields the key, the width and precision together, and the letter of each conversion.

    It reads a template as Python does. What Python will refuse may be left out.
    """
    at = template.find("%")
    while at >= 0:
        at, key = _key(template, at + 1)
        while template[at : at + 1] and template[at] in _FLAGS:
            at += 1
        at, width = _number(template, at)
        precision = 0
        if template[at : at + 1] == ".":
            at, precision = _number(template, at + 1)
        if template[at : at + 1] and template[at] in "hlL":
            at += 1
        yield key, width + precision, template[at : at + 1]
        at = template.find("%", at + 1)


def _key(template: str, at: int) -> tuple[int, str | None]:
    """Returns the position after the `(key)` of a conversion, and the key."""
    if template[at : at + 1] != "(":
        return at, None
    depth, end = 1, at + 1
    while depth and end < len(template):
        depth += _BRACKETS.get(template[end], 0)
        end += 1
    return end, template[at + 1 : end - 1]


def _number(template: str, at: int) -> tuple[int, int]:
    """Returns the position after a width or precision in the template, and the number itself."""
    if template[at : at + 1] == "*":
        raise Fault("ValueError", "a width is written as a number here, not as *; use an f-string")
    end = at
    while "0" <= template[end : end + 1] <= "9":
        end += 1
    return end, _bounded(template[at:end]) if end > at else 0


TEXTS: dict[str, Callable[..., Any]] = {
    "str": _str, "repr": _repr, "format": _format, "percent": _percent,
}  # fmt: skip
