"""Commands to try, made from the workflows that there are and from the inputs that they declare.

All functions are pure.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Container, Mapping, Sequence
from typing import Any

from rhythm.errors import InvalidInputs
from rhythm.ir.input_schema import InvalidSchema, check_inputs
from rhythm.record import Record

Schema = Mapping[str, Any]
VALUES: dict[str, Any] = {  # by type
    "string": "A1", "integer": 5, "number": 5, "boolean": True, "array": [], "object": {},
    "null": None,
}  # fmt: skip
FORMATTED = {
    "date-time": "2030-01-31T09:30:00Z", "date": "2030-01-31", "time": "09:30:00",
    "duration": "5m", "decimal": "12.50", "byte": "QTE=",
    "uuid": "0190f5c5-8f3a-7c2e-9b1d-2a3b4c5d6e7f",
}  # fmt: skip
MAX_DEPTH = 8  # of a value that is made up
MAX_NUMBER = 1_000  # of the ids that are tried
MAX_NAME = 40  # characters of a workflow's name in an id


class Startable(Record):
    """A workflow that can be started: its name, and the inputs that it declares, if it does."""

    name: str
    inputs: Schema | None


def examples(
    workflows: Sequence[Startable], taken: Container[str], database: str = ""
) -> list[str]:
    """Returns three commands that work as they are: start a workflow, see what it did, list all.

    It is the first workflow for which inputs can be made up. `taken` has the ids that exist
    already. `database` is the URL that the commands need, if they do not find it themselves.
    """
    where = ["--database", database] if database else []
    for workflow in workflows:
        if (given := arguments(workflow)) is None:
            continue
        ids = ids_for(workflow.name)
        id = next((each for each in ids if each not in taken), ids[-1])
        start = ["start", workflow.name, "--id", id, *given]
        tried = [start, ["trace", id], ["list"]]
        break
    else:
        tried = [["workflows"], ["list"], ["workers"]]
    return [shlex.join(["rhythm", *words, *where]) for words in tried]


def ids_for(workflow: str) -> list[str]:
    """Returns the ids that are tried for an execution of a workflow: `order-1`, `order-2`, …"""
    name = re.sub(r"[^\w-]+", "-", workflow)[:MAX_NAME]
    return [f"{name}-{n}" for n in range(1, MAX_NUMBER)]


def arguments(workflow: Startable) -> list[str] | None:
    """Returns the arguments that give a workflow its inputs; None if they cannot be made up.

    Inputs that may be left out are left out.
    """
    if workflow.inputs is None:
        return []
    try:
        properties, needed = workflow.inputs["properties"], workflow.inputs.get("required", ())
        made = {name: value_for(properties[name]) for name in needed}
        check_inputs(workflow.name, workflow.inputs, made)
    except (InvalidInputs, InvalidSchema, KeyError, RecursionError):
        return None
    return [word for name, value in made.items() for word in ("-i", _pair(name, value))]


def _pair(name: str, value: Any) -> str:
    """Returns an input as `-i` takes it. A text that looks like JSON is taken as declared."""
    return f"{name}={value}" if isinstance(value, str) else f"{name}:={json.dumps(value)}"


def value_for(schema: Schema, depth: int = 0) -> Any:
    """Returns a value that fits a schema."""
    if depth > MAX_DEPTH:
        raise RecursionError
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return value_for(schema["anyOf"][0], depth + 1)
    if schema.get("format") in FORMATTED:
        return FORMATTED[schema["format"]]
    kind = schema.get("type", "string")
    kind = kind if isinstance(kind, str) else kind[0]
    if kind == "array":
        return _list_for(schema, depth)
    if kind == "object":
        needed = schema.get("required", ())
        return {name: value_for(schema["properties"][name], depth + 1) for name in needed}
    return VALUES[kind]


def _list_for(schema: Schema, depth: int) -> list[Any]:
    if "prefixItems" in schema:
        return [value_for(each, depth + 1) for each in schema["prefixItems"]]
    return [value_for(schema["items"], depth + 1)] if schema.get("items") is not None else []
