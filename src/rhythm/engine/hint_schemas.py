"""Type hints as JSON Schema: what `typed` accepts for a hint, said so that others can check it.

The rules are those of `typed.kind_of`, hint by hint; a test holds the two together. A class that
contains itself is described once: what it contains may be anything. So may what a pydantic model
checks in functions of its own, since only a process that has the class can call them.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from rhythm.engine.payload import dump, load
from rhythm.engine.typed import LISTS, OBJECTS, ClassField, fields_of, hints_of
from rhythm.errors import InvalidPayload

Schema = dict[str, Any]

MAX_PARTS = 1_000  # of one schema; the rest may be anything
MAX_DEPTH = 24
MAX_FLAGS = 8  # members of an `enum.Flag` whose sums are listed
NULL: Schema = {"type": "null"}
PLAIN_SCHEMAS: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number", "format": "double"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    time: {"type": "string", "format": "time"},
    timedelta: {"type": ["number", "string"], "format": "duration"},
    Decimal: {"type": ["string", "number"], "format": "decimal"},
    UUID: {"type": "string", "format": "uuid"},
    bytes: {"type": "string", "format": "byte"},
    bytearray: {"type": "string", "format": "byte"},
}
# Calling these gives the same each time.
CONSTANT_FACTORIES = (list, dict, set, frozenset, tuple, str, int, float, bool)
_MISSING = object()


def with_null(schema: Schema) -> Schema:
    """Returns a schema that also accepts null."""
    if not schema or NULL in schema.get("anyOf", ()) or schema == NULL:
        return schema
    return {"anyOf": [*schema.get("anyOf", [schema]), NULL]}


def default_of(value: Any) -> Schema:
    """Returns the part of a schema that says a default; empty if it has no JSON form."""
    try:
        return {"default": _json(value)}
    except InvalidPayload:
        return {}


def _json(value: Any) -> Any:
    return load(dump(value, "a default"))


class HintSchemas:
    """Describes the hints of one function, within limits for all of them together."""

    def __init__(self) -> None:
        self.parts = 0
        self.inside: list[type] = []  # the classes that are being described

    def schema(self, hint: Any, depth: int = 0) -> Schema:
        """Returns what a hint accepts, as JSON Schema; empty if that is anything."""
        if depth > MAX_DEPTH:
            return {}
        if hint is None or hint is type(None):
            return dict(NULL)
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Annotated:
            return self.schema(args[0], depth)
        if origin in (typing.Union, types.UnionType):
            return self._union(args, depth)
        if origin is typing.Literal:
            return self._choice(list(args))
        if isinstance(hint, typing.NewType):
            return self.schema(hint.__supertype__, depth)
        cls = origin or hint
        return self._class(cls, args, depth) if isinstance(cls, type) else {}

    def _takes_room(self, parts: int) -> bool:
        """Counts the parts of a schema, if there is room for them; else returns False."""
        if self.parts + parts > MAX_PARTS:
            return False
        self.parts += parts
        return True

    def _union(self, hints: tuple[Any, ...], depth: int) -> Schema:
        if not self._takes_room(len(hints)):
            return {}
        parts = [self.schema(hint, depth + 1) for hint in hints]
        if not all(parts):
            return {}
        return {"anyOf": [one for part in parts for one in part.get("anyOf", [part])]}

    def _choice(self, values: list[Any]) -> Schema:
        if not values or not self._takes_room(len(values)):
            return {}
        try:
            return {"enum": [_json(value) for value in values]}
        except InvalidPayload:
            return {}

    def _class(self, cls: type, args: tuple[Any, ...], depth: int) -> Schema:
        if cls in PLAIN_SCHEMAS:
            return dict(PLAIN_SCHEMAS[cls])
        if cls in LISTS:
            return self._array(self._item(args, depth), LISTS[cls] is not None)
        if cls is tuple:
            return self._tuple(args, depth)
        if cls in OBJECTS:
            inner = self._item(args[1:], depth)
            return {"type": "object", **({"additionalProperties": inner} if inner else {})}
        if issubclass(cls, enum.Enum):
            return self._enum(cls)
        if cls in self.inside:
            return {}
        self.inside.append(cls)
        described = self._user_class(cls, depth)
        self.inside.pop()
        return described

    def _item(self, args: tuple[Any, ...], depth: int) -> Schema:
        return self.schema(args[0], depth + 1) if args and self._takes_room(1) else {}

    def _array(self, items: Schema, unique: bool) -> Schema:
        # Which objects are equal is known to their class alone.
        unique = unique and items.get("type") not in ("object", None)
        return {
            "type": "array",
            **({"items": items} if items else {}),
            **({"uniqueItems": True} if unique else {}),
        }

    def _tuple(self, args: tuple[Any, ...], depth: int) -> Schema:
        if not args or args[-1] is ...:
            return self._array(self._item(args, depth), False)
        if not self._takes_room(len(args)):
            return {"type": "array"}
        return {"type": "array", "prefixItems": [self.schema(arg, depth + 1) for arg in args]}

    def _enum(self, cls: type[enum.Enum]) -> Schema:
        if not issubclass(cls, enum.Flag):
            return self._choice([member.value for member in cls])
        bits = [member.value for member in cls]
        if len(bits) > MAX_FLAGS or issubclass(cls, enum.IntFlag):
            return {"type": "integer"}
        sums = {0}
        for bit in bits:
            sums |= {bit | other for other in sums}
        return self._choice(sorted(sums))

    def _user_class(self, cls: Any, depth: int) -> Schema:
        if typing.is_typeddict(cls):
            return self._typed_dict(cls, depth)
        if callable(getattr(cls, "model_validate", None)):
            return self._model(cls, depth)
        fields = fields_of(cls)
        if fields is None:
            return {}
        if not self._takes_room(len(fields)):
            return {} if issubclass(cls, tuple) else {"type": "object"}
        return self._fields(cls, fields, depth)

    def _fields(self, cls: type, fields: tuple[ClassField, ...], depth: int) -> Schema:
        hints, defaults = hints_of(cls), _defaults(cls)
        properties = {
            field.key: {
                **(self.schema(hints.get(field.name, Any), depth + 1) if field.given else {}),
                **_default(defaults.get(field.name, _MISSING)),
            }
            for field in fields
        }
        positional = [field.key for field in fields] if issubclass(cls, tuple) else None
        return {
            "type": "object",
            "properties": properties,
            "required": [field.key for field in fields if field.required],
            "additionalProperties": False,
            **({"x-positional": positional} if positional else {}),
        }

    def _typed_dict(self, cls: Any, depth: int) -> Schema:
        said = {
            key: typing.get_origin(hint) for key, hint in hints_of(cls, include_extras=True).items()
        }
        required = [
            key
            for key, origin in said.items()
            if origin is typing.Required
            or (origin is not typing.NotRequired and key in cls.__required_keys__)
        ]
        hints = hints_of(cls)
        if not self._takes_room(len(hints)):
            return {"type": "object"}
        return {
            "type": "object",
            "properties": {key: self.schema(hint, depth + 1) for key, hint in hints.items()},
            "required": required,
        }

    def _model(self, cls: Any, depth: int) -> Schema:
        """Returns what a pydantic model accepts, as far as its fields say it."""
        fields = getattr(cls, "model_fields", None)
        own = getattr(cls, "__pydantic_decorators__", None)
        if fields is None or own is None or getattr(cls, "__pydantic_root_model__", False):
            return {}
        if not self._takes_room(len(fields)):
            return {}
        if any(field.alias or field.validation_alias for field in fields.values()):
            return {"type": "object"}  # which of the two names is given depends on its settings
        if any(validator.info.mode != "after" for validator in own.model_validators.values()):
            return {}
        checked = {
            name
            for validator in (*own.field_validators.values(), *own.validators.values())
            if validator.info.mode != "after"
            for name in validator.info.fields
        }
        closed = cls.model_config.get("extra") == "forbid"
        properties = {
            name: {
                **({} if name in checked else self._model_field(field.annotation, depth)),
                **_default(_model_default(field)),
            }
            for name, field in fields.items()
        }
        return {
            "type": "object",
            "properties": properties,
            "required": [name for name, field in fields.items() if field.is_required()],
            **({"additionalProperties": False} if closed else {}),
        }

    def _model_field(self, hint: Any, depth: int) -> Schema:
        # pydantic writes bytes as UTF-8 text unless it is told otherwise.
        return {"type": "string"} if hint is bytes else self.schema(hint, depth + 1)


def _defaults(cls: type) -> dict[str, Any]:
    """Returns the defaults of a class by field; those that are made anew by a function are left
    out, unless it always makes the same."""
    if hasattr(cls, "__dataclass_fields__"):
        return {field.name: _dataclass_default(field) for field in dataclasses.fields(cls)}
    if issubclass(cls, tuple):
        return dict(getattr(cls, "_field_defaults", {}))
    parameters = inspect.signature(cls).parameters.values()
    return {p.name: _struct_default(p.default) for p in parameters if p.default is not p.empty}


def _dataclass_default(field: dataclasses.Field[Any]) -> Any:
    if not field.init:
        return _MISSING
    if field.default is not dataclasses.MISSING:
        return field.default
    factory = field.default_factory
    return _MISSING if factory is dataclasses.MISSING else _made(factory)


def _struct_default(default: Any) -> Any:
    """Returns the default of a field of a msgspec Struct, whose signature has factories, too."""
    factory = getattr(default, "factory", None)
    return default if factory is None else _made(factory)


def _model_default(field: Any) -> Any:
    if field.is_required():
        return _MISSING
    return field.default if field.default_factory is None else _made(field.default_factory)


def _made(factory: Callable[..., Any]) -> Any:
    """Returns what a factory makes, if it makes the same each time."""
    code = getattr(factory, "__code__", None)
    constant = code is not None and not (code.co_names or code.co_freevars or code.co_argcount)
    return factory() if constant or factory in CONSTANT_FACTORIES else _MISSING


def _default(value: Any) -> Schema:
    return {} if value is _MISSING else default_of(value)
