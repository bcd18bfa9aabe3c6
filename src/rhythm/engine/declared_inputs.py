"""The inputs that a Python workflow declares by its parameters, as JSON Schema.

The program keeps the schema, so that everyone who starts it can check inputs, whoever has the
function. The check itself is in `ir.input_schema`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from rhythm.engine.hint_schemas import HintSchemas, Schema, default_of, with_null
from rhythm.engine.typed import hints_of


def declared_inputs(
    function: Callable[..., Any], signature: inspect.Signature, *, other_keys: bool = False
) -> Schema:
    """Returns the inputs that a function's parameters declare.

    With `other_keys`, inputs may have keys that are no parameters: those of an event's data.
    """
    hints, describing = hints_of(function), HintSchemas()
    named = [
        p for p in signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    return {
        "type": "object",
        "properties": {
            p.name: _property(describing.schema(hints.get(p.name, Any)), p) for p in named
        },
        "required": [p.name for p in named if p.default is p.empty],
        **({} if other_keys else {"additionalProperties": False}),
    }


def _property(schema: Schema, p: inspect.Parameter) -> Schema:
    if p.default is p.empty:
        return schema
    schema = with_null(schema) if p.default is None else schema
    return {**schema, **default_of(p.default)}
