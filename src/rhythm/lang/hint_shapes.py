"""From Python's hints to shapes: what a task takes, and what it gives.

`engine.typed` converts values by the same hints when they are there; a test holds the two together:
what does not fit a shape is refused there, too.
"""

from __future__ import annotations

import enum
import inspect
import types
import typing
from collections import abc
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from rhythm.lang.flow.rules.surroundings import TaskShape
from rhythm.lang.shapes import BOOL, LIST, NULL, NUMBER, OBJECT, TEXT, Kind, ValueShape, either

MAX_LEVELS = 8  # levels of classes inside classes; below that, anything fits
NOTHING = ValueShape((Kind(NULL, type(None)),))
PLAIN: dict[Any, ValueShape] = {
    str: ValueShape((Kind(TEXT, str),)),
    bool: ValueShape((Kind(BOOL, bool),)),
    int: ValueShape((Kind(NUMBER, int, whole=True),)),
    float: ValueShape((Kind(NUMBER, float),)),
    **{
        cls: ValueShape((Kind(TEXT, cls),))
        for cls in (datetime, date, time, UUID, bytes, bytearray)
    },
    timedelta: ValueShape((Kind(NUMBER, timedelta), Kind(TEXT, timedelta))),
    Decimal: ValueShape((Kind(TEXT, Decimal), Kind(NUMBER, Decimal))),
}
LISTS: dict[Any, type] = {
    list: list, abc.Sequence: list, abc.MutableSequence: list, abc.Collection: list,
    abc.Iterable: list,
    set: set, abc.Set: set, abc.MutableSet: set, frozenset: frozenset,
}  # fmt: skip
OBJECTS = (dict, abc.Mapping, abc.MutableMapping)


