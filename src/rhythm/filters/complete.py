"""What can be written next in a filter, for shells and for the fields of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rhythm.filters.fields import FIELDS, STATUSES, Field
from rhythm.filters.terms import ATTRIBUTE, quoted

Names = Callable[[str], Iterable[str]]  # the values of a field that are known, by its name
_SIGN = {"length": (">", "<"), "span": (":",)}


def complete(text: str, names: Names = lambda field: ()) -> list[str]:
    """Returns the texts that a filter may become when its last word is written to its end.

    `names` gives the values of a field, such as the names of workflows; those of `status` are
    known. A text whose last word is finished becomes nothing else.
    """
    before, word = _last_word(text)
    minus = "-" if word.startswith("-") else ""
    field, sign, value = word.removeprefix("-").partition(":")
    if not sign:
        return [f"{before}{minus}{each}" for each in _fields(field, bool(minus))]
    known = FIELDS.get(field)
    if known is None or '"' in value:
        return []
    *written, last = value.split(",")
    offered = STATUSES if known.kind == "status" else names(field)
    begun = before + minus + field + sign + "".join(f"{each}," for each in written)
    return [
        f"{begun}{quoted(each)}"
        for each in offered
        if each.startswith(last) and each != last and each not in written
    ]


def _fields(begun: str, negative: bool) -> list[str]:
    return [
        name + sign
        for name, field in FIELDS.items()
        if name.startswith(begun) and (field.may_negate or not negative)
        for sign in _signs(field)
    ]


def _signs(field: Field) -> tuple[str, ...]:
    if field.name == ATTRIBUTE:
        return (".",)
    return (">",) if field.name == "stuck" else _SIGN.get(field.kind, (":",))


def _last_word(text: str) -> tuple[str, str]:
    """Returns what stands before the last word, and that word; a space in quotes ends no word."""
    in_quotes, begin = False, 0
    for place, character in enumerate(text):
        if character == '"':
            in_quotes = not in_quotes
        elif character.isspace() and not in_quotes:
            begin = place + 1
    return text[:begin], text[begin:]
