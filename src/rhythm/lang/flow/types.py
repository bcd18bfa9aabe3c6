"""The types of a header: the words for them, and the text of a JSON Schema as a type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rhythm.lang.flow.constants import constant_text, key_text
from rhythm.lang.flow.nodes import Parameter

Schema = Mapping[str, Any]

NULL: Schema = {"type": "null"}
TYPES: dict[str, Schema] = {
    "any": {},
    "text": {"type": "string"},
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "float": {"type": "number", "format": "double"},
    "truth": {"type": "boolean"},
    "null": NULL,
    "list": {"type": "array"},
    "object": {"type": "object"},
    "time": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "time_of_day": {"type": "string", "format": "time"},
    "duration": {"type": ["number", "string"], "format": "duration"},
    "decimal": {"type": ["string", "number"], "format": "decimal"},
    "uuid": {"type": "string", "format": "uuid"},
    "bytes": {"type": "string", "format": "byte"},
}
# What other languages call them.
TYPES_FROM_ELSEWHERE = {
    "string": "text", "str": "text", "char": "text", "varchar": "text",
    "int": "integer", "long": "integer", "bigint": "integer", "double": "float", "real": "float",
    "bool": "truth", "boolean": "truth", "none": "null", "undefined": "null", "nil": "null",
    "array": "list", "tuple": "list", "sequence": "list", "dict": "object", "map": "object",
    "mapping": "object", "record": "object", "struct": "object", "json": "any", "unknown": "any",
    "datetime": "time", "timestamp": "time", "timedelta": "duration", "interval": "duration",
    "guid": "uuid", "blob": "bytes", "binary": "bytes",
}  # fmt: skip


def inputs_schema(parameters: Sequence[Parameter], *, other_keys: bool = False) -> dict[str, Any]:
    """Returns the schema of the inputs that these parameters declare.

    With `other_keys`, inputs may have keys that are no parameters: those of an event's data.
    """
    return {
        "type": "object",
        "properties": {each.name: each.schema for each in parameters},
        "required": [each.name for each in parameters if each.required],
        **({} if other_keys else {"additionalProperties": False}),
    }


def with_null(schema: Schema) -> dict[str, Any]:
    """Returns a schema that also accepts null."""
    parts = schema.get("anyOf", [schema])
    return dict(schema) if not schema or NULL in parts else {"anyOf": [*parts, dict(NULL)]}


def parameters_text(schema: Schema) -> str:
    """Returns the parameters that declare an object's properties, as a header has them."""
    required = schema.get("required", ())
    return ", ".join(
        _property(name, part, name in required) for name, part in schema["properties"].items()
    )


def type_text(schema: Schema) -> str:
    """Returns a schema as a type, without its default.

    What types cannot say is left out: that items are unique, that an object may be given as a list.
    """
    schema = {key: value for key, value in schema.items() if key != "default"}
    if "enum" in schema:
        return " | ".join(map(constant_text, schema["enum"]))
    if "anyOf" in schema:
        return " | ".join(map(type_text, schema["anyOf"]))
    for word, known in TYPES.items():
        if schema == known:
            return word
    if schema.get("type") == "array":
        inner = schema.get("prefixItems") or [schema.get("items", {})]
        return f"[{', '.join(map(type_text, inner))}]"
    return _shape(schema) if schema.get("type") == "object" else "any"


def _shape(schema: Schema) -> str:
    required, others = schema.get("required", ()), schema.get("additionalProperties", True)
    parts = [
        _property(key, part, key in required) for key, part in schema.get("properties", {}).items()
    ]
    if others is not False:
        parts.append("..." if others is True else f"...: {type_text(others)}")
    return f"{{ {', '.join(parts)} }}" if parts else "{}"


def _property(name: str, schema: Schema, required: bool) -> str:
    if "default" not in schema:
        return f"{key_text(name)}{'' if required else '?'}: {type_text(schema)}"
    bare = {key: value for key, value in schema.items() if key != "default"}
    default = schema["default"]
    if default is None and not bare:
        return f"{key_text(name)}: any?"
    parts = bare.get("anyOf", ())
    if default is None and len(parts) > 1 and parts[-1] == NULL:
        return f"{key_text(name)}: {' | '.join(map(type_text, parts[:-1]))}?"
    return f"{key_text(name)}: {type_text(bare)} = {constant_text(default)}"