def task_shape(signature: inspect.Signature, hints: Mapping[str, Any]) -> TaskShape:
    """Returns what a function takes by name, and what it gives."""
    params = signature.parameters.values()
    named = [p for p in params if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return TaskShape(
        {p.name: parameter_shape(p, hints) for p in named},
        frozenset(p.name for p in named if p.default is p.empty),
        any(p.kind is p.VAR_KEYWORD for p in params),
        shape_of(hints.get("return", Any), given=True),
    )


def parameter_shape(p: inspect.Parameter, hints: Mapping[str, Any]) -> ValueShape | None:
    """Returns what a parameter takes; null, too, if that is its default."""
    shape = shape_of(hints.get(p.name, Any))
    return either((shape, NOTHING)) if p.default is None else shape


def shape_of(hint: Any, given: bool = False) -> ValueShape | None:
    """Returns the shape of a hint; None if it says nothing.

    `given`: of what a function returns with this hint, else of what it takes.
    """
    return _Reader(given).read(hint, MAX_LEVELS)


class _Reader:
    def __init__(self, given: bool) -> None:
        self.given = given

    def read(self, hint: Any, levels: int) -> ValueShape | None:
        if hint is None or hint is type(None):
            return NOTHING
        if isinstance(hint, typing.NewType):
            return self.read(hint.__supertype__, levels)
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Annotated, typing.Required, typing.NotRequired):
            return self.read(args[0], levels)
        if origin in (typing.Union, types.UnionType):
            return either(self.read(part, levels) for part in args)
        if origin is typing.Literal:
            return _choice(args, None)
        cls = origin or hint
        if not isinstance(cls, type) or levels < 0:
            return None
        return self._class(cls, args, levels - 1)

    def _class(self, cls: type, args: tuple[Any, ...], levels: int) -> ValueShape | None:
        if cls in PLAIN:
            return PLAIN[cls]
        if cls in LISTS:
            items = self.read(args[0], levels) if args else None
            return ValueShape((Kind(LIST, LISTS[cls], items=items),))
        if cls is tuple:
            return self._tuple(args, levels)
        if cls in OBJECTS:
            items = self.read(args[1], levels) if len(args) == 2 else None
            return ValueShape((Kind(OBJECT, dict, items=items),))
        return next((made for make in self._MAKERS if (made := make(self, cls, levels))), None)

    def _tuple(self, args: tuple[Any, ...], levels: int) -> ValueShape:
        if not args or args[-1] is ...:
            items = self.read(args[0], levels) if args else None
            return ValueShape((Kind(LIST, tuple, items=items),))
        parts = tuple(self.read(arg, levels) for arg in args)
        return ValueShape((Kind(LIST, tuple, parts=parts),))

    def _typed_dict(self, cls: Any, levels: int) -> ValueShape | None:
        if not typing.is_typeddict(cls):
            return None
        hints = _hints(cls, extras=True)
        if len(hints) < len(cls.__annotations__):
            return ValueShape((Kind(OBJECT, dict, cls.__name__),))
        said = {key: typing.get_origin(hint) for key, hint in hints.items()}
        needed = frozenset(
            key
            for key, origin in said.items()
            if origin is typing.Required
            or (origin is not typing.NotRequired and key in cls.__required_keys__)
        )
        fields = {key: self.read(hint, levels) for key, hint in hints.items()}
        kind = Kind(OBJECT, dict, cls.__name__, fields=fields, required=needed)
        return ValueShape((kind,))

    def _pydantic(self, cls: Any, levels: int) -> ValueShape | None:
        """A model validates by its own rules: only missing fields are certain, if it has none."""
        fields, rules = (
            getattr(cls, "model_fields", None),
            getattr(cls, "__pydantic_decorators__", None),
        )
        if not isinstance(fields, dict) or rules is None or hasattr(cls, "root"):
            return None
        config = getattr(cls, "model_config", {})
        if self.given:
            known = not rules.model_serializers and config.get("extra") != "allow"
            hints = _hints(cls)
            shapes = {name: self.read(hints.get(name, Any), levels) for name in fields}
            shapes |= dict.fromkeys(getattr(cls, "model_computed_fields", {}))
            named = known and not config.get("serialize_by_alias")
            return ValueShape((Kind(OBJECT, cls, cls.__name__, fields=shapes if named else None),))
        aliased = any(f.alias or f.validation_alias for f in fields.values())
        if rules.model_validators or aliased or config.get("alias_generator"):
            return None
        needed = frozenset(name for name, field in fields.items() if field.is_required())
        closed = config.get("extra") == "forbid"
        kind = Kind(OBJECT, cls, cls.__name__, fields=dict.fromkeys(fields), required=needed)
        return (
            ValueShape((kind.replace(open=not closed),))
            if not config.get("from_attributes")
            else None
        )

    def _enum(self, cls: type, levels: int) -> ValueShape | None:
        if not issubclass(cls, enum.Enum):
            return None
        if issubclass(cls, enum.Flag):
            return ValueShape((Kind(NUMBER, cls, cls.__name__),))
        return _choice([member.value for member in cls], cls)

    def _fields(self, cls: type, levels: int) -> ValueShape | None:
        found = list(_class_fields(cls))
        if not found and not hasattr(cls, "__dataclass_fields__"):
            return None
        if issubclass(cls, enum.Enum) or callable(getattr(cls, "model_validate", None)):
            return None
        hints = _hints(cls)
        fields = {key: self.read(hints.get(name, Any), levels) for name, key, _ in found}
        needed = frozenset(key for _, key, required in found if required)
        kind = Kind(OBJECT, cls, cls.__name__, fields=fields, required=needed, open=False)
        others = (Kind(LIST, cls, cls.__name__),) if issubclass(cls, tuple) else ()
        return ValueShape((kind, *others))

    _MAKERS: tuple[Callable[[_Reader, Any, int], ValueShape | None], ...] = (
        _typed_dict, _pydantic, _enum, _fields,
    )  # fmt: skip


def _class_fields(cls: Any) -> Iterator[tuple[str, str, bool]]:
    """Yields the fields of a dataclass, NamedTuple or msgspec class: name, key, whether needed."""
    if hasattr(cls, "__dataclass_fields__"):
        import dataclasses

        for field in dataclasses.fields(cls):
            default = field.default is field.default_factory is dataclasses.MISSING
            yield field.name, field.name, field.init and default
    elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
        for name in cls._fields:
            yield name, name, name not in cls._field_defaults
    elif hasattr(cls, "__struct_fields__"):
        params = inspect.signature(cls).parameters
        keys = getattr(cls, "__struct_encode_fields__", cls.__struct_fields__)
        for name, key in zip(cls.__struct_fields__, keys, strict=True):
            yield name, key, params[name].default is inspect.Parameter.empty


def _choice(values: abc.Iterable[Any], cls: type | None) -> ValueShape | None:
    """Returns the shape of a value that is one of these; None if one of them is no JSON scalar."""
    found: dict[str, list[Any]] = {}
    for value in values:
        plain = value.value if isinstance(value, enum.Enum) else value
        if plain is not None and type(plain) not in (bool, int, float, str):
            return None
        word = {type(None): NULL, bool: BOOL, str: TEXT}.get(type(plain), NUMBER)
        found.setdefault(word, []).append(plain)
    name = cls.__name__ if cls else ""
    return ValueShape(
        tuple(
            Kind(word, cls or type(those[0]), name, values=tuple(those))
            for word, those in found.items()
        )
    )


def _hints(cls: Any, extras: bool = False) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=extras)
    except Exception:  # a hint that cannot be evaluated says nothing
        return {}
