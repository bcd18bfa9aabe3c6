"""What is known of a value before it is there: its type, its fields, and what it may be.

Hints become shapes (`hint_shapes`), and so do values that are written out. `misfit` says whether
one can never be the other. Where nothing is known, the shape is None, and nothing is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rhythm.record import Record

NULL, BOOL, NUMBER = "null", "true or false", "a number"
TEXT, LIST, OBJECT = "text", "a list", "an object"
MAX_CHOICES = 10


class Kind(Record):
    """One type that a value may have."""

    word: str  # the JSON type, as messages name it
    python: type | None = None  # what Python code sees; None if that is not known
    name: str = ""  # of the class that a hint names
    values: tuple[Any, ...] | None = None  # all that it may be
    whole: bool = False  # a number without a fraction
    items: ValueShape | None = None  # of the elements of a list, or the values of an object
    parts: tuple[ValueShape | None, ...] | None = None  # of a list whose length is known
    fields: Mapping[str, ValueShape | None] | None = None  # of an object whose keys are known
    required: frozenset[str] = frozenset()  # the keys that are there, or must be
    open: bool = True  # there may be other keys


class ValueShape(Record):
    """What a value may be: one of these kinds. None of them: no value comes here."""

    kinds: tuple[Kind, ...]

    @property
    def words(self) -> str:
        """The JSON types, for people."""
        return " or ".join(sorted({kind.word for kind in self.kinds}))


def of_words(words: Iterable[str]) -> ValueShape | None:
    """Returns the shape of values of these JSON types; None if there are none."""
    kinds = tuple(Kind(word) for word in sorted(words))
    return ValueShape(kinds) if kinds else None


def either(shapes: Iterable[ValueShape | None]) -> ValueShape | None:
    """Returns the shape of a value that has one of these shapes."""
    kinds: list[Kind] = []
    for shape in shapes:
        if shape is None:
            return None
        kinds += [kind for kind in shape.kinds if kind not in kinds]
    return ValueShape(tuple(kinds))


def loose(shape: ValueShape | None) -> ValueShape | None:
    """Returns the shape without what is known of the inside: for a value that is changed."""
    if shape is None:
        return None
    outside = (Kind(kind.word, kind.python, kind.name) for kind in shape.kinds)
    return either(ValueShape((kind,)) for kind in outside)


def json_type(value: object) -> str:
    """Returns the JSON type of a value, as messages name it."""
    if value is None:
        return NULL
    names: list[tuple[type, str]] = [
        (bool, BOOL),
        (int, NUMBER),
        (float, NUMBER),
        (str, TEXT),
        (list, LIST),
    ]
    return next((name for cls, name in names if isinstance(value, cls)), OBJECT)


def of_value(value: Any) -> ValueShape:
    """Returns the shape of a JSON value that is known."""
    word = json_type(value)
    if isinstance(value, list):
        return ValueShape((Kind(word, list, parts=tuple(map(of_value, value))),))
    if isinstance(value, dict):
        return of_object({key: of_value(item) for key, item in value.items()})
    return ValueShape((Kind(word, type(value), values=(value,)),))


def of_object(fields: Mapping[str, ValueShape | None], others: bool = False) -> ValueShape:
    """Returns the shape of an object that is written out; `others`: it may have other keys, too."""
    kind = Kind(OBJECT, dict, fields=fields, required=frozenset(fields), open=others)
    return ValueShape((kind,))


Misfit = tuple[str, str]  # the path to what is wrong, and what is wrong with it


def misfit(given: ValueShape | None, wanted: ValueShape | None) -> Misfit | None:
    """Returns why a value can never be what is wanted; None if it may be."""
    if given is None or wanted is None or not given.kinds or not wanted.kinds:
        return None
    words = {kind.word for kind in wanted.kinds}
    if words.isdisjoint(kind.word for kind in given.kinds):
        return "", f"must be {wanted.words}, not {given.words}"
    found = [_of_kind(kind, wanted) for kind in given.kinds]
    return None if None in found else found[0]


def _of_kind(given: Kind, wanted: ValueShape) -> Misfit | None:
    same = [kind for kind in wanted.kinds if kind.word == given.word]
    if not same:
        return "", f"must be {wanted.words}, not {given.word}"
    found = [_value(given, kind) or _inside(given, kind) for kind in same]
    return None if None in found else found[0]


def _value(given: Kind, wanted: Kind) -> Misfit | None:
    if given.values is None:
        return None
    shown = " or ".join(map(_shown, given.values))
    if wanted.values is not None and not any(_is_in(v, wanted.values) for v in given.values):
        choices = [_shown(value) for value in wanted.values[:MAX_CHOICES]]
        choices += ["…"] if len(wanted.values) > MAX_CHOICES else []
        return (
            "",
            f"must be {'one of ' if len(choices) > 1 else ''}{', '.join(choices)}, not {shown}",
        )
    if wanted.whole and all(value != value // 1 for value in given.values):
        return "", f"must be a whole number, not {shown}"
    return None


def _is_in(value: Any, values: tuple[Any, ...]) -> bool:
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in values)


def _shown(value: Any) -> str:
    import json

    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _inside(given: Kind, wanted: Kind) -> Misfit | None:
    if given.word == LIST:
        return _in_list(given, wanted)
    if given.word == OBJECT:
        return _in_object(given, wanted)
    return None


def _in_list(given: Kind, wanted: Kind) -> Misfit | None:
    if wanted.parts is not None and given.parts is not None:
        if len(wanted.parts) != len(given.parts):
            return "", f"must be a list of {len(wanted.parts)}, not of {len(given.parts)}"
        pairs = list(zip(given.parts, wanted.parts, strict=True))
    elif given.parts is not None:
        pairs = [(part, wanted.items) for part in given.parts]
    else:
        pairs = [(given.items, wanted.items)]
    for i, (part, asked) in enumerate(pairs):
        if found := misfit(part, asked):
            return f"[{i}]{found[0]}", found[1]
    return None


def _in_object(given: Kind, wanted: Kind) -> Misfit | None:
    if given.fields is None:
        found = misfit(given.items, wanted.items) if wanted.fields is None else None
        return (f".…{found[0]}", found[1]) if found else None
    if wanted.fields is not None:
        name = wanted.name or "it"
        for key in sorted(wanted.required - given.fields.keys()):
            if not given.open:
                return "", f"has no `{key}`, which {name} needs"
        for key in given.fields:
            if key in given.required and key not in wanted.fields and not wanted.open:
                return "", f"has `{key}`, which {name} does not take"
    for key, shape in given.fields.items():
        asked = wanted.items if wanted.fields is None else wanted.fields.get(key)
        if key in given.required and (found := misfit(shape, asked)):
            return f".{key}{found[0]}", found[1]
    return None
